/** `orch serve restore`: replaces the store of a stopped orchestrator with a backup. */
import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { renameDurably, syncDirectory, syncFile } from '../../src/disk/durable.js';
import { holdDataDirectory } from '../../src/identity/data-directory.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { Fault, isFault } from '../../src/kernel/fault.js';
import type { Restored, RestorePlan, RestoreRequest } from '../../src/programs/store.js';
import { AUDIT_HEAD_FILE, headTextOf, REPLACED_HEAD_KEY } from '../audit/audit-head.js';
import { SYSTEM } from '../core/domain-event.js';
import { deleteMeta, setMeta } from '../database/meta.js';
import { STORE_FILE } from '../database/store-location.js';
import { replaceKeyFile } from '../secrets/key-file.js';
import { findFormerKeys } from '../secrets/open-keyring.js';
import { listRecordings } from '../terminal/recordings/recording-files.js';
import { unknownAmong } from '../terminal/recordings/stray-recordings.js';
import { IDENTITY_KEY, NOTE_KEY } from './backup-note.js';
import { checkIdentity, checkStore, copyIn } from './check-backup.js';
import { resetForNewEpoch } from './new-epoch.js';
import { readFacts, type StoreFacts, withRawStore } from './raw-store.js';
import type { Present, RestoreTarget } from './restore-target.js';
import { openServerTarget } from './server-store.js';
import { requireOwnDirectory } from './starting-directory.js';
import { type StoppedCommand, type StoppedOptions, type StoppedStore, withStore } from './stopped-store.js';

export interface RestoreOptions extends StoppedOptions, Pick<RestoreRequest, 'file' | 'newIdentity' | 'confirm'> {
  /** Runs the opening of the backup with other rights than those of the restore [default: with the same]. */
  readonly asCaller?: <T>(work: () => T) => Promise<T>;
}

/** Subdirectory of the data directory in which the new store is prepared. */
const STAGING = 'restoring';

/**
 * Restores a backup and returns a report. Throws `data_dir_locked` while an orchestrator runs, and the faults of its
 * checks. On a fault the present store is unchanged.
 */
export async function restoreStore(options: RestoreOptions): Promise<Restored> {
  const { dataDir, file } = options;
  requireOwnDirectory(dataDir);
  const directory = holdDataDirectory(dataDir, 'orch serve restore' satisfies StoppedCommand);
  const staging = join(dataDir, STAGING);
  let target: RestoreTarget | null = null;
  try {
    target = await openTarget(options);
    rmSync(staging, { recursive: true, force: true });
    mkdirSync(staging, { mode: 0o700 });
    const staged = join(staging, STORE_FILE);
    const sha256 = await copyIn(file, staged, options.asCaller);
    const backup = await checkStore(staged, file);
    if (!options.newIdentity) checkIdentity(dataDir, backup.identity);
    const present = await target.present();
    const plan = { ...planOf(options, backup, present), store: target.place, sha256 };
    const anew = await withStore({ ...options, location: { file: staged, server: null }, isCopy: true }, (store) =>
      prepare(store, options, plan, present),
    );
    requireClosed(staged);
    // The audit head stays until the next start, so that an interruption loses nothing of the present store.
    return { ...plan, ...anew, kept: await target.put(staged) };
  } finally {
    rmSync(staging, { recursive: true, force: true });
    await target?.close();
    directory.release();
  }
}

async function openTarget({ dataDir, location, clock, logger }: RestoreOptions): Promise<RestoreTarget> {
  if (location.server !== null) return openServerTarget(location.server, { clock, logger });
  forgetUnfinishedSwap(dataDir);
  return {
    place: dataDir,
    present: () => readPresent(dataDir),
    put: async (staged) => swapStore({ dataDir, staged, stamp: stampOf(clock.now()) }),
    close: async () => undefined,
  };
}

/** Writes the new epoch and the restore event to the staged store, before it is moved into place. */
async function prepare(
  { db, uow }: StoppedStore,
  { dataDir, clock, confirm, newIdentity }: RestoreOptions,
  plan: RestorePlan,
  present: Present,
): Promise<Omit<Restored, keyof RestorePlan | 'kept'>> {
  const keyFile = join(dataDir, 'secrets.key');
  const former = await findFormerKeys({ db, file: keyFile, randomBytes });
  await confirm(plan);
  // These keys open the present store too, so a later failure of the restore is harmless.
  if (former !== null) replaceKeyFile(keyFile, former.keys);
  const recordings = (await unknownAmong(db, await listRecordings(dataDir))).length;
  const others = typeof present === 'string' ? [] : [present.epoch];
  const head = headTextOf(join(dataDir, AUDIT_HEAD_FILE));
  return uow.write(async (tx, emit) => {
    const anew = await resetForNewEpoch(tx, { now: clock.now(), others, reason: 'a backup was restored' });
    await deleteMeta(tx, NOTE_KEY);
    if (head !== null) await setMeta(tx, REPLACED_HEAD_KEY, head);
    if (newIdentity) await setMeta(tx, IDENTITY_KEY, '');
    const { file, sha256, made_at, last_seq, last_hash, present_seq } = plan;
    emit({
      type: 'orchestrator.restored',
      actor: SYSTEM,
      target: SYSTEM,
      summary: `The store was restored from ${basename(file)}, to its state of event ${last_seq}`,
      metadata: {
        by: 'restore',
        file,
        sha256,
        made_at,
        last_seq,
        last_hash,
        replaced_last_seq: present_seq,
        recordings,
        ...anew,
      },
    });
    return { ...anew, recordings, secrets_key: former?.file ?? null };
  });
}

/** Throws `disk_full` when a write-ahead log is left beside the store: a full disk prevents its checkpoint. */
export function requireClosed(staged: string): void {
  if (existsSync(`${staged}-wal`)) {
    throw new Fault('disk_full', `there is no room in ${staged} for what belongs to the restore`, {
      hint: 'free some space there; nothing was changed',
    });
  }
  syncFile(staged);
}

/** Returns the facts of the present store. Merges its write-ahead log, so that the store can be moved as one file. */
async function readPresent(dataDir: string): Promise<Present> {
  const path = join(dataDir, STORE_FILE);
  if (!existsSync(path)) return 'none';
  try {
    return (await withRawStore(path, readFacts)) ?? 'unreadable';
  } catch (error) {
    if (isFault(error)) throw error;
    return 'unreadable';
  }
}

function planOf(
  { file, dataDir }: RestoreOptions,
  { schema, last, note, operators, agents }: StoreFacts,
  present: Present,
): Omit<RestorePlan, 'sha256' | 'store'> {
  const there = typeof present === 'string' ? null : present;
  return {
    file,
    data_dir: dataDir,
    made_at: note === null ? null : toTimestamp(note.made_at),
    schema,
    last_seq: last?.seq ?? 0,
    last_hash: last?.hash ?? '',
    last_at: timeOf(last),
    present: typeof present === 'string' ? present : 'store',
    present_seq: there === null ? null : (there.last?.seq ?? 0),
    present_at: timeOf(there?.last ?? null),
    operators_back: there === null ? [] : missing(operators, there.operators),
    agents_back: there === null ? [] : missing(agents, there.agents),
  };
}

const timeOf = (last: StoreFacts['last']): string | null => (last === null ? null : toTimestamp(last.timestamp));

const missing = (before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): readonly string[] =>
  [...before].filter(([id]) => !now.has(id)).map(([, name]) => name);

/** Returns a timestamp for a file name, such as `2026-03-01T12-00-00.000Z`. */
const stampOf = (now: number): string => new Date(now).toISOString().replaceAll(':', '-');

/** Options of `swapStore`. */
export interface Swap {
  readonly dataDir: string;
  /** Path of the new store: closed, synced and on the same file system. */
  readonly staged: string;
  /** Suffix of the file name that keeps the present store. */
  readonly stamp: string;
}

const KEPT = `${STORE_FILE}.replaced-`;
/** Suffixes of files that SQLite leaves beside an unclosed store. They would corrupt another store of that name. */
const BESIDE = ['-wal', '-journal', '-shm'] as const;

/**
 * Replaces the present store with another one. An interruption at any point leaves one of the two in place, complete.
 * Returns the path that keeps the present store; null when there was none.
 */
export function swapStore({ dataDir, staged, stamp }: Swap): string | null {
  const place = join(dataDir, STORE_FILE);
  if (!existsSync(place)) {
    for (const end of BESIDE) rmSync(`${place}${end}`, { force: true });
    renameDurably(staged, place);
    return null;
  }
  const kept = join(dataDir, `${KEPT}${stamp}`);
  linkSync(place, kept);
  const beside = BESIDE.filter((end) => existsSync(`${place}${end}`));
  for (const end of beside) linkSync(`${place}${end}`, `${kept}${end}`);
  syncDirectory(dataDir);
  if (beside.length > 0) {
    // A store that still has its log is damaged and opens neither before nor after this. Without its log it might open in
    // a state that it never had, so a placeholder takes its name first.
    const nothing = `${staged}.none`;
    writeFileSync(nothing, `The store was moved to ${kept}; see: orch serve restore --help\n`, { mode: 0o600 });
    renameDurably(nothing, place);
    for (const end of beside) rmSync(`${place}${end}`);
    syncDirectory(dataDir);
  }
  renameDurably(staged, place);
  return kept;
}

/** Removes extra hard links to the present store that an interrupted swap left. */
export function forgetUnfinishedSwap(dataDir: string): void {
  const place = statSync(join(dataDir, STORE_FILE), { throwIfNoEntry: false });
  if (place === undefined) return;
  for (const name of readdirSync(dataDir).filter((one) => one.startsWith(KEPT))) {
    const path = join(dataDir, name);
    if (statSync(path).ino === place.ino) rmSync(path);
  }
}
