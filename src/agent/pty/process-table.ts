/** Processes of the system by session (Linux). */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ProcessEntry {
  readonly pid: number;
  /** State; `Z` for a zombie. */
  readonly state: string;
  readonly group: number;
  readonly session: number;
  /** Device number of the terminal; 0 without one. */
  readonly tty: number;
  /** Foreground process group of the terminal; -1 without one. */
  readonly foreground: number;
  /** Start time in ticks since boot, which distinguishes processes with the same ID. */
  readonly startTime: number;
}

/** Identifies the processes of a session. */
export interface SessionMark {
  /** ID of the first process, the leader of session and group. */
  readonly pid: number;
  /** Start time in ticks; null when the process had already ended. */
  readonly startTime: number | null;
  /** Device number of the terminal; 0 for a command on pipes. */
  readonly tty: number;
}

/** Parses `/proc/PID/stat`. Returns null when it is malformed. */
export function parseStat(text: string): ProcessEntry | null {
  // The name before it may contain anything, even brackets.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const number = (at: number) => Number(fields[at]);
  const pid = Number.parseInt(text, 10);
  if (fields.length < 20 || Number.isNaN(pid)) return null;
  return {
    pid,
    state: fields[0] ?? '',
    group: number(2),
    session: number(3),
    tty: number(4),
    foreground: number(5),
    startTime: number(19),
  };
}

/** Returns a process, or null when it does not exist. */
export function processEntry(pid: number): ProcessEntry | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return null;
  }
}

/**
 * Returns the living processes of a session; daemons have left it. When the first process ends, all lose the terminal. A process
 * with another terminal belongs to a later session with the same ID.
 */
export function sessionMembers({ pid, startTime, tty }: SessionMark): readonly ProcessEntry[] {
  const members = allProcesses().filter(
    (entry) => entry.session === pid && entry.state !== 'Z' && (entry.tty === tty || entry.tty === 0),
  );
  const leader = members.find((entry) => entry.pid === pid);
  // Another process has the ID now.
  if (leader && leader.startTime !== startTime) return [];
  return members.filter((entry) => startTime === null || entry.startTime >= startTime);
}

/** Returns the living processes of a process group. */
export const groupMembers = (group: number): readonly ProcessEntry[] =>
  allProcesses().filter((entry) => entry.group === group && entry.state !== 'Z');

function allProcesses(): readonly ProcessEntry[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => processEntry(Number(name)))
    .filter((entry) => entry !== null);
}

/** Returns whether a process may have the master of a terminal open. True if this process may not look. */
export function mayOwnTerminal(pid: number): boolean {
  const directory = `/proc/${pid}/fd`;
  try {
    return readdirSync(directory).some((name) => MASTER.test(readlinkSync(`${directory}/${name}`)));
  } catch {
    return true;
  }
}

/** Where descriptors of terminal masters lead; containers mount theirs elsewhere. */
const MASTER = /\/ptmx$/;

/** Signals all processes of a session. Returns their number. */
export function signalSession(mark: SessionMark, signal: NodeJS.Signals): number {
  const members = sessionMembers(mark);
  for (const { pid } of members) sendSignal(pid, signal);
  return members.length;
}

/** Signals a process, or a group by its negative ID. Does nothing when it does not exist. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has ended meanwhile.
  }
}
