/** What an apply on this machine changes in what is believed of it, by the rules of an orchestrator. */
import { maskResource } from '../../resources/masked-resource.js';
import type { LocalItem, LocalOutcome } from '../programs.js';
import { type Applied, type BelievedState, resourceKey } from './believed-state.js';
import type { LocalDesired } from './local-desired.js';
import type { LocalSession } from './local-session.js';

interface FinishedApply {
  readonly desired: LocalDesired;
  readonly outcome: LocalOutcome;
  readonly operationId: string;
}

/**
 * Resources that succeeded take their new place, removals that succeeded lose theirs; what failed or was skipped keeps
 * what it had. Null when nothing is to be kept: nothing succeeded.
 */
export function stateAfter(
  session: LocalSession,
  { desired, outcome, operationId }: FinishedApply,
): BelievedState | null {
  const { state, announcements } = session;
  const before = new Map(state.applied.map((one) => [resourceKey(one), one]));
  const settled = outcome.results.filter(({ result }) => result.status === 'unchanged' || result.status === 'changed');
  if (settled.length === 0 && outcome.end !== 'succeeded') return null;
  const put = new Map<string, Applied>();
  const gone = new Set<string>();
  for (const item of [...settled].sort((a, b) => a.index - b.index)) {
    const resource = desired.resources[item.index];
    const removal = desired.removals[item.index - desired.resources.length];
    if (resource !== undefined) {
      const key = resourceKey(resource);
      const { module, kind, identity, id, name, body, taint } = maskResource(resource);
      const origin = before.get(key)?.origin ?? originOf(item, announcements.existed(key));
      const known = { module, kind, identity, id, name, body, origin, operation_id: operationId };
      put.set(key, taint === undefined ? known : { ...known, taint });
    } else if (removal !== undefined) gone.add(resourceKey(removal));
  }
  const kept = state.applied.filter((one) => !gone.has(resourceKey(one)) && !put.has(resourceKey(one)));
  return { ...state, operation_id: operationId, applied: [...kept, ...put.values()] };
}

/** What may have been there before is never removed; an apply that died may have told that it was not. */
const originOf = ({ existed }: LocalItem, announced: boolean | undefined): Applied['origin'] =>
  (announced ?? existed) === false ? 'created' : 'adopted';
