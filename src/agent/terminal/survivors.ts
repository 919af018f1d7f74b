/** The list of running programs on disk. A killed agent leaves programs behind, which the next one ends. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as Type from 'typebox';
import { closed, nullable } from '../../kernel/schema.js';
import { validator } from '../../kernel/validator.js';
import { type SessionMark, sessionMembers, signalSession } from '../pty/process-table.js';

const FILE = 'terminals.json';

const schema = closed({
  /** Boot ID, because process IDs and start times are only valid within one boot. */
  boot_id: Type.String(),
  sessions: Type.Array(
    closed({
      session_id: Type.String(),
      pid: Type.Integer({ minimum: 1 }),
      start_time: nullable(Type.Number()),
      tty: Type.Integer({ minimum: 0 }),
    }),
  ),
});
const valid = validator(schema);

/** Replaces the list. It is not synced, because losing it in a power cut is harmless. */
export function writeLiveSessions(dataDir: string, sessions: ReadonlyMap<string, SessionMark>): void {
  const path = join(dataDir, FILE);
  if (sessions.size === 0) {
    rmSync(path, { force: true });
    return;
  }
  const list = [...sessions].map(([session_id, { pid, startTime, tty }]) => ({
    session_id,
    pid,
    start_time: startTime,
    tty,
  }));
  writeFileSync(`${path}.new`, `${JSON.stringify({ boot_id: bootId(), sessions: list })}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Ends the survivors except daemons, which have left their session. Returns the number of sessions with survivors. */
export function killSurvivors(dataDir: string): number {
  const marks = readMarks(dataDir).filter((mark) => sessionMembers(mark).length > 0);
  for (const mark of marks) signalSession(mark, 'SIGHUP');
  for (const mark of marks) signalSession(mark, 'SIGKILL');
  rmSync(join(dataDir, FILE), { force: true });
  return marks.length;
}

function readMarks(dataDir: string): readonly SessionMark[] {
  try {
    const value: unknown = JSON.parse(readFileSync(join(dataDir, FILE), 'utf8'));
    if (!valid.check(value) || value.boot_id !== bootId()) return [];
    return value.sessions.map(({ pid, start_time, tty }) => ({ pid, startTime: start_time, tty }));
  } catch {
    // Missing or damaged.
    return [];
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
