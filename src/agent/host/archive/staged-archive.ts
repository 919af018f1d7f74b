/** Writes the files and links of an archive to a private directory beside their place. */
import { createHash } from 'node:crypto';
import { closeSync, copyFileSync, fchmodSync, fchownSync, fstatSync, fsync, lchownSync, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { Fault } from '../../../kernel/fault.js';
import type { FileStep, Ownership } from '../../../resources/host.js';
import type { BroughtFiles } from '../source-files.js';
import type { Destination, Staged, StagedFileEntry, Staging } from '../staging.js';
import { ArchiveTree, type RawEntry, refused, type TreeEntry, UnpackedMeter } from './archive-tree.js';
import type { ArchiveReader, ContentSink, OpenArchive } from './read-archive.js';
import type { UnpackedEntry } from './unpacked-records.js';

type ArchiveStep = Pick<Extract<FileStep, { do: 'unpack' }>, 'path' | 'content' | 'format' | 'strip'>;

interface ReadTools {
  readonly files: BroughtFiles;
  readonly signal: AbortSignal | undefined;
}

/** Files that are written to the disk at the same time. */
const SYNCED_TOGETHER = 64;

const sync = promisify(fsync);

/** Returns the entries of an archive. Rejects like `unpack` for one that is refused. */
export async function entriesOfArchive(
  { path, content, format, strip }: ArchiveStep,
  { files, signal }: ReadTools,
): Promise<readonly TreeEntry[]> {
  const tree = treeFor(path, strip);
  const descriptor = files.open(content);
  try {
    const pause = async () => signal?.throwIfAborted();
    const entry = (raw: RawEntry) => {
      if (raw.type === 'hard link') tree.linkedFile(raw);
      tree.add(raw);
      return null;
    };
    await readNamed(content.source, { descriptor, format }, { entry, pause });
    return tree.entries();
  } finally {
    closeSync(descriptor);
  }
}

const treeFor = (directory: string, strip: number): ArchiveTree =>
  new ArchiveTree({ directory, strip, ignoresCase: process.platform === 'darwin' });

/** Reads an archive, and adds its name to the refusal of it. */
async function readNamed(source: string, archive: OpenArchive, reader: ArchiveReader): Promise<void> {
  // Most agents never unpack anything.
  const { readArchive } = await import('./read-archive.js');
  try {
    await readArchive(archive, reader);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const { code, message } = error;
    const refusal = code === 'archive_refused' ? `${source} is refused: ${message}` : `${source}: ${message}`;
    throw new Fault(code, `${refusal}; nothing was changed`, { cause: error });
  }
}

/** A file or link of the archive that waits beside its place. */
export interface Ready {
  readonly staged: Staged;
  readonly entry: Exclude<UnpackedEntry, { type: 'directory' }>;
}

type DirectoryEntry = Extract<TreeEntry, { type: 'directory' }>;

interface Place {
  readonly staging: Staging;
  /** Beside which everything waits. */
  readonly room: Destination;
  readonly owners: Ownership;
}

export class StagedArchive {
  private readonly place: Place;
  private readonly syncing: Promise<void>[] = [];
  private meter = new UnpackedMeter(0);
  /** Files and links of the archive by path. */
  readonly ready = new Map<string, Ready>();
  directories: readonly DirectoryEntry[] = [];

  constructor(place: Place) {
    this.place = place;
  }

  /** Rejects with `archive_refused` for an archive that is not unpacked. */
  async stage({ path, content, format, strip }: ArchiveStep, { files, signal }: ReadTools): Promise<void> {
    const tree = treeFor(path, strip);
    const descriptor = files.open(content);
    this.meter = new UnpackedMeter(fstatSync(descriptor).size);
    const pause = async () => {
      signal?.throwIfAborted();
      if (this.syncing.length >= SYNCED_TOGETHER) await this.synced();
    };
    try {
      const entry = (raw: RawEntry) => this.take(tree, raw);
      await readNamed(content.source, { descriptor, format }, { entry, pause });
      await this.synced();
    } finally {
      // Nothing may be closed while it is written to the disk.
      await Promise.allSettled(this.syncing.splice(0));
      closeSync(descriptor);
    }
    const entries = tree.entries();
    if (entries.length === 0) {
      const stripped = strip === 0 ? 'it is empty' : `nothing is left of it without ${strip} leading components`;
      throw refused(`${content.source} is refused: ${stripped}; nothing was changed`);
    }
    this.directories = entries.filter((entry) => entry.type === 'directory');
  }

  private take(tree: ArchiveTree, raw: RawEntry): ContentSink | null {
    const linked = raw.type === 'hard link' ? tree.linkedFile(raw) : null;
    const entry = tree.add(raw);
    if (entry === null || entry.type === 'directory') return null;
    if (entry.type === 'link') {
      const staged = this.place.staging.link(this.place.room, entry.target);
      lchownSync(staged.place, this.place.owners.uid, this.place.owners.gid);
      this.ready.set(entry.path, { staged, entry });
      return null;
    }
    if (linked === null) return this.fileSink(entry);
    this.copy(linked, entry);
    return null;
  }

  private fileSink(entry: Extract<TreeEntry, { type: 'file' }>): ContentSink {
    const staged = this.place.staging.file(this.place.room);
    const hash = createHash('sha256');
    let size = 0;
    return {
      write: (bytes) => {
        hash.update(bytes);
        size += bytes.length;
        for (let written = 0; written < bytes.length; ) written += writeSync(staged.descriptor, bytes, written);
      },
      end: () => this.finish(staged, { ...entry, size, sha256: hash.digest('hex') }),
    };
  }

  /** Another name of a file becomes a file of its own. */
  private copy(from: string, entry: Extract<TreeEntry, { type: 'file' }>): void {
    const original = this.ready.get(from);
    if (original?.entry.type !== 'file') throw new Error('the file of the hard link is not there');
    const { size, sha256 } = original.entry;
    // The content is in the archive once, and on the disk with each name.
    this.meter.add(size);
    const staged = this.place.staging.file(this.place.room);
    copyFileSync(original.staged.place, staged.place);
    this.finish(staged, { ...entry, size, sha256 });
  }

  private finish(staged: StagedFileEntry, entry: Extract<UnpackedEntry, { type: 'file' }>): void {
    const { descriptor } = staged;
    fchownSync(descriptor, this.place.owners.uid, this.place.owners.gid);
    fchmodSync(descriptor, entry.mode);
    this.ready.set(entry.path, { staged, entry });
    this.syncing.push(sync(descriptor).finally(() => staged.close()));
  }

  private async synced(): Promise<void> {
    const outcomes = await Promise.allSettled(this.syncing.splice(0));
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}
