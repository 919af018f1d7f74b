/** Looks at the processes of this machine, those in hosts included; one that has ended answers with nothing. */
import { readFileSync } from 'node:fs';

export function childrenOf(pid: number): readonly number[] {
  return readProc(`${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);
}

/** The kernel's `status` file of the process. */
export function statusOf(pid: number): string {
  return readProc(`${pid}/status`);
}

/** Whether a child has become a program of its own, and is not the fork that is about to. */
export function hasProgram(pid: number): boolean {
  return childrenOf(pid).some((child) => readProc(`${child}/cmdline`) !== readProc(`${pid}/cmdline`));
}

export function isStopped(pid: number): boolean {
  return /^State:\tT/m.test(statusOf(pid));
}

/** The first process of a host becomes another program when it shuts down. */
export function isShuttingDown(initPid: number): boolean {
  return /^Name:\tsystemd-shut/m.test(statusOf(initPid));
}

function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch {
    return '';
  }
}
