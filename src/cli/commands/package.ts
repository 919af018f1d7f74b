/** `orch package verify`: checks a package file before it is installed. */
import { createHash, verify } from 'node:crypto';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { keyObjectOf } from '../../identity/key-object.js';
import { Fault, messageOf } from '../../kernel/fault.js';
import type { PublicKeyHex } from '../../kernel/ids.js';
import { argument, defineCommand, text } from '../define-command.js';
import { fields, lines, stack } from '../outcome.js';
import { readPublicKey } from '../read-public-key.js';
import { readInlineOrFile } from '../text-files.js';

/** The key that signs the packages of this installation's publisher. */
const RELEASE_KEY = '/usr/lib/orch/release.pub';

/** `orch package verify`. */
export const verifyPackage = defineCommand({
  examples: ['orch package verify orch_0.1.0_amd64.deb', 'orch package verify orch_0.1.0_amd64.deb --key 3b6a27bc…29'],
  detail: [
    'Reads SHA256SUMS and its Ed25519 signature SHA256SUMS.sig beside FILE, checks the signature and then the sum of FILE.',
    `Without --key the signature must be of the key that came with the installed package (${RELEASE_KEY}).`,
  ],
  access: 'local',
  args: { file: argument('FILE', 'a package', 'file') },
  options: { key: text('KEY', 'public key of the publisher: hex, an OpenSSH line, or @FILE', { completes: 'file' }) },
  run: async ({ readInput }, { file, key }) => {
    const path = resolve(file);
    const given = key ?? releaseKey();
    const publicKey = readPublicKey(
      await readInlineOrFile(given, readInput),
      key === undefined ? RELEASE_KEY : '--key',
    );
    const sums = read(join(dirname(path), 'SHA256SUMS'));
    requireSigned(sums, { path, publicKey });
    const sha256 = await sha256Of(path);
    requireListed(sums.toString('utf8'), { path, sha256 });
    return {
      body: { file: path, sha256, public_key: publicKey },
      names: [sha256],
      view: stack(
        lines(`${basename(path)} is as it was published.`),
        fields(['SHA-256', sha256], ['Signed by', publicKey]),
      ),
    };
  },
});

function releaseKey(): string {
  if (existsSync(RELEASE_KEY)) return `@${RELEASE_KEY}`;
  throw new Fault('usage', 'this installation brought no key of a publisher', {
    hint: 'name the key that signs the packages with --key',
  });
}

function requireSigned(
  sums: Buffer,
  { path, publicKey }: { readonly path: string; readonly publicKey: PublicKeyHex },
): void {
  const signature = read(join(dirname(path), 'SHA256SUMS.sig'));
  if (signature.length === 64 && verify(null, sums, keyObjectOf(publicKey), signature)) return;
  throw new Fault('package_invalid', `SHA256SUMS beside ${path} is not signed by ${publicKey}`, {
    hint: 'do not install it; fetch the package and both files again from the publisher',
  });
}

function requireListed(sums: string, { path, sha256 }: { readonly path: string; readonly sha256: string }): void {
  const name = basename(path);
  const listed = sums.split('\n').flatMap((line) => {
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

async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  try {
    for await (const piece of createReadStream(path)) hash.update(piece);
  } catch (cause) {
    throw new Fault('package_invalid', `${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
  return hash.digest('hex');
}
