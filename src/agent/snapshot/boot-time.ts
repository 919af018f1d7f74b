/** Time of this machine since its start: no change of the clock moves it, and every process of one boot has the same. */
import { readFileSync } from 'node:fs';

export interface BootTime {
  /** ID of the boot; null on systems that have none. */
  readonly boot: string | null;
  /** Milliseconds. */
  readonly at: number;
}

export function bootTime(): BootTime {
  const at = Number(process.hrtime.bigint() / 1_000_000n);
  try {
    return { boot: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(), at };
  } catch {
    return { boot: null, at };
  }
}

/** Returns the milliseconds from now to a time; 0 for one of another boot, whose rest cannot be known. */
export function leftUntil(until: BootTime, now: BootTime = bootTime()): number {
  return until.boot === null || until.boot !== now.boot ? 0 : Math.max(0, until.at - now.at);
}
