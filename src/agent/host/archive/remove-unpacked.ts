/** Removes what was unpacked into a directory. Files that have changed since, and everything else there, stay. */
import { rmdirSync, unlinkSync } from 'node:fs';
import { syncDirectory } from '../../../disk/durable.js';
import { Fault, systemCodeOf } from '../../../kernel/fault.js';
import type { FileStep } from '../../../resources/host.js';
import { parentOf } from '../../../resources/unix/unix-path.js';
import { reached } from '../path-refusal.js';
import { hasContent } from './compare-entry.js';
import { type PlaceTools, type TreePlace, TreePlaces } from './tree-places.js';
import type { UnpackedEntry, UnpackedRecords } from './unpacked-records.js';

type RemoveStep = Extract<FileStep, { do: 'remove-unpacked' }>;

/** Throws the error of the system; the next removal goes on with the rest. */
export function removeUnpacked(
  { path, spares, keepsDirectory }: RemoveStep,
  { records, ...tools }: PlaceTools & { readonly records: UnpackedRecords },
): void {
  const record = records.read(path);
  if (record === null) return;
  const places = new TreePlaces(path, tools);
  const spared = new Set(spares);
  const touched = new Set<string>();
  try {
    // Removes the content of a directory before the directory.
    for (const entry of record.entries.toReversed()) {
      if (spared.has(entry.path) || !removeEntry(places, entry)) continue;
      touched.add(entry.path.includes('/') ? entry.path.slice(0, entry.path.lastIndexOf('/')) : '');
    }
    for (const one of touched) {
      const held = reachable(() => places.directory(one));
      if (held !== null) syncDirectory(`${held.at}/.`);
    }
    if (record.isMade && !keepsDirectory) removeRoot(places, path);
  } finally {
    places.renew();
  }
  records.remove(path);
}

/** Returns true for an entry that was removed. */
function removeEntry(places: TreePlaces, entry: UnpackedEntry): boolean {
  const place = reachable(() => places.place(entry.path));
  if (place === null || place.stats === null || !hasContent(place, entry)) return false;
  if (entry.type !== 'directory') {
    unlinkSync(place.at);
    return true;
  }
  return entry.isMade && removeEmpty(places, () => places.place(entry.path));
}

/** What other users have put on the way is left alone, with all that is behind it. */
function reachable<T>(look: () => T | null): T | null {
  try {
    return look();
  } catch (error) {
    if (error instanceof Fault) return null;
    throw error;
  }
}

function removeEmpty(places: TreePlaces, find: () => Pick<TreePlace, 'at'> | null): boolean {
  // The directory itself may be held.
  places.renew();
  const place = find();
  if (place === null) return false;
  try {
    rmdirSync(place.at);
    return true;
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'EBUSY', 'ENOENT'].includes(systemCodeOf(error) ?? '')) return false;
    throw error;
  }
}

function removeRoot(places: TreePlaces, path: string): void {
  const parent = () => reached(places.way.walk.directory(parentOf(path)), parentOf(path)).held.at;
  if (removeEmpty(places, () => ({ at: `${parent()}${path.slice(path.lastIndexOf('/'))}` })))
    syncDirectory(`${parent()}/.`);
}
