/**
 * The directory of the agent for files beside modules: each file under its SHA-256 in hex once it is complete, and until then with
 * `.part` at the end.
 */
import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const DIRECTORY = 'content';
const PART = '.part';
/** Milliseconds after which the first part of a download is given up. */
const ABANDONED_MS = 24 * 3_600_000;

/** Paths of one file in the directory. */
export interface ContentPaths {
  readonly complete: string;
  readonly part: string;
}

/** Returns the paths of a file, and makes the directory. */
export function contentPaths(dataDir: string, sha256: string): ContentPaths {
  const directory = join(dataDir, DIRECTORY);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const complete = join(directory, sha256);
  return { complete, part: `${complete}${PART}` };
}

/** Removes the complete files, which the next run fetches again if it needs them, and parts of abandoned downloads. */
export function clearContent(dataDir: string, now: number): void {
  const directory = join(dataDir, DIRECTORY);
  for (const name of namesIn(directory)) {
    const path = join(directory, name);
    const isKept =
      name.endsWith(PART) && now - (lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) < ABANDONED_MS;
    if (!isKept) rmSync(path, { recursive: true, force: true });
  }
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    // Most machines have never needed a file.
    return [];
  }
}
