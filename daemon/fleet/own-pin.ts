/** The orchestrator's key as `curl --pinnedpubkey` and openssl read it. */
import { createHash } from 'node:crypto';
import { keyObjectOf } from '../../src/identity/key-object.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';

/** Returns the SubjectPublicKeyInfo in DER. */
export const spkiOf = (key: PublicKeyHex): Buffer => keyObjectOf(key).export({ type: 'spki', format: 'der' });

/** Returns the pin `sha256//…` of the certificate that the agent port shows. */
export const pinOf = (key: PublicKeyHex): string =>
  `sha256//${createHash('sha256').update(spkiOf(key)).digest('base64')}`;
