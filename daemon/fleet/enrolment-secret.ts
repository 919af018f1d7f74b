/** The secret of an enrolment token as the store has it: a hash, compared in constant time. */
import { createHash, timingSafeEqual } from 'node:crypto';

const DOMAIN = 'orch-enrolment-v1';

export const hashOfSecret = (secret: Uint8Array): string =>
  createHash('sha256').update(DOMAIN).update(secret).digest('hex');

/** @param hash null when there is no such token: it is compared all the same, so that the answer takes as long */
export function isSecretOf(hash: string | null, secret: Uint8Array): boolean {
  const known = Buffer.from(hash ?? '0'.repeat(64), 'hex');
  return timingSafeEqual(known, Buffer.from(hashOfSecret(secret), 'hex')) && hash !== null;
}
