/** `plan_hash`: what was to be applied, and what the agent observed, as two hashes joined by a dot. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../src/kernel/json.js';
import type { Steps } from '../../src/kernel/steps.js';
import type { RunContent } from '../../src/wire/parts.js';
import type { SecretHashes } from './agent-secrets.js';

/** SHA-256 in hex of what an apply would send, secrets masked: that of its canonical JSON. */
export function* desiredHash({ resources, removals }: RunContent, secrets: SecretHashes): Steps<string> {
  const hash = createHash('sha256');
  const add = function* (items: readonly unknown[]): Steps<void> {
    for (const [index, item] of items.entries()) {
      hash.update(index === 0 ? canonicalJson(item) : `,${canonicalJson(item)}`);
      yield;
    }
  };
  hash.update('{"removals":[');
  yield* add(removals);
  hash.update('],"resources":[');
  yield* add(resources);
  return hash.update(`],"secrets":${canonicalJson(secrets)}}`).digest('hex');
}

export const planHash = (desired: string, observed: string): string => `${desired}.${observed}`;

/** The two parts of a plan hash, which the contract's pattern has already checked. */
export function splitPlanHash(hash: string): { readonly desired: string; readonly observed: string } {
  const [desired = '', observed = ''] = hash.split('.');
  return { desired, observed };
}
