/** Whether the end of short output arrives: commands and shells that end right after they have written. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type IPty, spawn } from 'node-pty';
import type { Row } from '../row.js';
import { sized } from '../sized.js';
import type { Fleet } from './fleet.js';
import { openSession } from './opened-session.js';

const COMMANDS = sized(1_000, 4);
const SHELLS = sized(200, 2);
const LIBRARY = sized(100, 2);
const AT_ONCE = 8;
const LARGEST = 1024 * 1024;
const LOST = `terminal: bytes lost by ${COMMANDS} short commands`;
const LOST_BY_SHELLS = `terminal: bytes lost by ${SHELLS} shells that end at once`;

export const SHORT_COMMANDS_ROWS = [LOST, LOST_BY_SHELLS];

export async function measureShortCommands(fleet: Fleet): Promise<readonly Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'orch-bench-'));
  const path = join(directory, 'text');
  // Hexadecimal digits: nothing that a terminal would change.
  const text = randomBytes(LARGEST / 2).toString('hex');
  writeFileSync(path, text);
  const source: Source = { path, text };
  try {
    const lostByCommands = await inTurns(COMMANDS, (run) => lostByCommand(fleet, source, sizeOf(run)));
    const lostByShells = await inTurns(SHELLS, (run) => lostByShell(fleet, source, sizeOf(run)));
    const lostByLibrary = await inTurns(LIBRARY, (run) => lostBeside(source, sizeOf(run)));
    return [
      row(LOST, lostByCommands, {}),
      row(LOST_BY_SHELLS, lostByShells, { [`node-pty, ${LIBRARY}`]: lostByLibrary }),
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

interface Source {
  readonly path: string;
  readonly text: string;
}

const row = (what: string, ours: number, beside: Readonly<Record<string, number>>): Row => ({
  what,
  unit: 'bytes',
  ours,
  beside,
  goal: 'none',
  isMet: ours === 0,
});

/** From 1 KB to 1 MB, each size as often. */
const sizeOf = (run: number): number => 1024 * 2 ** (run % 11);

/** The sum of what all runs lose; several at a time. */
async function inTurns(runs: number, lose: (run: number) => Promise<number>): Promise<number> {
  let lost = 0;
  let next = 0;
  const work = async () => {
    for (let run = next++; run < runs; run = next++) lost += await lose(run);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return lost;
}

async function lostByCommand(fleet: Fleet, { path, text }: Source, size: number): Promise<number> {
  const pieces: Buffer[] = [];
  const command = ['head', '-c', String(size), path];
  const { ended } = await openSession(fleet, { command, onOutput: (bytes) => pieces.push(bytes) });
  await ended;
  return missing(Buffer.concat(pieces), text.slice(0, size));
}

async function lostByShell(fleet: Fleet, { path, text }: Source, size: number): Promise<number> {
  const pieces: Buffer[] = [];
  const opened = await openSession(fleet, { onOutput: (bytes) => pieces.push(bytes) });
  opened.session.sendInput(Buffer.from(`stty -echo; printf 'be%s' gin; exec head -c ${size} ${path}\r`));
  await opened.ended;
  const shown = Buffer.concat(pieces).toString('latin1');
  return missing(Buffer.from(shown.slice(shown.lastIndexOf('begin') + 'begin'.length)), text.slice(0, size));
}

/** The same with the library that most terminals in Node use. */
function lostBeside({ path, text }: Source, size: number): Promise<number> {
  return new Promise((resolve) => {
    const pty: IPty = spawn('head', ['-c', String(size), path], { cols: 80, rows: 24 });
    let shown = '';
    pty.onData((data) => {
      shown += data;
    });
    pty.onExit(() => resolve(missing(Buffer.from(shown), text.slice(0, size))));
  });
}

/** Bytes that are not there; all of them when what is there is something else. */
function missing(shown: Buffer, wanted: string): number {
  const text = shown.toString('latin1');
  return wanted.startsWith(text) ? wanted.length - text.length : wanted.length;
}
