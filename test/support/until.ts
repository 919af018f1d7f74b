/** Waiting in tests: always for a condition, never for a time. */

/**
 * Factor by which the limits of waiting grow, from the load of the machine at the start of the run (`vitest.config.ts`).
 * A limit only ends what hangs, so it never decides about a test that works.
 */
const patience = Number(process.env.ORCH_TEST_PATIENCE ?? 1);

/** Waits until `condition` holds, at most 30 s on an idle machine; throws with `what` otherwise. Polls every `everyMs`. */
export async function until(condition: () => boolean | Promise<boolean>, what: string, everyMs = 20): Promise<void> {
  const end = performance.now() + 30_000 * patience;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`still waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
