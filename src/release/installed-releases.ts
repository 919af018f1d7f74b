/**
 * Releases on a machine: `/usr/lib/orch` of a package, and those that upgrades bring in `/opt/orch/releases`, of which the link
 * `/opt/orch/current` names the one that counts.
 */
import { verify } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { renameDurably } from '../disk/durable.js';
import { keyObjectOf } from '../identity/key-object.js';
import { Fault, systemCodeOf } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import { readManifest, requireIntact } from './manifest.js';
import { type OwnRelease, ownRelease } from './own-release.js';

export interface ReleasePlaces {
  /** Release of the Linux package. */
  readonly packaged: string;
  /** Directory of the releases that upgrades and the installer bring. */
  readonly releases: string;
  /** Link to the one of them that counts. */
  readonly current: string;
}

export const RELEASE_PLACES: ReleasePlaces = {
  packaged: '/usr/lib/orch',
  releases: '/opt/orch/releases',
  current: '/opt/orch/current',
};

/**
 * Returns the release that this process runs from, if an upgrade can replace it; null for another installation, such as a checkout.
 * Throws `package_invalid`.
 */
export function replaceableRelease(places: ReleasePlaces = RELEASE_PLACES): OwnRelease | null {
  const release = ownRelease();
  if (release === null) return null;
  const { directory } = release;
  return directory === places.packaged || dirname(directory) === realOf(places.releases) ? release : null;
}

/**
 * Checks that a directory is exactly what its manifest lists, and that `key` has signed the manifest.
 * @param key null accepts an unsigned manifest
 * @throws Fault `package_invalid`
 */
export async function verifyRelease(directory: string, key: PublicKeyHex | null): Promise<void> {
  if (key !== null) requireSigned(directory, key);
  await requireIntact(directory);
}

/**
 * Gives directories and files of a new release their modes, because neither sums nor signatures cover those of a tarball. A file
 * keeps the right to be started, and nothing else: no setuid bit, and no write access of other users.
 */
export function setReleaseModes(directory: string): void {
  chmodSync(directory, 0o755);
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) setReleaseModes(path);
    else if (entry.isFile()) chmodSync(path, (lstatSync(path).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}

function requireSigned(directory: string, key: PublicKeyHex): void {
  const path = join(directory, 'MANIFEST.sig');
  const signature = existsSync(path) ? readFileSync(path) : null;
  if (signature?.length === 64 && verify(null, readManifest(directory), keyObjectOf(key), signature)) return;
  const why = signature === null ? 'it has no signature' : 'its signature does not match';
  throw new Fault('package_invalid', `the release is not one of ${key}: ${why}`, {
    hint: 'put the release as it was published into the packages directory of the orchestrator',
  });
}

/** Returns the release that the link names; null without a link. */
export function currentRelease({ current }: ReleasePlaces = RELEASE_PLACES): string | null {
  try {
    return realOf(join(dirname(current), readlinkSync(current)));
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return null;
    throw cause;
  }
}

/** Points the link at a release, atomically; null removes it, so that the release of the Linux package counts again. */
export function switchRelease(directory: string | null, { current }: ReleasePlaces = RELEASE_PLACES): void {
  if (directory === null) {
    rmSync(current, { force: true });
    return;
  }
  mkdirSync(dirname(current), { recursive: true, mode: 0o755 });
  const next = `${current}.new`;
  rmSync(next, { force: true });
  symlinkSync(relative(realOf(dirname(current)), realOf(directory)), next);
  renameDurably(next, current);
}

/** Returns a path without symbolic links, as `/opt` is one on some systems; the path itself when nothing is there. */
export function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** Deletes all releases that upgrades brought, except for `kept`. */
export function pruneReleases(kept: readonly string[], { releases }: ReleasePlaces = RELEASE_PLACES): void {
  if (!existsSync(releases)) return;
  const real = kept.map(realOf);
  for (const name of readdirSync(releases)) {
    const directory = join(realOf(releases), name);
    if (!real.includes(directory)) rmSync(directory, { recursive: true, force: true });
  }
}
