/** The maximum size of a run, the same through an orchestrator and with `--local`. */
import { Fault } from '../kernel/fault.js';

/** Maximum resources of one run, removals included. */
export const MAX_RUN_RESOURCES = 20_000;

/** Throws `bad_request` when a run exceeds the maximum number of items; `hint` says what to do then. */
export function refuseLargeRun(
  { resources, removals }: { readonly resources: readonly unknown[]; readonly removals: readonly unknown[] },
  hint: string,
): void {
  const count = resources.length + removals.length;
  if (count <= MAX_RUN_RESOURCES) return;
  throw new Fault(
    'bad_request',
    `these modules make a run of ${count} resources, and ${MAX_RUN_RESOURCES} is the most`,
    {
      hint,
    },
  );
}
