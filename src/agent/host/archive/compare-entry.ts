/** Compares files, directories and links with what was unpacked. */
import { closeSync, fstatSync, openSync, readlinkSync } from 'node:fs';
import { messageOf } from '../../../kernel/fault.js';
import type { EntryDifference, UnpackedFact, UnpackedRequest } from '../../../resources/archive/unpacked.js';
import type { Accounts, Ownership } from '../../../resources/host.js';
import { digestOf } from '../source-files.js';
import { OPEN_FILE, type PlaceTools, type TreePlace, TreePlaces } from './tree-places.js';
import type { UnpackedEntry, UnpackedRecords } from './unpacked-records.js';

const CHUNK = 256 * 1024;
const PERMISSIONS = 0o7777;

/** The wanted owner and group; null where any is right. */
export type WantedOwners = { readonly [Key in keyof Ownership]: Ownership[Key] | null };

/** Returns how an entry differs; null when it does not. Content comes before mode, and mode before owner. */
export function compareEntry(
  place: TreePlace | null,
  entry: UnpackedEntry,
  owners: WantedOwners,
): Exclude<EntryDifference, 'unreachable'> | null {
  const stats = place?.stats ?? null;
  if (place === null || stats === null) return 'missing';
  if (!hasContent(place, entry)) return 'changed';
  if (entry.type !== 'link' && (stats.mode & PERMISSIONS) !== entry.mode) return 'mode';
  const isTheirs = (owners.uid ?? stats.uid) === stats.uid && (owners.gid ?? stats.gid) === stats.gid;
  return isTheirs ? null : 'owner';
}

/** True for the type, and the content or target, of an entry. */
export function hasContent({ at, stats }: TreePlace, entry: UnpackedEntry): boolean {
  if (stats === null) return false;
  if (entry.type === 'directory') return stats.isDirectory();
  if (entry.type === 'link') return stats.isSymbolicLink() && readlinkSync(at) === entry.target;
  if (!stats.isFile() || stats.size !== entry.size) return false;
  const descriptor = openSync(at, OPEN_FILE);
  try {
    const found = fstatSync(descriptor);
    if (!found.isFile() || found.size !== entry.size) return false;
    return digestOf(descriptor, Buffer.allocUnsafe(CHUNK), { maxBytes: entry.size }) === entry.sha256;
  } finally {
    closeSync(descriptor);
  }
}

/** Compares directories with the archives that were unpacked into them. Never throws for the state of a path. */
export function lookAtUnpacked(
  requests: readonly UnpackedRequest[],
  { records, accounts, ...tools }: PlaceTools & { readonly records: UnpackedRecords; readonly accounts: Accounts },
): readonly UnpackedFact[] {
  return requests.map((request) => {
    try {
      return lookAtOne(request, records, accounts, tools);
    } catch (error) {
      return messageOf(error);
    }
  });
}

function lookAtOne(
  { path, owner, group }: UnpackedRequest,
  records: UnpackedRecords,
  accounts: Accounts,
  tools: PlaceTools,
): UnpackedFact {
  const record = records.read(path);
  if (record === null) return null;
  const { sha256, format, strip, isComplete } = record;
  const places = new TreePlaces(path, tools);
  const owners = {
    uid: owner === null ? null : (accounts.uid(owner) ?? -1),
    gid: group === null ? null : (accounts.gid(group) ?? -1),
  };
  try {
    const differences = record.entries.flatMap((entry) => {
      const how = differenceOf(places, entry, owners);
      return how === null ? [] : [{ path: entry.path, how }];
    });
    const root = record.isMade ? differenceOfRoot(places, owners) : null;
    const all = root === null ? differences : [{ path: '.', how: root }, ...differences];
    return { sha256, format, strip, isComplete, paths: record.entries.map((entry) => entry.path), differences: all };
  } finally {
    places.renew();
  }
}

/** Mode of a directory that is made for an archive. */
export const ROOT_MODE = 0o755;

/** Returns how the directory that was made for the archive differs; null when it does not, and when it is missing. */
function differenceOfRoot(places: TreePlaces, owners: WantedOwners): EntryDifference | null {
  try {
    const held = places.directory('');
    if (held === null) return null;
    const place = { directory: held, at: held.at, stats: held.stats };
    return compareEntry(place, { type: 'directory', path: '.', mode: ROOT_MODE, isMade: true }, owners);
  } catch {
    return 'unreachable';
  }
}

function differenceOf(places: TreePlaces, entry: UnpackedEntry, owners: WantedOwners): EntryDifference | null {
  // A directory that was there before keeps its own owner and mode.
  const isOwn = entry.type !== 'directory' || entry.isMade;
  try {
    const how = compareEntry(places.place(entry.path), entry, owners);
    return isOwn || how === 'missing' || how === 'changed' ? how : null;
  } catch {
    return 'unreachable';
  }
}
