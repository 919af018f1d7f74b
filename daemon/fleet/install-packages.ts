/** The install endpoint's view of packages. */
import type { FileHandle } from 'node:fs/promises';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import type { InstallPackage } from './install-script.js';

/** Packages that machines may download. */
export interface InstallPackages {
  /** Returns the newest one for each processor that machines may get. */
  newest(): Promise<readonly InstallPackage[]>;
  /** Opens one for reading; null for an unknown sum. The caller closes it. */
  open(sha256: string): Promise<{ readonly size: number; readonly handle: FileHandle } | null>;
  /** Returns the key that signs the releases; null when they are not signed. */
  releaseKey(): PublicKeyHex | null;
}
