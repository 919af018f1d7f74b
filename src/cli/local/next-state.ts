/** What an apply on this machine changes in what is believed of it, by the rules of an orchestrator. */
import { maskResource } from '../../resources/tainted-body.js';
import type { LocalItem } from '../programs.js';
import type { Announcements } from './announcements.js';
import { type Applied, type BelievedState, type Changes, resourceKey } from './believed-state.js';
import type { LocalDesired } from './local-desired.js';

export interface Application {
  readonly desired: LocalDesired;
  readonly operationId: string;
  /** What was believed when it began, by resource key. */
  readonly before: ReadonlyMap<string, Applied>;
  readonly announcements: Announcements;
}

/** Resources that succeeded take their new place, removals that succeeded lose theirs; what failed or was skipped keeps what it had. */
export function changesOf(application: Application, items: readonly LocalItem[]): Changes {
  const { desired, operationId } = application;
  const put: Applied[] = [];
  const gone: string[] = [];
  for (const item of items) {
    if (item.result.status !== 'unchanged' && item.result.status !== 'changed') continue;
    const resource = desired.resources[item.index];
    const removal = desired.removals[item.index - desired.resources.length];
    if (resource !== undefined) {
      const { module, kind, identity, id, name, body, taint } = maskResource(resource);
      const origin = originOf(application, resourceKey(resource), item);
      const known = { module, kind, identity, id, name, body, origin, operation_id: operationId };
      put.push(taint === undefined ? known : { ...known, taint });
    } else if (removal !== undefined) gone.push(resourceKey(removal));
  }
  return { operation_id: operationId, put, gone };
}

/** Without what is believed already. */
export function newsOf({ before }: Application, changes: Changes): Changes {
  const asText = (applied: Applied | undefined) => JSON.stringify({ ...applied, operation_id: '' });
  return { ...changes, put: changes.put.filter((one) => asText(before.get(resourceKey(one))) !== asText(one)) };
}

/** Later changes count. What has an order stands in it, behind all that has none. */
export function stateAfter(state: BelievedState, changes: readonly Changes[]): BelievedState {
  return changes.reduce(stateAfterOne, state);
}

function stateAfterOne(state: BelievedState, { operation_id, put, gone, order }: Changes): BelievedState {
  const applied = new Map(state.applied.map((one) => [resourceKey(one), one]));
  for (const key of gone) applied.delete(key);
  for (const one of put) applied.set(resourceKey(one), one);
  return { ...state, operation_id, applied: inOrder([...applied], order ?? []) };
}

function inOrder(entries: readonly (readonly [string, Applied])[], order: readonly string[]): Applied[] {
  const places = new Map(order.map((key, place) => [key, place]));
  const placeOf = ([key]: readonly [string, Applied]) => places.get(key) ?? -1;
  return [...entries].sort((a, b) => placeOf(a) - placeOf(b)).map(([, applied]) => applied);
}

/** What may have been there before is never removed; an apply that died may have told that it was not. */
const originOf = ({ before, announcements }: Application, key: string, { existed }: LocalItem): Applied['origin'] =>
  before.get(key)?.origin ?? ((announcements.existed(key) ?? existed) === false ? 'created' : 'adopted');
