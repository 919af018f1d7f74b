/** Files of recordings, `transcripts/YYYY-MM/<session>.cast[.gz]`: finds, lists, opens, compresses and syncs them. */

import { createHash } from 'node:crypto';
import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { toTimestamp } from '../../../src/kernel/clock.js';
import { Fault, systemCodeOf } from '../../../src/kernel/fault.js';
import { isUlid } from '../../../src/kernel/ids.js';
import { type OpenOptions, openCastFile, openRegularFile } from '../../../src/terminal/recording/read-cast.js';

export interface RecordingFile {
  readonly sessionId: string;
  /** Path of the plain file, relative to the data directory. */
  readonly path: string;
  /** Current name of the file, relative to the data directory. */
  readonly name: string;
}

const NAME = /^(.{26})\.cast(\.gz)?$/;

/** Lists the recordings by month. Skips files with other names. */
export async function listRecordings(dataDir: string): Promise<readonly RecordingFile[]> {
  const found = new Map<string, RecordingFile>();
  for (const month of (await namesIn(join(dataDir, TRANSCRIPTS))).toSorted()) {
    for (const name of (await namesIn(join(dataDir, TRANSCRIPTS, month))).toSorted()) {
      const [, sessionId = ''] = NAME.exec(name) ?? [];
      // The plain file comes first. A compressed one beside it may be left by a crash.
      if (!isUlid(sessionId) || found.has(sessionId)) continue;
      const path = `${TRANSCRIPTS}/${month}/${sessionId}.cast`;
      found.set(sessionId, { sessionId, path, name: `${TRANSCRIPTS}/${month}/${name}` });
    }
  }
  return [...found.values()];
}

/** Returns the names in a directory; none when it is not a directory. */
export async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return [];
    throw error;
  }
}

/** Folder of recordings in the data directory. */
export const TRANSCRIPTS = 'transcripts';

/**
 * Returns the path of a recording, relative to the data directory.
 * @param openedAt Unix milliseconds
 */
export function recordingPath(sessionId: string, openedAt: number): string {
  if (!isUlid(sessionId)) throw new Fault('internal', `"${sessionId}" is no session ID`);
  return `${TRANSCRIPTS}/${toTimestamp(openedAt).slice(0, 7)}/${sessionId}.cast`;
}

/** Returns the names that a recording may have, in order of preference. */
export const namesOf = (path: string): readonly string[] => [path, `${path}.gz`];

/**
 * Returns the current name of a recording, or null when it does not exist. Both paths are relative to the data directory.
 * @param path as stored
 */
export async function findRecording(dataDir: string, path: string): Promise<string | null> {
  for (const name of namesOf(path)) if (await exists(join(dataDir, name))) return name;
  return null;
}

/** Reports whether a file exists. */
export async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/**
 * Opens a recording under its current name, which changes when it is compressed.
 * @param path path of the plain file
 * @throws like `openCastFile`
 */
export async function openRecording(path: string, options: OpenOptions = {}): Promise<Readable> {
  // The new name exists before the old one goes. The third attempt covers a compression that is undone.
  const [plain = path, compressed = path] = namesOf(path);
  return await openCastFile(plain, options)
    .catch((error: unknown) => openCastFile(retried(error, compressed), options))
    .catch((error: unknown) => openCastFile(retried(error, plain), options));
}

/** Returns the next name when the file does not exist; else throws the error. */
function retried(error: unknown, name: string): string {
  if (systemCodeOf(error) !== 'ENOENT') throw error;
  return name;
}

/** Returns the hex SHA-256 of the plain bytes, or null when they cannot be read. */
export async function hashFile(path: string): Promise<string | null> {
  try {
    const hash = createHash('sha256');
    for await (const chunk of await openCastFile(path)) hash.update(chunk);
    return hash.digest('hex');
  } catch {
    return null;
  }
}

/** Suffix of the file of an unfinished compression. */
export const UNFINISHED = '.gz.tmp';

/**
 * Compresses a recording. An interruption at any point leaves a complete file, plain or compressed.
 * @param path path of the plain file
 * @param signal aborts without any change
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

/** Undoes the compression of a recording, if it was compressed. */
export async function undoCompression(path: string): Promise<void> {
  if (await exists(path)) return;
  const compressed = `${path}.gz`;
  if (!(await exists(compressed))) return;
  const unfinished = path + UNFINISHED;
  await rm(unfinished, { force: true });
  const target = await open(unfinished, 'wx', 0o600);
  try {
    await pipeline(await openCastFile(compressed), target.createWriteStream({ flush: true }));
    await rename(unfinished, path);
    await syncDirectory(dirname(path));
    await rm(compressed);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  } finally {
    await target.close().catch(() => {});
  }
}

/** Syncs directories once for all concurrent callers, so that a hundred new files need no hundred syncs. */
export class DirectorySyncs {
  private readonly running = new Map<string, Promise<void>>();
  /** Syncs that start when the running ones end. */
  private readonly next = new Map<string, Promise<void>>();

  /** Resolves when all names that exist at the call are durable. */
  sync(path: string): Promise<void> {
    const before = this.running.get(path);
    if (before === undefined) return this.start(path);
    const waiting = this.next.get(path);
    if (waiting !== undefined) return waiting;
    // A running sync may miss newer names.
    const next = before.then(
      () => this.start(path),
      () => this.start(path),
    );
    this.next.set(path, next);
    return next;
  }

  private start(path: string): Promise<void> {
    this.next.delete(path);
    const sync = syncDirectory(path).finally(() => {
      if (this.running.get(path) === sync) this.running.delete(path);
    });
    this.running.set(path, sync);
    return sync;
  }
}

/** Makes the names in a directory durable. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
