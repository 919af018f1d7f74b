/** Packs the release that the orchestrator runs from, so that it can install other machines of its kind. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../src/kernel/fault.js';
import { readManifest, requireIntact } from '../../src/release/manifest.js';
import type { OwnRelease } from '../../src/release/own-release.js';
import type { Core } from '../core/core.js';

interface OwnPackageOptions extends Pick<Core, 'logger'> {
  /** Directory for the package; it is created. */
  readonly directory: string;
  /** Returns the release of this program; null when it runs from elsewhere. */
  readonly release: () => OwnRelease | null;
}

/** Milliseconds after which a failed packing is tried again when the package is wanted. */
const RETRY_MS = 10 * 60_000;

export class OwnPackage {
  private readonly options: OwnPackageOptions;
  private readonly aborted = new AbortController();
  private packing: Promise<string | null> | null = null;
  private failedAt = Number.NEGATIVE_INFINITY;

  constructor(options: OwnPackageOptions) {
    this.options = options;
  }

  /** Returns the path of the package, and makes it first if the release has changed; null without one. One call packs, others wait. */
  file(): Promise<string | null> {
    this.packing ??= this.find().finally(() => {
      this.packing = null;
    });
    return this.packing;
  }

  /** Ends a packing in progress. */
  async stop(): Promise<void> {
    this.aborted.abort();
    await this.packing;
  }

  private async find(): Promise<string | null> {
    try {
      const release = this.options.release();
      if (release === null) return null;
      const manifest = readManifest(release.directory);
      const place = createHash('sha256').update(manifest).digest('hex').slice(0, 32);
      const file = join(this.options.directory, place, `orch-${release.version}-linux-${release.cpu}.tar.gz`);
      if (existsSync(file)) return file;
      if (performance.now() - this.failedAt < RETRY_MS || this.aborted.signal.aborted) return null;
      await this.pack(release, { manifest, place, file });
      return file;
    } catch (error) {
      if (this.aborted.signal.aborted) return null;
      this.failedAt = performance.now();
      this.options.logger.warn('the package of this orchestrator could not be made, for machines to install', {
        reason: messageOf(error),
        hint: 'it is tried again; machines can be installed from packages in the directory packages of the data directory',
      });
      return null;
    }
  }

  private async pack(
    release: OwnRelease,
    { manifest, place, file }: { readonly manifest: Buffer; readonly place: string; readonly file: string },
  ): Promise<void> {
    const { directory, logger } = this.options;
    for (const old of existsSync(directory) ? await readdir(directory) : []) {
      await rm(join(directory, old), { recursive: true });
    }
    await mkdir(join(directory, place), { recursive: true, mode: 0o700 });
    const partial = `${file}.partial`;
    try {
      await tar(release, partial, this.aborted.signal);
      // An upgrade replaces the files in place: if none has changed by now, none changed while they were packed.
      await requireIntact(release.directory);
      if (!readManifest(release.directory).equals(manifest)) throw new Error('the release was replaced meanwhile');
      await rename(partial, file);
    } finally {
      await rm(partial, { force: true });
    }
    logger.info('packed this release for machines to install', { file });
  }
}

/** Writes a tarball whose bytes depend on the release alone. */
function tar({ directory, version, cpu }: OwnRelease, file: string, signal: AbortSignal): Promise<void> {
  const words = [
    '--create',
    '--gzip',
    `--file=${file}`,
    `--transform=s,^\\.,orch-${version}-linux-${cpu}/lib/orch,`,
    '--sort=name',
    '--format=gnu',
    '--mtime=@0',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '.',
  ];
  return new Promise((resolve, reject) => {
    const child = spawn('tar', words, { cwd: directory, signal, stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (piece: Buffer) => {
      said = `${said}${piece.toString()}`.slice(0, 500);
    });
    child.on('error', (error) => reject(new Error(`tar cannot be started: ${error.message}`)));
    child.on('close', (status) => {
      if (status === 0) resolve();
      else reject(new Error(`tar ended with ${status ?? 'a signal'}: ${said.trim()}`));
    });
  });
}
