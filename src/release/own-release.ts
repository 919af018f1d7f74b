/** The release that this program runs from: the directory that packages install as `/usr/lib/orch`. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parsePublicKey } from '../identity/public-key.js';
import { Fault, messageOf, systemCodeOf } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';

/** Processors that releases are made for, as `process.arch` names them. */
export const RELEASE_CPUS = ['x64', 'arm64'] as const;
export type ReleaseCpu = (typeof RELEASE_CPUS)[number];

export interface OwnRelease {
  readonly directory: string;
  readonly version: string;
  readonly cpu: ReleaseCpu;
  /** Key that signs the packages of the publisher; null when the release was made without one. */
  readonly publicKey: PublicKeyHex | null;
}

/**
 * Returns the release of the running program; null when it runs from elsewhere, such as a checkout.
 * @param runtime path of the Node.js that runs it
 * @throws Fault `package_invalid` for a release that is damaged
 */
export function ownRelease(runtime = process.execPath): OwnRelease | null {
  const directory = dirname(dirname(runtime));
  if (!existsSync(join(directory, 'MANIFEST')) || !existsSync(join(directory, 'dist/orch/orch.js'))) return null;
  const file = join(directory, 'RELEASE');
  try {
    const { version, cpu } = JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, unknown>>;
    const known = RELEASE_CPUS.find((one) => one === cpu);
    if (typeof version !== 'string' || !RELEASE_VERSION.test(version) || known === undefined) {
      throw new Error('it names no version or no known processor');
    }
    return { directory, version, cpu: known, publicKey: publisherOf(directory) };
  } catch (cause) {
    throw new Fault('package_invalid', `${file} is damaged: ${messageOf(cause)}`, {
      hint: 'install orch again',
      cause,
    });
  }
}

/** A version in the name of a package. */
export const RELEASE_VERSION = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]{1,40})?$/;

function publisherOf(directory: string): PublicKeyHex | null {
  const file = join(directory, 'release.pub');
  try {
    return parsePublicKey(readFileSync(file, 'utf8').trim(), file);
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return null;
    throw cause;
  }
}
