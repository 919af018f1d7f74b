/** Finds the file of a recording under the name that it has now. */
import { join } from 'node:path';
import { isThere } from './is-there.js';
import { namesOf } from './recording-path.js';

/**
 * @param path as the store has it, relative to the data directory
 * @returns the name of the file that is there, relative to the data directory too; null when there is none
 */
export async function findRecording(dataDir: string, path: string): Promise<string | null> {
  for (const name of namesOf(path)) if (await isThere(join(dataDir, name))) return name;
  return null;
}
