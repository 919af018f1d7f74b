/** The sums of packages in `SHA256SUMS`, and the Ed25519 signature in `SHA256SUMS.sig`: 64 bytes over the whole file. */
import { createHash, verify } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { keyObjectOf } from '../identity/key-object.js';
import { Fault, messageOf } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';

/**
 * Checks a package against the signed sums beside it.
 * @param sha256 sum of the package
 * @throws Fault `package_invalid` when the sums are not signed by the key, or do not list the package with this sum
 */
export function requirePublished(path: string, sha256: string, publicKey: PublicKeyHex): void {
  const sums = read(join(dirname(path), 'SHA256SUMS'));
  const signature = read(join(dirname(path), 'SHA256SUMS.sig'));
  if (signature.length !== 64 || !verify(null, sums, keyObjectOf(publicKey), signature)) {
    throw new Fault('package_invalid', `SHA256SUMS beside ${path} is not signed by ${publicKey}`, {
      hint: 'do not install it; fetch the package and both files again from the publisher',
    });
  }
  const name = basename(path);
  const listed = sums
    .toString('utf8')
    .split('\n')
    .flatMap((line) => {
      const [, sum, file] = /^([0-9a-f]{64}) [ *](.+)$/.exec(line) ?? [];
      return file === name && sum !== undefined ? [sum] : [];
    });
  if (listed.includes(sha256)) return;
  const why = listed.length === 0 ? 'is not listed in SHA256SUMS' : `has the sum ${sha256}, and ${listed[0]} is listed`;
  throw new Fault('package_invalid', `${name} ${why}`, {
    hint: 'do not install it; fetch it again from the publisher',
  });
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new Fault('package_invalid', `${path} cannot be read: ${messageOf(cause)}`, {
      hint: 'SHA256SUMS and SHA256SUMS.sig must be beside the package',
      cause,
    });
  }
}

/** Returns the SHA-256 of a file in hex. Throws `package_invalid` when it cannot be read. */
export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  try {
    for await (const piece of createReadStream(path)) hash.update(piece);
  } catch (cause) {
    throw new Fault('package_invalid', `${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
  return hash.digest('hex');
}
