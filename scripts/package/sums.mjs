/** The list of SHA-256 sums of packages, and its Ed25519 signature: 64 bytes over the file as it is. */
import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { createReadStream, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { PackagingError } from './run.mjs';

/**
 * Writes `SHA256SUMS`, which `sha256sum --check` reads as well, and with a key `SHA256SUMS.sig`.
 *
 * @param {{files: readonly string[], out: string, key: import('node:crypto').KeyObject | null}} options paths of the packages,
 *   the directory for the lists, and the private key
 * @returns {Promise<readonly string[]>} the paths of the lists
 */
export async function writeSums({ files, out, key }) {
  const lines = await Promise.all(files.map(async (path) => `${await sha256Of(path)}  ${basename(path)}\n`));
  const text = lines.sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1)).join('');
  const sums = join(out, 'SHA256SUMS');
  writeFileSync(sums, text);
  if (key === null) return [sums];
  writeFileSync(`${sums}.sig`, sign(null, Buffer.from(text), key));
  return [sums, `${sums}.sig`];
}

async function sha256Of(path) {
  const hash = createHash('sha256');
  for await (const piece of createReadStream(path)) hash.update(piece);
  return hash.digest('hex');
}

/** Loads the signing key, an Ed25519 key in PEM as "orch operator init" makes it. Throws {PackagingError} for another one. */
export function loadSigningKey(path) {
  let key;
  try {
    key = createPrivateKey(readFileSync(path));
  } catch (error) {
    throw new PackagingError(`${path} holds no usable private key: ${error.message}`);
  }
  if (key.asymmetricKeyType !== 'ed25519')
    throw new PackagingError(`${path} holds a ${key.asymmetricKeyType} key, not an Ed25519 one`);
  return key;
}

/** Returns the public key of a private one as 64 hex digits. */
export const publicHexOf = (key) =>
  createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex');
