/** Opens the file of a recording under whichever name it has: it may be compressed at any moment. */
import type { Readable } from 'node:stream';
import { systemCodeOf } from '../../../src/kernel/fault.js';
import { type OpenOptions, openCastFile } from '../../../src/terminal/recording/read-cast.js';
import { namesOf } from './recording-path.js';

/**
 * @param path of the plain file
 * @throws as `openCastFile` does
 */
export async function openRecording(path: string, options: OpenOptions = {}): Promise<Readable> {
  // The other name is there before one goes. A third look is for a compression that is taken back.
  const [plain = path, compressed = path] = namesOf(path);
  return await openCastFile(plain, options)
    .catch((error: unknown) => openCastFile(retried(error, compressed), options))
    .catch((error: unknown) => openCastFile(retried(error, plain), options));
}

/** The name to try next, when the file is not there; else throws the error. */
function retried(error: unknown, name: string): string {
  if (systemCodeOf(error) !== 'ENOENT') throw error;
  return name;
}
