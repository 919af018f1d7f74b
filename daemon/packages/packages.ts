/**
 * The packages that the orchestrator offers to machines: tarballs that the operator has copied into the directory `packages` of the
 * data directory, and its own release.
 */
import { createHash } from 'node:crypto';
import { createReadStream, type Stats } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import type { Service } from '../../src/kernel/service.js';
import { VERSION } from '../../src/kernel/version.js';
import { type OwnRelease, RELEASE_VERSION, type ReleaseCpu } from '../../src/release/own-release.js';
import { requirePublished } from '../../src/release/package-sums.js';
import { compareVersions } from '../../src/release/version-order.js';
import type { Core } from '../core/core.js';
import { OwnPackage } from './own-package.js';

export interface Package {
  readonly version: string;
  readonly platform: 'linux';
  readonly cpu: ReleaseCpu;
  /** SHA-256 in hex. */
  readonly sha256: string;
  /** Size in bytes. */
  readonly size: number;
  /** Path of the file. */
  readonly file: string;
}

/** A package that is open for reading. */
export interface OpenPackage {
  readonly size: number;
  /** The caller closes it. */
  readonly handle: FileHandle;
}

interface PackagesOptions extends Pick<Core, 'logger'> {
  readonly dataDir: string;
  /** Returns the release of this program; null when it runs from elsewhere. */
  readonly release: () => OwnRelease | null;
}

/** The facts of a file, valid as long as it does not change. */
interface Examined {
  readonly mark: string;
  /** Sum of a complete file; null for a refused one. */
  readonly sha256: string | null;
}

const NAME = /^orch-(.+)-linux-(x64|arm64)\.tar\.gz$/;

export class Packages implements Service {
  readonly name = 'packages';
  private readonly options: PackagesOptions;
  private readonly own: OwnPackage;
  private readonly examined = new Map<string, Examined>();
  /** Reason with which each file was refused last, so that the log names it once. */
  private readonly refusals = new Map<string, string>();
  private looking: Promise<readonly Package[]> | null = null;

  constructor(options: PackagesOptions) {
    this.options = options;
    this.own = new OwnPackage({ ...options, directory: join(options.dataDir, 'own-package') });
  }

  /** Begins to pack and to sum in the background, so that the first machine does not wait for it. */
  async start(): Promise<void> {
    void this.list();
  }

  async stop(): Promise<void> {
    await this.own.stop();
    await this.looking;
  }

  /** Returns the packages that may be installed, newest first. Looks at the files again; of two equal ones it returns one. */
  list(): Promise<readonly Package[]> {
    this.looking ??= this.look().finally(() => {
      this.looking = null;
    });
    return this.looking;
  }

  /** Returns the newest package for each processor that is not newer than this orchestrator. */
  async newest(): Promise<readonly Package[]> {
    const usable = (await this.list()).filter(({ version }) => compareVersions(version, VERSION) <= 0);
    return usable.filter(({ cpu }, index) => usable.findIndex((other) => other.cpu === cpu) === index);
  }

  /** Returns the key that signs releases; null when this program was not signed. Throws `package_invalid` for a damaged one. */
  releaseKey(): PublicKeyHex | null {
    return this.options.release()?.publicKey ?? null;
  }

  /** Opens a package; null when there is none with this sum. */
  async open(sha256: string): Promise<OpenPackage | null> {
    const found = (await this.list()).find((one) => one.sha256 === sha256);
    if (found === undefined) return null;
    const handle = await open(found.file, 'r');
    const info = await handle.stat();
    if (this.examined.get(found.file)?.mark === markOf(info)) return { size: info.size, handle };
    await handle.close();
    return null;
  }

  private async look(): Promise<readonly Package[]> {
    let key: PublicKeyHex | null;
    try {
      key = this.releaseKey();
    } catch (error) {
      // Without the key, packages of any origin would be offered.
      this.refuse('any package', error);
      return [];
    }
    const own = await this.own.file();
    const placed = await this.placed();
    const found: Package[] = [];
    for (const file of own === null ? placed : [own, ...placed]) {
      const one = await this.examine(file, file === own ? null : key);
      if (one !== null && !found.some(({ sha256 }) => sha256 === one.sha256)) found.push(one);
    }
    return found.sort((a, b) => compareVersions(b.version, a.version));
  }

  /** Returns the files that the operator has copied; none without the directory. */
  private async placed(): Promise<readonly string[]> {
    const directory = join(this.options.dataDir, 'packages');
    try {
      const names = await readdir(directory);
      return names
        .filter((name) => NAME.test(name))
        .sort()
        .map((name) => join(directory, name));
    } catch (error) {
      if (systemCodeOf(error) !== 'ENOENT') this.refuse(directory, error);
      return [];
    }
  }

  /** Returns a file as a package; null for one that must not be served, which the log names once. */
  private async examine(file: string, key: PublicKeyHex | null): Promise<Package | null> {
    const [, version = '', cpu] = NAME.exec(basename(file)) ?? [];
    if (!RELEASE_VERSION.test(version)) return null;
    try {
      const info = await stat(file);
      if (!info.isFile()) throw new Error('it is no regular file');
      const sha256 = await this.sumOf(file, info);
      if (key !== null) requirePublished(file, sha256, key);
      this.refusals.delete(file);
      return { version, platform: 'linux', cpu: cpu as ReleaseCpu, sha256, size: info.size, file };
    } catch (error) {
      this.refuse(file, error);
      return null;
    }
  }

  /** Returns the sum of a complete file. Throws for one that is still being copied. */
  private async sumOf(file: string, info: Stats): Promise<string> {
    const mark = markOf(info);
    const known = this.examined.get(file);
    if (known?.mark !== mark) {
      const sha256 = await sumOfWhole(file);
      if (markOf(await stat(file)) !== mark) throw new Error('it was changed while it was read');
      this.examined.set(file, { mark, sha256 });
    }
    const sum = this.examined.get(file)?.sha256 ?? null;
    if (sum === null) throw new Error('it is incomplete or damaged');
    return sum;
  }

  private refuse(file: string, error: unknown): void {
    const reason = messageOf(error);
    if (this.refusals.get(file) === reason) return;
    this.refusals.set(file, reason);
    this.options.logger.warn('a package is not offered to machines', { file, reason });
  }
}

/** Changes whenever the file changes. */
const markOf = ({ ino, size, mtimeMs, ctimeMs }: Stats): string => [ino, size, mtimeMs, ctimeMs].join(' ');

/** Returns the sum of a file; null when it is no complete gzip, such as one that is half copied. */
async function sumOfWhole(file: string): Promise<string | null> {
  const hash = createHash('sha256');
  const source = createReadStream(file);
  source.on('data', (piece) => hash.update(piece));
  try {
    await pipeline(source, createGunzip(), async (pieces) => {
      for await (const _ of pieces);
    });
    return hash.digest('hex');
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === undefined || code === 'Z_BUF_ERROR' || code === 'Z_DATA_ERROR') return null;
    throw error;
  }
}
