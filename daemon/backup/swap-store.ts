/** Puts another store into the place of the present one: whenever it is cut off, one of the two is there, whole. */
import { existsSync, linkSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { STORE_FILE } from './own-directory.js';
import { syncPath } from './sync-path.js';

export interface Swap {
  readonly dataDir: string;
  /** The new store, closed and on the disk, on the same file system. */
  readonly staged: string;
  /** Part of the name that the present one is kept under. */
  readonly stamp: string;
}

const KEPT = `${STORE_FILE}.replaced-`;
/** What SQLite leaves beside a store that was not closed. It belongs to that store, and would spoil another. */
const BESIDE = ['-wal', '-journal', '-shm'] as const;

/** Returns where the present store is kept, null when there was none. */
export function swapStore({ dataDir, staged, stamp }: Swap): string | null {
  const place = join(dataDir, STORE_FILE);
  if (!existsSync(place)) {
    for (const end of BESIDE) rmSync(`${place}${end}`, { force: true });
    putThere(staged, place, dataDir);
    return null;
  }
  const kept = join(dataDir, `${KEPT}${stamp}`);
  linkSync(place, kept);
  const beside = BESIDE.filter((end) => existsSync(`${place}${end}`));
  for (const end of beside) linkSync(`${place}${end}`, `${kept}${end}`);
  syncPath(dataDir);
  if (beside.length > 0) {
    // A store that could not be closed is damaged, and opens neither before nor after this. Without its log it might open,
    // in a state that it never had.
    const nothing = `${staged}.none`;
    writeFileSync(nothing, `The store was moved to ${kept}; see: orch serve restore --help\n`, { mode: 0o600 });
    putThere(nothing, place, dataDir);
    for (const end of beside) rmSync(`${place}${end}`);
    syncPath(dataDir);
  }
  putThere(staged, place, dataDir);
  return kept;
}

/** Second names of the present store, left by a swap that was cut off before its end. */
export function forgetUnfinishedSwap(dataDir: string): void {
  const place = statSync(join(dataDir, STORE_FILE), { throwIfNoEntry: false });
  if (place === undefined) return;
  for (const name of readdirSync(dataDir).filter((one) => one.startsWith(KEPT))) {
    const path = join(dataDir, name);
    if (statSync(path).ino === place.ino) rmSync(path);
  }
}

function putThere(file: string, place: string, dataDir: string): void {
  renameSync(file, place);
  syncPath(dataDir);
}
