/** The checksum of a recording as it is. */
import { createHash } from 'node:crypto';
import { openCastFile } from '../../../src/terminal/recording/read-cast.js';

/** SHA-256 of the plain bytes, in hex; null when they cannot be read. */
export async function hashFile(path: string): Promise<string | null> {
  try {
    const hash = createHash('sha256');
    for await (const chunk of await openCastFile(path)) hash.update(chunk);
    return hash.digest('hex');
  } catch {
    return null;
  }
}
