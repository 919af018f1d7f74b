/** `orch store copy`: copies the store of a stopped orchestrator to a place that holds none, in a file or on PostgreSQL. */
import { existsSync, linkSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../../src/disk/durable.js';
import { holdDataDirectory } from '../../src/identity/data-directory.js';
import { loadKey } from '../../src/identity/private-key.js';
import { Fault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import type { CopiedStore, CopyRequest, StorePlace } from '../../src/programs/store.js';
import { AUDIT_HEAD_FILE, lostEvents } from '../audit/audit-head.js';
import { AuditKey } from '../audit/checkpoint.js';
import type { Core } from '../core/core.js';
import { SYSTEM } from '../core/domain-event.js';
import {
  copyPostgresToSqlite,
  countPostgresRows,
  countSqliteRows,
  type RowCounts,
  requireSameCounts,
  tablesOf,
} from '../database/copy-rows.js';
import { deleteMeta } from '../database/meta.js';
import { MIGRATIONS } from '../database/migrations/index.js';
import { fillPostgres, isSchemaUsed } from '../database/postgres/fill-postgres.js';
import { isPostgresUrl, parsePostgresUrl } from '../database/postgres/postgres-url.js';
import type { Queryable } from '../database/schema.js';
import { STORE_FILE, serverOf } from '../database/store-location.js';
import { NOTE_KEY } from './backup-note.js';
import { makeWorkplace } from './backup-target.js';
import { checkStore, copyIn } from './check-backup.js';
import { headOf, requireIntactChain, requireSameHead } from './copied-chain.js';
import { resetForNewEpoch } from './new-epoch.js';
import { readFacts, type StoreFacts, withRawStore } from './raw-store.js';
import { requireClosed } from './restore-store.js';
import { holdServer, readServerFacts, type StoreServer } from './server-store.js';
import { keysIn, requireOwnDirectory } from './starting-directory.js';
import { type StoppedCommand, withStore } from './stopped-store.js';

/** Where a store is or shall be. */
export interface CopyOptions extends CopyRequest, Pick<Core, 'clock' | 'logger' | 'newId'> {
  /** Environment, which may hold the password of a database. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

const COMMAND = 'orch store copy' satisfies StoppedCommand;

/**
 * Copies the store, begins a new epoch in the copy, and returns a report. Throws `data_dir_locked` while a process uses either store,
 * `usage` when the target holds a store already, and the faults of its checks. On a fault the original is as it was, and the
 * target holds no store, unless the database has not answered whether it has committed.
 */
export async function copyStore(options: CopyOptions): Promise<CopiedStore> {
  const { clock, env, onProgress } = options;
  const from = placeOf(options.from, env);
  const to = placeOf(options.to, env);
  if (from.shown === to.shown) throw new Fault('usage', `FROM and TO are the same store: ${to.shown}`);
  const opened: { close(): void | Promise<void> }[] = [];
  try {
    const target = await openTarget(to, options);
    opened.push(target);
    const source = await openSource(from, options);
    opened.push(source);
    const workplace = target.workplace();
    opened.push({ close: () => rmSync(workplace, { recursive: true, force: true }) });
    const staged = join(workplace, STORE_FILE);
    onProgress(`Reading ${from.shown}`);
    const { facts, counts } = await source.copyTo(staged);
    await checkStore(staged, from.shown);
    await withRawStore(staged, (connection) => requireSameCounts(counts, countSqliteRows(connection)));
    const last = { seq: facts.last?.seq ?? 0, hash: facts.last?.hash ?? '' };
    const anew = await withStore(
      { ...options, location: { file: staged, server: null }, isCopy: true },
      async ({ db, uow }) => {
        onProgress(`Verifying the audit log: ${last.seq} events`);
        await requireSameHead(db, last);
        await requireIntactChain(db, from.shown);
        for (const directory of [from.directory, to.directory]) await requireAllEvents(db, directory);
        return uow.write(async (tx, emit) => {
          const begun = await resetForNewEpoch(tx, {
            now: clock.now(),
            others: [],
            reason: 'the store was copied to another place',
          });
          await deleteMeta(tx, NOTE_KEY);
          emit({
            type: 'orchestrator.restored',
            actor: SYSTEM,
            target: SYSTEM,
            summary: `The store was copied to another place, with everything up to event ${last.seq}`,
            metadata: {
              by: 'store_copy',
              from: from.shown,
              to: to.shown,
              last_seq: last.seq,
              last_hash: last.hash,
              ...begun,
            },
          });
          return begun;
        });
      },
    );
    requireClosed(staged);
    await target.put(staged);
    const schema = MIGRATIONS.at(-1)?.version ?? 0;
    return {
      from: from.shown,
      to: to.shown,
      schema,
      last_seq: last.seq,
      last_hash: last.hash,
      rows: Object.fromEntries(counts),
      ...anew,
      next: nextSteps(from, to, options),
    };
  } finally {
    for (const one of opened.reverse()) await one.close();
  }
}

interface Place {
  readonly shown: string;
  readonly server: StoreServer | null;
  /** Path of the store's file; '' on a server. */
  readonly file: string;
  /** Data directory; null for a lone file and on a server. */
  readonly directory: string | null;
}

/** Sessions that read at the same time; a copy needs one. */
const READERS = 1;

function placeOf({ text, passwordFile }: StorePlace, env: CopyOptions['env']): Place {
  if (isPostgresUrl(text)) {
    const server = serverOf(text, { file: passwordFile, env }, READERS);
    return { shown: parsePostgresUrl(text).shown, server, file: '', directory: null };
  }
  if (passwordFile !== '') throw new Fault('usage', `${text} is no database, and needs no password file`);
  const isDirectory = statSync(text, { throwIfNoEntry: false })?.isDirectory() === true;
  const file = isDirectory ? join(text, STORE_FILE) : text;
  return { shown: file, server: null, file, directory: isDirectory ? text : null };
}

interface Source {
  /** Copies the store to a new SQLite file, and returns what the original holds. */
  copyTo(file: string): Promise<{ readonly facts: StoreFacts; readonly counts: RowCounts }>;
  close(): void | Promise<void>;
}

async function openSource({ file, shown, server, directory }: Place, core: CopyOptions): Promise<Source> {
  if (server === null) {
    if (directory !== null) requireOwnDirectory(directory);
    if (!existsSync(file)) {
      throw new Fault('data_dir_invalid', `there is no store ${file}`, {
        hint: 'name a data directory, a file that orch serve or orch serve backup has made, or postgres://USER@HOST/DATABASE',
      });
    }
    const held = directory === null ? null : holdDataDirectory(directory, COMMAND);
    return { copyTo: (to) => copyFile(file, to), close: () => held?.release() };
  }
  const { store } = await holdServer(server, core);
  return {
    copyTo: async (to) => {
      const facts = await store.withReader(readServerFacts);
      if (facts === null) throw new Fault('data_dir_invalid', `there is no store in ${shown}`);
      const newest = MIGRATIONS.at(-1)?.version ?? 0;
      if (facts.schema > newest) {
        throw new Fault(
          'schema_too_new',
          `${shown} has schema ${facts.schema}, this program knows schemas up to ${newest}`,
          {
            hint: 'install the orch that made it, or a newer one; nothing was changed',
          },
        );
      }
      await copyPostgresToSqlite(
        store,
        to,
        MIGRATIONS.filter(({ version }) => version <= facts.schema),
      );
      const tables = await withRawStore(to, (connection) => tablesOf(connection).map(({ name }) => name));
      return { facts, counts: await store.withReader((run) => countPostgresRows(run, tables)) };
    },
    close: () => store.close(),
  };
}

/** Copies a file that no process uses. Merges a write-ahead log that a dead process left. */
async function copyFile(file: string, to: string): Promise<{ readonly facts: StoreFacts; readonly counts: RowCounts }> {
  const found = await withRawStore(file, (connection) => {
    const facts = readFacts(connection);
    return facts === null ? null : { facts, counts: countSqliteRows(connection) };
  }).catch((cause) => {
    if (cause instanceof Fault) throw cause;
    throw new Fault('data_dir_invalid', `${file} cannot be read: ${messageOf(cause)}`, {
      hint: 'if it is damaged: orch serve restore of a backup',
      cause,
    });
  });
  if (found === null) throw new Fault('data_dir_invalid', `${file} is no store of an orchestrator`);
  await copyIn(file, to);
  return found;
}

interface Target {
  /** Makes a private directory for the prepared copy and returns its path. */
  workplace(): string;
  /** Puts the prepared store in place, in one step. */
  put(staged: string): Promise<void>;
  close(): void | Promise<void>;
}

const occupied = (place: string, mend: string): Fault =>
  new Fault('usage', `${place} holds a store already; a store is never overwritten`, { hint: mend });

async function openTarget({ file, shown, server, directory }: Place, options: CopyOptions): Promise<Target> {
  const { onProgress } = options;
  if (server === null) {
    if (directory !== null) requireOwnDirectory(directory);
    const held = directory === null ? null : holdDataDirectory(directory, COMMAND);
    const requireFree = (): void => {
      const there = [file, `${file}-wal`].find((path) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0);
      if (there !== undefined) throw occupied(there, 'move it away, or name another place');
    };
    try {
      requireFree();
    } catch (error) {
      held?.release();
      throw error;
    }
    return {
      workplace: () => makeWorkplace(file),
      put: async (staged) => {
        requireFree();
        putNewFile(staged, file);
      },
      close: () => held?.release(),
    };
  }
  const held = await holdServer(server, options);
  const { store } = held;
  try {
    if (await store.withReader(isSchemaUsed)) {
      throw occupied(shown, 'name an empty database, or rename its schema: alter schema orch rename to orch_before');
    }
  } catch (error) {
    await store.close();
    throw error;
  }
  return {
    workplace: () => mkdtempSync(join(tmpdir(), 'orch-store-copy-')),
    put: (staged) =>
      withRawStore(staged, (connection) => {
        const counts = countSqliteRows(connection);
        return fillPostgres(held, connection, {
          keepAs: null,
          onTable: (name) => {
            const count = counts.get(name) ?? 0;
            if (count > 0) onProgress(`Copying ${name}: ${count} ${count === 1 ? 'row' : 'rows'}`);
          },
          check: async (tx) => {
            onProgress('Verifying the audit log of the copy');
            await requireSameHead(tx, headOf(connection));
            await requireIntactChain(tx, shown);
          },
        });
      }),
    close: () => store.close(),
  };
}

/** Gives the finished copy its name, durably. Removes an empty file of that name, and never replaces another. */
function putNewFile(staged: string, file: string): void {
  try {
    if (statSync(file, { throwIfNoEntry: false })?.size === 0) rmSync(file);
    linkSync(staged, file);
    rmSync(staged);
    syncDirectory(dirname(file));
  } catch (cause) {
    if (systemCodeOf(cause) === 'EEXIST') throw occupied(file, 'move it away, or name another place');
    throw new Fault('store_unavailable', `the copy cannot be put at ${file}: ${messageOf(cause)}`, { cause });
  }
}

/** Throws `data_dir_invalid` when the audit head of a data directory knows events that the store lacks: the next start would refuse it. */
async function requireAllEvents(db: Queryable, directory: string | null): Promise<void> {
  if (directory === null || !existsSync(join(directory, 'audit.key'))) return;
  const file = join(directory, AUDIT_HEAD_FILE);
  const key = new AuditKey(loadKey(join(directory, 'audit.key')));
  // A missing file says nothing here: the copied store may be one of another directory.
  const lost = await lostEvents(db, { file, key, isBeside: false });
  if (lost === null || lost.problem !== null) return;
  throw new Fault(
    'data_dir_invalid',
    `${file} knows of audit event ${lost.expected_seq}, which is not in the store that would be copied: it ends with event ${lost.last_seq}`,
    {
      hint: `copy the store that was used last; to go on without these events, move ${file} away`,
      data: { ...lost },
    },
  );
}

function nextSteps(from: Place, to: Place, { to: { passwordFile } }: CopyOptions): readonly string[] {
  const keys = 'identity.key, audit.key, secrets.key and api.key';
  if (to.server !== null) {
    const password = passwordFile === '' ? '' : ` --store-password-file ${passwordFile}`;
    const directory = from.directory ?? 'DIR';
    const missing = from.directory === null ? [`DIR is the data directory with ${keys}`] : [];
    return [`orch serve --data-dir ${directory} --store '${to.server.url}'${password}`, ...missing];
  }
  if (to.directory === null) return [`put it as orch.db into the data directory with ${keys}`];
  const hasKeys = keysIn(to.directory).length > 0;
  return [
    ...(hasKeys ? [] : [`put ${keys} into ${to.directory}`]),
    `orch serve --data-dir ${to.directory}, without the setting store`,
  ];
}
