/** Rows of the believed state as the resources and removals that are sent to agents. */
import { escapePointer } from '../../src/kernel/validator.js';
import { CATALOGUE } from '../../src/resources/catalogue.js';
import type { DesiredResource, Origin, Removal } from '../../src/resources/desired.js';
import type { AppliedResourceRow } from '../store/applied-resources.js';

export const originOf = ({ origin }: AppliedResourceRow): Origin => (origin === 'created' ? 'created' : 'adopted');

export function removalOf(row: AppliedResourceRow): Removal {
  const { module, kind, identity, id, name } = row;
  return { module, kind, identity, id, name, body: withoutSecrets(row), origin: originOf(row) };
}

/** The body without members that hold a secret, as far as it is whole without them: a mask must not be taken for a value. */
function withoutSecrets({ kind, body_json, taint_json }: AppliedResourceRow): Record<string, unknown> {
  const body: Record<string, unknown> = JSON.parse(body_json);
  if (taint_json === null) return body;
  const pointers = Object.keys(JSON.parse(taint_json));
  const schema: { readonly required?: readonly string[] } = CATALOGUE.get(kind)?.schema ?? {};
  const isKept = (name: string) =>
    schema.required?.includes(name) === true ||
    !pointers.some((pointer) => `${pointer}/`.startsWith(`/${escapePointer(name)}/`));
  return Object.fromEntries(Object.entries(body).filter(([name]) => isKept(name)));
}

/** What a drift check looks at. Order does not matter to one that only looks, so nothing waits for anything. */
export function appliedResource(row: AppliedResourceRow): DesiredResource {
  const { module, kind, identity, id, name, taint_json } = row;
  const taint = taint_json === null ? {} : { taint: JSON.parse(taint_json) };
  return { module, kind, identity, id, name, body: JSON.parse(row.body_json), ...taint, after: [] };
}
