/** Refuses an apply whose purges would delete more than it may, before anything is changed. */
import type { Host } from '../../resources/host.js';
import { isPurge, purgedBy, purgeGuardFault } from '../../resources/purge.js';
import { MAX_UNASKED } from '../../resources/removal-guard.js';
import type { RunContent } from '../../wire/parts.js';
import { Run, type RunOptions } from './run.js';
import type { Refusal } from './target.js';

/**
 * Returns why an apply may not begin; null if it may.
 * @param mayPurge maximum entries that the purges of the apply may delete together [default: `MAX_UNASKED`]
 */
export async function refusalOfPurges(
  content: RunContent,
  host: Host,
  { mayPurge, clock, signal, ledger }: RunOptions & { readonly mayPurge?: number | undefined },
): Promise<Refusal | null> {
  if (!content.resources.some(isPurge)) return null;
  // All resources are in the run, because a purge spares what any of them declares.
  const run = new Run(content, host, { clock, signal, ledger, purpose: 'plan', isIndependent: true });
  const limit = mayPurge ?? MAX_UNASKED;
  let count = 0;
  const directories: string[] = [];
  const purges = run.desired.filter(({ source }) => isPurge(source));
  for (const examined of await run.examine(purges)) {
    if (!('pending' in examined)) continue;
    const { target, change } = examined.pending;
    const purged = purgedBy({ kind: target.source.kind, status: 'pending', changes: [...change.changes] });
    count += purged;
    if (purged > 0) directories.push(target.source.identity);
  }
  if (count <= limit) return null;
  const { code, message, hint } = purgeGuardFault(count, limit, directories);
  return { code, message: `${message}; ${hint ?? ''}` };
}
