/**
 * Remembers, outside the data directory, which data directories are separate mounts. When such a directory is empty and
 * no longer a separate file system, it is not mounted, and the first start in it is refused.
 */
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { replaceFile } from '../../src/disk/durable.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { loadKey } from '../../src/identity/private-key.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';

/** Maximum remembered directories; the newest is last. */
const MOST = 50;

export class DirectoryMemory {
  private readonly file: string;

  /** @param file path outside every data directory; the file and its directory need not exist */
  constructor(file: string) {
    this.file = file;
  }

  /** Throws `data_dir_invalid` when an orchestrator ran here on a separate file system that is not mounted now. */
  requireMounted(dataDir: string): void {
    const key = this.read().get(dataDir);
    if (key === undefined || this.isElsewhere(dataDir) || isMoved(dataDir, key)) return;
    throw new Fault(
      'data_dir_invalid',
      `${dataDir} is not mounted: the data of the orchestrator ${key} was there, on a file system of its own`,
      {
        hint: 'mount it, then start again; only to start over with another identity, which no agent trusts: orch serve --new-identity',
      },
    );
  }

  /** Records the directory after a start. A write error is only logged, because the orchestrator works without this file. */
  note(dataDir: string, publicKey: string, logger: Logger): void {
    const known = this.read();
    const isElsewhere = this.isElsewhere(dataDir);
    if (isElsewhere ? known.get(dataDir) === publicKey : !known.has(dataDir)) return;
    known.delete(dataDir);
    if (isElsewhere) known.set(dataDir, publicKey);
    try {
      this.write(known);
    } catch (error) {
      logger.warn('an unmounted data directory would not be noticed at the next start', {
        file: this.file,
        reason: messageOf(error),
      });
    }
  }

  private isElsewhere(dataDir: string): boolean {
    // Compares the directory and not the file: on overlay file systems a file has another device number.
    return deviceOf(dataDir) !== deviceOf(dirname(this.file));
  }

  private read(): Map<string, string> {
    try {
      const value: unknown = JSON.parse(readFileSync(this.file, 'utf8'));
      if (typeof value !== 'object' || value === null) return new Map();
      return new Map(Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
    } catch {
      return new Map();
    }
  }

  private write(known: ReadonlyMap<string, string>): void {
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
    replaceFile(this.file, `${JSON.stringify(Object.fromEntries([...known].slice(-MOST)), null, 2)}\n`);
  }
}

/**
 * Returns true when the data was moved to this file system. Also true for an unreadable key, which a later step of the
 * start reports.
 */
function isMoved(dataDir: string, publicKey: string): boolean {
  const path = join(dataDir, 'identity.key');
  if (!existsSync(path)) return false;
  try {
    return publicKeyOfKeyObject(loadKey(path)) === publicKey;
  } catch {
    return true;
  }
}

/** Returns the device number of a path, or of its nearest existing parent. */
function deviceOf(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined && dirname(path) !== path ? deviceOf(dirname(path)) : (stats?.dev ?? 0);
}
