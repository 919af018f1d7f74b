/** What programs of sessions are alive, on disk: an agent that was killed leaves some behind, which the next one ends. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as Type from 'typebox';
import { closed, nullable } from '../../kernel/schema.js';
import { validator } from '../../kernel/validator.js';
import { type SessionMark, sessionMembers, signalSession } from '../pty/process-table.js';

const FILE = 'terminals.json';

const schema = closed({
  /** Process ids and start times mean nothing after another start of the system. */
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

/** Replaces the list; losing it at a power cut does no harm, so it is not synced. */
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

/** Ends what is left of them, but for daemons that have left their session; returns how many sessions had something left. */
export function endSurvivors(dataDir: string): number {
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
    // There is none, or it is torn.
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
