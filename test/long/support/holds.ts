/** Waits until something holds, for as long as the test says. */
import { setTimeout as pause } from 'node:timers/promises';

/** @param patience milliseconds */
export async function holds(
  condition: () => boolean | Promise<boolean>,
  patience: number,
  what: string,
): Promise<void> {
  const deadline = performance.now() + patience;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`still waiting until ${what}`);
    await pause(50);
  }
}
