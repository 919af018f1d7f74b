/** Restricts secrets to agents by node ID and by operator-given tags, never by attributes that an agent reports. */
import type { NewRestriction, Restriction } from '../../src/contract/secrets.js';
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { isNodeId } from '../../src/kernel/ids.js';
import { matches, parseSelector } from '../../src/language/selector.js';

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
