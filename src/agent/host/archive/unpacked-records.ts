/**
 * Records of what was unpacked, one file for each directory, in the data directory of the agent. A record beside the unpacked files
 * could be changed by their owner, who could so choose what counts as unchanged, and would be served or packed with them.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile, syncDirectory } from '../../../disk/durable.js';
import { Fault, messageOf, systemCodeOf } from '../../../kernel/fault.js';
import type { ArchiveReading } from '../../../resources/archive/unpacked.js';
import type { SourceFile } from '../../../resources/host.js';
import type { TreeEntry } from './archive-tree.js';

/** What was unpacked: the SHA-256 of a file in hex, and whether a directory was made for it. */
export type UnpackedEntry =
  | (Extract<TreeEntry, { type: 'file' }> & { readonly size: number; readonly sha256: string })
  | (Extract<TreeEntry, { type: 'directory' }> & { readonly isMade: boolean })
  | Extract<TreeEntry, { type: 'link' }>;

export interface UnpackedRecord extends ArchiveReading {
  readonly version: 1;
  readonly path: string;
  /** SHA-256 of the archive, in hex. */
  readonly sha256: string;
  /** False from before the first change until all is in its place; the entries are then those of the former archive too. */
  readonly isComplete: boolean;
  /** True when the directory itself was made for the archive. */
  readonly isMade: boolean;
  /** By path, each directory before what is in it. */
  readonly entries: readonly UnpackedEntry[];
}

/** True for a record of that archive, read in that way. */
export const isReadingOf = (
  record: UnpackedRecord,
  { content, format, strip }: ArchiveReading & { readonly content: Pick<SourceFile, 'sha256'> },
): boolean => record.sha256 === content.sha256 && record.format === format && record.strip === strip;

const DIRECTORY = 'unpacked';

export class UnpackedRecords {
  private readonly dataDir: string | undefined;

  constructor(dataDir: string | undefined) {
    this.dataDir = dataDir;
  }

  /** Returns the path of the record of a directory. */
  pathOf(path: string): string {
    return join(this.directory(), `${createHash('sha256').update(path).digest('hex')}.json`);
  }

  /** Returns the record of a directory; null without one. Throws `data_dir_invalid` for one that cannot be read. */
  read(path: string): UnpackedRecord | null {
    if (this.dataDir === undefined) return null;
    const file = this.pathOf(path);
    try {
      const record = JSON.parse(readFileSync(file, 'utf8')) as UnpackedRecord;
      if (record.version === 1 && record.path === path && Array.isArray(record.entries)) return record;
      throw new Error('it has another form');
    } catch (cause) {
      if (systemCodeOf(cause) === 'ENOENT') return null;
      throw new Fault(
        'data_dir_invalid',
        `${file}, which says what was unpacked into ${path}, cannot be read: ${messageOf(cause)}`,
        { hint: 'delete it to have the archive unpacked anew', cause },
      );
    }
  }

  /** Writes a record durably. */
  write(record: UnpackedRecord): void {
    mkdirSync(this.directory(), { recursive: true, mode: 0o700 });
    replaceFile(this.pathOf(record.path), JSON.stringify(record));
  }

  remove(path: string): void {
    rmSync(this.pathOf(path), { force: true });
    syncDirectory(this.directory());
  }

  private directory(): string {
    if (this.dataDir === undefined) throw new Error('archives need a data directory');
    return join(this.dataDir, DIRECTORY);
  }
}
