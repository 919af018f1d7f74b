/** The system's processes by the session that they belong to (Linux). */
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessEntry {
  readonly pid: number;
  /** `Z` for one that has ended and is not collected. */
  readonly state: string;
  readonly group: number;
  readonly session: number;
  /** Device number of its terminal; 0 when it has none. */
  readonly tty: number;
  /** The group in the foreground of its terminal; -1 when there is none. */
  readonly foreground: number;
  /** In ticks since the system's start; tells a process from a later one with the same id. */
  readonly startTime: number;
}

/** What a session's processes are known by. */
export interface SessionMark {
  /** Of its first process, which is the leader of a session and of a group. */
  readonly pid: number;
  /** Null when it had ended before anybody looked. */
  readonly startTime: number | null;
  /** 0 for a command on pipes. */
  readonly tty: number;
}

/** The line of `/proc/PID/stat`; null when it makes no sense. */
export function parseStat(text: string): ProcessEntry | null {
  // The name before it may hold anything, brackets too.
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

/** Null when there is no such process. */
export function processEntry(pid: number): ProcessEntry | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return null;
  }
}

/**
 * Processes of the session that are alive; daemons have left it. The system takes the terminal away from all of them when
 * the first process ends; one with another terminal belongs to a later session that has got the same id.
 */
export function sessionMembers({ pid, startTime, tty }: SessionMark): readonly ProcessEntry[] {
  const members = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => processEntry(Number(name)))
    .filter((entry) => entry !== null)
    .filter((entry) => entry.session === pid && entry.state !== 'Z' && (entry.tty === tty || entry.tty === 0));
  const leader = members.find((entry) => entry.pid === pid);
  // Its id is somebody else's now.
  if (leader && leader.startTime !== startTime) return [];
  return members.filter((entry) => startTime === null || entry.startTime >= startTime);
}

/** Returns how many processes were told. */
export function signalSession(mark: SessionMark, signal: NodeJS.Signals): number {
  const members = sessionMembers(mark);
  for (const { pid } of members) sendSignal(pid, signal);
  return members.length;
}

/** A negative id stands for a group. Nothing happens when there is no such process. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended in between.
  }
}
