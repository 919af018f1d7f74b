/** Rows of the believed state as the resources and removals that are sent to agents. */
import type { DesiredResource, Origin, Removal } from '../../src/resources/desired.js';
import type { AppliedResourceRow } from '../store/applied-resources.js';

export const originOf = ({ origin }: AppliedResourceRow): Origin => (origin === 'created' ? 'created' : 'adopted');

export function removalOf(row: AppliedResourceRow): Removal {
  const { module, kind, identity, id, name } = row;
  return { module, kind, identity, id, name, body: JSON.parse(row.body_json), origin: originOf(row) };
}

/** What a drift check looks at. Order does not matter to one that only looks, so nothing waits for anything. */
export function appliedResource(row: AppliedResourceRow): DesiredResource {
  const { module, kind, identity, id, name, taint_json } = row;
  const taint = taint_json === null ? {} : { taint: JSON.parse(taint_json) };
  return { module, kind, identity, id, name, body: JSON.parse(row.body_json), ...taint, after: [] };
}
