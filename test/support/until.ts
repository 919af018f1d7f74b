/** Waiting in tests: always for a condition, never for a time. */

/**
 * Factor by which the limits of waiting grow, from the load of the machine at the start of the run (`vitest.config.ts`).
 * A limit only ends what hangs, so it never decides about a test that works.
 */
const patience = Number(process.env.ORCH_TEST_PATIENCE ?? 1);

/**
 * Waits until `condition` holds, at most 30 s on an idle machine; throws with `what` otherwise, which a function says at that time. Polls every `everyMs`, or at
 * half of the time for a condition that takes longer, such as a command: what is waited for needs the processor too.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string | (() => string),
  everyMs = 20,
): Promise<void> {
  const end = performance.now() + 30_000 * patience;
  for (;;) {
    const asked = performance.now();
    if (await condition()) return;
    const answered = performance.now();
    if (answered > end) throw new Error(`still waiting until ${typeof what === 'string' ? what : what()}`);
    await new Promise((resolve) => setTimeout(resolve, Math.max(everyMs, answered - asked)));
  }
}
