/** Looks at the wanted resources again after removals, which may have touched them, and repairs them. */
import type { Host } from '../../resources/host.js';
import type { RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import { applyGroup, type Intend } from './apply-group.js';
import { carryOut } from './carry-out.js';
import type { HeldResults } from './held-results.js';
import { Run, type RunOptions } from './run.js';

interface SecondPassOptions extends RunOptions {
  readonly intend?: Intend | undefined;
}

/** True when the run has removed something, or has tried to. */
export const hasRemoved = ({ results }: Run): boolean =>
  results.some(
    ({ result: { action, status } }) => action === 'remove' && (status === 'changed' || status === 'failed'),
  );

/** Corrects the held results of the first pass. A pass that is stopped cuts the first one. */
export async function secondPass(
  first: Run,
  held: HeldResults,
  content: RunContent,
  host: Host,
  { onResults, intend, ...options }: SecondPassOptions,
): Promise<void> {
  const run = new Run(content, host, {
    ...options,
    purpose: 'apply',
    existence: first.existence,
    onResults: (_items, notes) => onResults?.([], notes),
  });
  run.presume(first);
  await carryOut(run, (group) => applyGroup(run, group, intend));
  // A restart of the agent itself is still to come, so the second pass plans it once more.
  const isRepeated = ({ index, result: { action } }: RunItem) =>
    first.deferring.has(index) && (action === 'restart' || action === 'reload');
  held.replace(run.results.filter((item) => !isRepeated(item)));
  if (!run.isComplete || run.wasCut) first.cut();
}
