/** `plan_hash`: what was to be applied, and what the agent observed, as two hashes joined by a dot. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../src/kernel/json.js';
import type { RunContent } from '../../src/wire/parts.js';
import type { SecretHashes } from './agent-secrets.js';

/** SHA-256 in hex of what an apply would send, secrets masked. */
export function desiredHash(masked: RunContent, secrets: SecretHashes): string {
  return createHash('sha256')
    .update(canonicalJson({ resources: masked.resources, removals: masked.removals, secrets }))
    .digest('hex');
}

export const planHash = (desired: string, observed: string): string => `${desired}.${observed}`;

/** The two parts of a plan hash, which the contract's pattern has already checked. */
export function splitPlanHash(hash: string): { readonly desired: string; readonly observed: string } {
  const [desired = '', observed = ''] = hash.split('.');
  return { desired, observed };
}
