/**
 * Encrypts a private key with a passphrase: PKCS#8 with PBES2, scrypt and AES-256-CBC, which every OpenSSL since 1.1
 * reads. Node's own export stretches the passphrase with 2,048 rounds of PBKDF2 only, a thousandth of the work.
 */
import { createCipheriv, type KeyObject, randomBytes, scryptSync } from 'node:crypto';
import { integer, objectId, octetString, sequence } from './der.js';

/** 16 MiB and about 0.2 s a guess; OpenSSL allows 32 MiB when it reads. */
const SCRYPT = { N: 2 ** 14, r: 8, p: 5 } as const;

/** PEM that opens with that passphrase only. */
export function encryptedPem(key: KeyObject, passphrase: string): string {
  const salt = randomBytes(16);
  const iv = randomBytes(16);
  const secret = scryptSync(Buffer.from(passphrase, 'utf8'), salt, 32, SCRYPT);
  const cipher = createCipheriv('aes-256-cbc', secret, iv);
  const content = Buffer.concat([cipher.update(key.export({ type: 'pkcs8', format: 'der' })), cipher.final()]);
  const der = sequence(algorithm(salt, iv), octetString(content));
  const base64 = der.toString('base64').replace(/.{64}(?=.)/g, '$&\n');
  return `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${base64}\n-----END ENCRYPTED PRIVATE KEY-----\n`;
}

function algorithm(salt: Buffer, iv: Buffer): Buffer {
  const scrypt = sequence(octetString(salt), integer(SCRYPT.N), integer(SCRYPT.r), integer(SCRYPT.p));
  const stretch = sequence(objectId('1.3.6.1.4.1.11591.4.11'), scrypt);
  const cipher = sequence(objectId('2.16.840.1.101.3.4.1.42'), octetString(iv));
  return sequence(objectId('1.2.840.113549.1.5.13'), sequence(stretch, cipher));
}
