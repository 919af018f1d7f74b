/** What a machine knows of an archive that was unpacked into a directory, and how the directory differs from it. */
import type { ArchiveFormat } from './format.js';

/** How an archive becomes a tree of files. */
export interface ArchiveReading {
  readonly format: ArchiveFormat;
  /** Leading components that each name loses. */
  readonly strip: number;
}

export interface UnpackedRequest {
  /** The directory. */
  readonly path: string;
  /** Name or digits; null for any. */
  readonly owner: string | null;
  readonly group: string | null;
}

/** The difference of one file, directory or link from the archive. `unreachable`: it cannot be looked at. */
export type EntryDifference = 'missing' | 'changed' | 'mode' | 'owner' | 'unreachable';

/** The archive that was last unpacked into a directory. */
export interface Unpacked extends ArchiveReading {
  /** SHA-256 of the archive, in hex. */
  readonly sha256: string;
  /** False after a run that ended in the middle. */
  readonly isComplete: boolean;
  /** Paths in the directory of all that was unpacked. */
  readonly paths: readonly string[];
  /** Paths in the directory of what differs, in order; `.` for the directory itself. */
  readonly differences: readonly { readonly path: string; readonly how: EntryDifference }[];
}

/** Null for a directory into which nothing was unpacked; a text says why the record of it cannot be read. */
export type UnpackedFact = Unpacked | string | null;

/** Returns why an archive is not unpacked into a directory of another user, through which no way of root leads. */
export const refusalOfOwner = (path: string, owner: string): string =>
  `${path} belongs to ${owner}, so what is unpacked there has to belong to ${owner} too; declare it as "owner", or another path`;

/** Maximum entries of an archive, with the directories that its names imply. */
export const MAX_ARCHIVE_ENTRIES = 50_000;
/** Maximum bytes of the contents of an archive. */
export const MAX_UNPACKED_BYTES = 4 * 1024 ** 3;
/** Maximum ratio of the unpacked bytes to those of the archive, beyond `FREE_UNPACKED_BYTES`. */
const MAX_UNPACKED_RATIO = 200;
const FREE_UNPACKED_BYTES = 64 * 1024 ** 2;
/** Returns the maximum bytes that an archive of a size may unpack to. */
export const mostUnpacked = (archiveSize: number): number =>
  Math.min(MAX_UNPACKED_BYTES, Math.max(FREE_UNPACKED_BYTES, archiveSize * MAX_UNPACKED_RATIO));

/** Maximum components of a name in an archive. */
export const MAX_ARCHIVE_DEPTH = 64;
/** Maximum of `strip`. */
export const MAX_STRIP = 16;
