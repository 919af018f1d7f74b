/** Turns a copy of the store into a backup: one file with a note, checked for damage and synced. */
import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { syncFile } from '../../src/disk/durable.js';
import { type BackupNote, NOTE_KEY } from './backup-note.js';
import { damageOf, readFacts, type StoreFacts, withRawStore } from './raw-store.js';

export interface SealOptions {
  readonly file: string;
  readonly note: BackupNote;
}

export interface SealedCopy {
  readonly bytes: number;
  readonly sha256: string;
  readonly schema: number;
  readonly last: StoreFacts['last'];
}

/** Seals the copy in place and returns its size, hash and contents. Throws when it is damaged or cannot be written. */
export async function sealCopy({ file, note }: SealOptions): Promise<SealedCopy> {
  const facts = await withRawStore(file, (connection) => {
    // Without a write-ahead log the backup is a single file, which also opens on read-only media.
    connection.pragma('journal_mode = DELETE');
    connection.prepare('insert or replace into meta (key, value) values (?, ?)').run(NOTE_KEY, JSON.stringify(note));
    const damage = damageOf(connection, 'quick_check');
    if (damage !== null) throw new Error(`the copy is damaged: ${damage}`);
    return readFacts(connection);
  });
  if (facts === null) throw new Error('the copy is no store');
  const beside = readdirSync(dirname(file)).filter((name) => name.startsWith(`${basename(file)}-`));
  if (beside.length > 0) throw new Error(`the copy is not whole without ${beside.join(', ')}`);
  syncFile(file);
  return { bytes: statSync(file).size, sha256: await sha256Of(file), schema: facts.schema, last: facts.last };
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(file, { highWaterMark: 1024 * 1024 })) hash.update(part);
  return hash.digest('hex');
}

/** Runs `sealCopy` in a worker thread and returns its result. Throws as `sealCopy` does. */
export function sealInThread(options: SealOptions): Promise<SealedCopy> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./seal-copy-worker.js', import.meta.url), { workerData: options });
    worker.once('message', (sealed: SealedCopy) => resolve(sealed));
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the check of the copy ended with ${code}`)));
  });
}
