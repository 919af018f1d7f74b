/** Goes through a run in its order: wanted resources, each after the removals that stand in its way, then all other removals. */
import { groupsToApply, groupsToRemove } from './grouping.js';
import { type Run, yieldToEventLoop } from './run.js';
import type { Target } from './target.js';

/** Plans or changes one group, and reports its results. */
type Perform = (group: readonly Target[]) => Promise<void>;

/** Holds the other removals back if a wanted resource failed. Ends early when the run is stopped. */
export async function carryOut(run: Run, perform: Perform): Promise<void> {
  const { desired, scope, order } = run;
  for (const group of groupsToApply(desired, scope)) {
    if (run.isStopped) return;
    const first = await run.removalsBefore(group);
    await performEach(run, groupsToRemove(first, scope), perform);
    run.noteRoom(group, first);
    await performEach(run, [group], perform);
  }
  if (run.isStopped || order.rest.length === 0) return;
  const { failure } = run;
  if (failure !== undefined) return run.holdBack(failure);
  await run.refresh();
  await performEach(run, groupsToRemove(order.rest, scope), perform);
}

async function performEach(run: Run, groups: readonly (readonly Target[])[], perform: Perform): Promise<void> {
  for (const group of groups) {
    if (run.isStopped) return;
    await perform(group);
    await yieldToEventLoop();
  }
}
