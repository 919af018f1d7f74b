/** File systems of a few MiB, which tests fill. */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, writeSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { temporaryDirectory } from './database.js';

/** A file system of a few MiB, or the reason why there is none. */
export function tinyDisk(): { readonly path: string } | { readonly reason: string } {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return { reason: 'only root on Linux can mount a tmpfs' };
  const path = temporaryDirectory();
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', path], { encoding: 'utf8' });
  if (mounted.status !== 0) return skipped(`mount says: ${mounted.stderr.trim()}`);
  onTestFinished(() => void spawnSync('umount', ['-l', path]));
  return { path };
}

export function skipped(reason: string): { readonly reason: string } {
  console.warn(`skipped: ${reason}`);
  return { reason };
}

/** Takes all the room that is left. */
export function fill(file: string): void {
  const descriptor = openSync(file, 'w');
  try {
    for (const size of [64 * 1024, 4096, 512]) {
      const block = Buffer.alloc(size);
      for (;;) if (writeSync(descriptor, block) < size) break;
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  } finally {
    closeSync(descriptor);
  }
}
