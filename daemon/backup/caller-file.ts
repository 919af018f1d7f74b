/** The file of a backup on the side of the command that asked for it: written with the caller's own rights. */
import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '../../src/kernel/fault.js';
import { type BackupTarget, checkTarget, makeWorkplace, notWritable, putInPlace } from './backup-target.js';

/** Size and hash that a complete copy has. */
export interface CopyFacts {
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
}

export class CallerFile {
  private readonly target: BackupTarget;
  private readonly dataDir: string;
  private readonly workplace: string;

  /** Makes room for the copy. Throws as `checkTarget` and `makeWorkplace` do. */
  constructor(target: BackupTarget, dataDir: string) {
    checkTarget(target, dataDir);
    this.target = target;
    this.dataDir = dataDir;
    this.workplace = makeWorkplace(target.file);
  }

  /** Writes the copy and makes it durable, without its name. Throws `store_unavailable`, also for an incomplete copy. */
  async take(parts: AsyncIterable<Buffer>, { bytes, sha256 }: CopyFacts): Promise<void> {
    const hash = createHash('sha256');
    let size = 0;
    const descriptor = this.attempt(() => openSync(this.copy, 'wx', 0o600));
    try {
      for await (const part of parts) {
        this.attempt(() => writeWhole(descriptor, part));
        hash.update(part);
        size += part.length;
      }
      this.attempt(() => fsyncSync(descriptor));
    } finally {
      closeSync(descriptor);
    }
    if (size !== bytes || hash.digest('hex') !== sha256) {
      throw new Fault('store_unavailable', `the backup ${this.target.file} did not arrive whole`, {
        hint: 'try again; what is at the place is as it was',
      });
    }
    checkTarget(this.target, this.dataDir);
  }

  /** Gives the copy its name. */
  putInPlace(): void {
    putInPlace(this.copy, this.target.file);
  }

  /** Removes what is not in place. */
  discard(): void {
    rmSync(this.workplace, { recursive: true, force: true });
  }

  private get copy(): string {
    return join(this.workplace, 'orch.db');
  }

  private attempt<T>(work: () => T): T {
    try {
      return work();
    } catch (cause) {
      throw notWritable(this.target.file, cause);
    }
  }
}

function writeWhole(descriptor: number, part: Buffer): void {
  for (let at = 0; at < part.length; ) at += writeSync(descriptor, part, at);
}
