/** Rows of the believed state as the resources and removals that are sent to agents. */
import type { DesiredResource, Origin, Removal } from '../../src/resources/desired.js';
import type { AppliedResourceRow } from './applied-resource-store.js';

export const originOf = ({ origin }: AppliedResourceRow): Origin => (origin === 'created' ? 'created' : 'adopted');

/** As it was applied, with masks in the place of secrets. */
export function removalOf(row: AppliedResourceRow): Removal {
  const { module, kind, identity, id, name } = row;
  return { module, kind, identity, id, name, ...bodyOf(row), origin: originOf(row) };
}

/** What a drift check looks at. Order does not matter to one that only looks, so nothing waits for anything. */
export function appliedResource(row: AppliedResourceRow): DesiredResource {
  const { module, kind, identity, id, name } = row;
  return { module, kind, identity, id, name, ...bodyOf(row), after: [] };
}

function bodyOf({ body_json, taint_json }: AppliedResourceRow): Pick<DesiredResource, 'body' | 'taint'> {
  return { body: JSON.parse(body_json), ...(taint_json === null ? {} : { taint: JSON.parse(taint_json) }) };
}
