/** Restricts secrets to agents by node ID and by operator-given tags, never by attributes that an agent reports. */
import type { NewRestriction, Restriction } from '../../src/contract/secrets.js';
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { isNodeId } from '../../src/kernel/ids.js';
import { matches, parseSelector, type Selector } from '../../src/language/selector.js';
import { keysOf, notGranted, type Rights } from '../core/rights.js';
import type { Queryable } from '../database/schema.js';
import { protectedKeys } from '../fleet/protected-tags.js';

/**
 * Returns the restriction to store; null when every approved agent may have the secret.
 * Throws `invalid_restriction`, `invalid_selector`.
 */
export function readRestriction(given: NewRestriction | null | undefined): Restriction | null {
  const tags = given?.tags ?? null;
  // The API shows a restriction by tags alone with an empty list, so that form is accepted back.
  const nodes = tags !== null && given?.node_ids?.length === 0 ? null : (given?.node_ids ?? null);
  if (nodes !== null) checkNodes(nodes);
  if (tags !== null) checkTags(tags);
  return nodes === null && tags === null ? null : { node_ids: nodes === null ? null : [...new Set(nodes)], tags };
}

export interface Recipient {
  readonly nodeId: string;
  readonly name: string;
  readonly tags: Readonly<Record<string, string>>;
}

/** Returns why the restriction denies an agent the secret; null when it does not. */
export function refusalBy({ node_ids: nodes, tags }: Restriction, recipient: Recipient): string | null {
  const refused = `may not be given to agent "${recipient.name}": it is restricted to`;
  if (nodes !== null && !nodes.includes(recipient.nodeId)) return `${refused} other agents`;
  if (tags === null || matches(parseSelector(tags), { attributes: {}, tags: recipient.tags })) return null;
  return `${refused} agents whose tags match "${tags}"`;
}

/**
 * Throws `not_granted` unless the operator holds the rights to secrets and to apply on every machine that may ever have the secret,
 * and for a tag that only this restriction would protect, because others could not set it any longer.
 */
export async function refuseBeyond(
  tx: Queryable,
  rights: Rights,
  { name, restriction }: { readonly name: string; readonly restriction: Restriction | null },
): Promise<void> {
  if (!rights.isLimited) return;
  const selector = selectorOf(restriction);
  const missing = (['secrets', 'apply'] as const).find((right) => !rights.covers(right, selector, null));
  if (missing !== undefined) throw beyond(notGranted(missing, `every machine that may have the secret ${name}`));
  const isProtected = await protectedKeys(tx);
  const other = keysOf(selector).find((key) => !isProtected.has(key));
  if (other !== undefined) throw beyond(notGranted(`tag:${other}`, 'all machines, which a restriction by it needs'));
}

const beyond = ({ message, data }: Fault): Fault =>
  new Fault('not_granted', message, {
    hint: 'restrict the secret to the machines of your grants, by their tags: --restrict-tags env=dev',
    ...(data !== undefined && { data }),
  });

/** Returns the selector of the machines that may have a secret. */
function selectorOf(restriction: Restriction | null): Selector {
  const { node_ids: nodes = null, tags = null } = restriction ?? {};
  const ofNodes = nodes === null ? [] : [{ key: 'node_id', operator: 'in', values: new Set(nodes) } as const];
  return { text: tags ?? '', terms: [...ofNodes, ...(tags === null ? [] : parseSelector(tags).terms)] };
}

function checkNodes(nodes: readonly string[]): void {
  if (nodes.length === 0) {
    throw invalid('an empty list of agents would keep the secret from all of them', [
      { path: '/restriction/node_ids', message: 'is empty; leave it out, or send null, to allow every agent' },
    ]);
  }
  const wrong = nodes.flatMap((node, index): FaultDetail[] =>
    isNodeId(node) ? [] : [{ path: `/restriction/node_ids/${index}`, message: 'is not a node ID of 32 hex digits' }],
  );
  if (wrong.length > 0) throw invalid(`${wrong.length} of the node IDs are none`, wrong);
}

function checkTags(text: string): void {
  const attribute = parseSelector(text).terms.find(({ key }) => !key.startsWith('tag.'))?.key;
  if (attribute === undefined) return;
  const message = `"${attribute}" is what an agent says of itself, so it cannot keep a secret from it`;
  throw invalid(message, [{ path: '/restriction/tags', message }], `use tags; a tag of that name is tag.${attribute}`);
}

const invalid = (message: string, errors: readonly FaultDetail[], hint?: string): Fault =>
  new Fault('invalid_restriction', `the restriction is not valid: ${message}`, { errors, ...(hint ? { hint } : {}) });
