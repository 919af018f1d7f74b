/** Keys and tokens that are no operator's: the one for scraping, and the one that hides idempotency keys in the store. */
import { createHash, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';

/** Compared in the same time whatever was sent; no token is none. */
export const isToken = (token: string, given: string): boolean =>
  token !== '' && timingSafeEqual(digestOf(token), digestOf(given));

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Of the identity key, which is in no store: see `IdempotencyKeys`. */
export const idempotencyHashKey = (privateKey: KeyObject): Buffer =>
  Buffer.from(hkdfSync('sha256', privateKey.export({ type: 'pkcs8', format: 'der' }), '', 'orch-idempotency-v1', 32));
