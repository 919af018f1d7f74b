/** A key of the test that signs repositories of Debian packages. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { mustRun } from './command.js';

export interface SigningKey {
  /** The public key, as armoured text and as gpg keeps it. */
  readonly armoured: string;
  readonly binary: Buffer;
  /** Signs a repository of which the whole index is `Packages.gz`. */
  readonly sign: (directory: string) => Promise<void>;
  readonly remove: () => Promise<void>;
}

/** Programs that it takes, and the Debian package that has them. */
export const keyTools = { gpg: 'gpg', 'gpg-agent': 'gpg-agent' };

const sumOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

export async function signingKey(name: string): Promise<SigningKey> {
  const home = mkdtempSync(join(tmpdir(), 'orch-key-'));
  const gpg = (...args: readonly string[]) => mustRun(['gpg', '--homedir', home, '--batch', '--yes', ...args]);
  await gpg('--passphrase', '', '--quick-gen-key', `${name} <${name}@example.org>`, 'ed25519', 'sign', 'never');
  const exported = async (...args: readonly string[]) => {
    const file = join(home, 'exported');
    await gpg(...args, '--output', file, '--export');
    return readFileSync(file);
  };
  return {
    armoured: (await exported('--armor')).toString(),
    binary: await exported(),
    sign: async (directory) => {
      const compressed = readFileSync(join(directory, 'Packages.gz'));
      const files = { Packages: gunzipSync(compressed), 'Packages.gz': compressed };
      const sums = Object.entries(files).map(([name, bytes]) => ` ${sumOf(bytes)} ${bytes.length} ${name}\n`);
      const release = join(home, 'Release');
      writeFileSync(release, `Origin: test\nDate: ${new Date().toUTCString()}\nSHA256:\n${sums.join('')}`);
      await gpg('--output', join(directory, 'InRelease'), '--clearsign', release);
    },
    remove: async () => {
      await mustRun(['gpgconf', '--homedir', home, '--kill', 'all']);
      rmSync(home, { recursive: true, force: true });
    },
  };
}
