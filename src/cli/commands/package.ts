/** `orch package verify`: checks a package file before it is installed. */
import { basename, resolve } from 'node:path';
import { Fault } from '../../kernel/fault.js';
import type { PublicKeyHex } from '../../kernel/ids.js';
import { ownRelease } from '../../release/own-release.js';
import { requirePublished, sha256OfFile } from '../../release/package-sums.js';
import { argument, defineCommand } from '../define-command.js';
import { text } from '../options.js';
import { fields, lines, stack } from '../outcome.js';
import { readPublicKey } from '../read-public-key.js';
import { readInlineOrFile } from '../text-files.js';

/** `orch package verify`. */
export const verifyPackage = defineCommand({
  examples: ['orch package verify orch_0.1.0_amd64.deb', 'orch package verify orch_0.1.0_amd64.deb --key 3b6a27bc…29'],
  detail: [
    'Checks the Ed25519 signature of SHA256SUMS beside FILE (SHA256SUMS.sig), then the sum of FILE. Without --key the',
    'signature must be of the key that came with the installed package (its file release.pub).',
  ],
  access: 'local',
  args: { file: argument('FILE', 'a package', 'file') },
  options: { key: text('KEY', 'public key of the publisher: hex, an OpenSSH line, or @FILE', { completes: 'file' }) },
  run: async ({ readInput }, { file, key }) => {
    const path = resolve(file);
    const publicKey =
      key === undefined ? ownPublisher() : readPublicKey(await readInlineOrFile(key, readInput), '--key');
    const sha256 = await sha256OfFile(path);
    requirePublished(path, sha256, publicKey);
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

function ownPublisher(): PublicKeyHex {
  const key = ownRelease()?.publicKey ?? null;
  if (key !== null) return key;
  throw new Fault('usage', 'this installation brought no key of a publisher', {
    hint: 'name the key that signs the packages with --key',
  });
}
