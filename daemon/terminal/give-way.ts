/** Lets the relay go first where the processor has more to do than it can: nobody waits for what the other threads do. */
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';

/** As `nice` counts it. */
const NICE = 10;

/** For the thread that calls it alone, and only where threads have priorities of their own: on Linux. */
export function giveWay(): void {
  try {
    const [, thread] = /(\d+)$/.exec(readlinkSync('/proc/thread-self')) ?? [];
    if (thread !== undefined) setPriority(Number(thread), NICE);
  } catch {
    // All is done in the end without it.
  }
}
