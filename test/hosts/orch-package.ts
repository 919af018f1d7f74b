/** Makes the packages of the built project, for hosts to install. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mustRun } from './command.js';

const program = fileURLToPath(new URL('../../scripts/package.mjs', import.meta.url));

type Format = 'deb' | 'rpm' | 'tar';

/** Returns a new directory with the packages of these formats (about half a minute for one), signed by a new key. */
export const makePackages = (...formats: readonly Format[]): Promise<string> =>
  makePackagesOf(generateKeyPairSync('ed25519').privateKey, ...formats);

/** Returns a new directory with the packages of these formats, signed by an Ed25519 key. */
export async function makePackagesOf(publisher: KeyObject, ...formats: readonly Format[]): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'orch-packages-'));
  const key = join(mkdtempSync(join(tmpdir(), 'orch-release-key-')), 'key.pem');
  try {
    writeFileSync(key, publisher.export({ type: 'pkcs8', format: 'pem' }));
    const argv = [process.execPath, program, ...formats, '--fast', '--out', directory, '--sign', key];
    await mustRun(argv, { timeoutMs: 600_000 });
  } finally {
    rmSync(dirname(key), { recursive: true });
  }
  return directory;
}
