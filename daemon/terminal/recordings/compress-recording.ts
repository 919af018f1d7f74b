/** Compresses the recording of a session that is over. Cut off anywhere, it leaves a whole file, plain or compressed. */
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { openCastFile, openRegularFile } from '../../../src/terminal/recording/read-cast.js';
import { isThere } from './is-there.js';
import { syncDirectory } from './sync-directory.js';

/** What a compression that is not finished writes to. */
export const UNFINISHED = '.gz.tmp';

/**
 * @param path of the plain file; gets `.gz` behind it
 * @param signal ends it early, with nothing changed
 */
export async function compressRecording(path: string, signal: AbortSignal): Promise<void> {
  const unfinished = path + UNFINISHED;
  await rm(unfinished, { force: true });
  const source = await openRegularFile(path);
  const target = await open(unfinished, 'wx', 0o600);
  try {
    await pipeline(source.createReadStream(), createGzip(), target.createWriteStream({ flush: true }), { signal });
    await rename(unfinished, `${path}.gz`);
    await syncDirectory(dirname(path));
    await rm(path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  } finally {
    await source.close().catch(() => {});
    await target.close().catch(() => {});
  }
}

/** Takes the compression of a recording back, when it was done; the plain file has its name again. */
export async function plainAgain(path: string): Promise<void> {
  if (await isThere(path)) return;
  const compressed = `${path}.gz`;
  if (!(await isThere(compressed))) return;
  const unfinished = path + UNFINISHED;
  await rm(unfinished, { force: true });
  const target = await open(unfinished, 'wx', 0o600);
  try {
    await pipeline(await openCastFile(compressed), target.createWriteStream({ flush: true }));
    await rename(unfinished, path);
    await rm(compressed);
    await syncDirectory(dirname(path));
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  } finally {
    await target.close().catch(() => {});
  }
}
