/** Opens a store on PostgreSQL. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientConfig } from 'pg';
import type { Clock } from '../../../src/kernel/clock.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../../src/kernel/fault.js';
import type { Logger } from '../../../src/kernel/logger.js';
import { copyPostgresToSqlite } from '../copy-rows.js';
import { MIGRATIONS } from '../migrations/index.js';
import type { Migration } from '../migrations/migration.js';
import type { OpenDatabase } from '../open-database.js';
import { makeSchemaBackup } from '../schema-backups.js';
import { STORE_FILE } from '../store-location.js';
import { checkServer, checkSessions } from './check-server.js';
import { loadPg, type PgModule } from './load-pg.js';
import { migratePostgres, postgresSchemaVersion, requireOwnSchema } from './migrate-postgres.js';
import type { RunStatement } from './postgres-dialect.js';
import { postgresFault } from './postgres-error.js';
import { type PasswordSource, passwordOf } from './postgres-password.js';
import { numberTypes, PostgresSession } from './postgres-session.js';
import { PostgresStore } from './postgres-store.js';
import { type PostgresUrl, parsePostgresUrl } from './postgres-url.js';

export interface HoldPostgresOptions {
  /** `postgres://USER@HOST:PORT/DATABASE`, with several hosts separated by commas. */
  readonly url: string;
  readonly password: PasswordSource;
  /** Maximum sessions that read at the same time. */
  readonly readers: number;
  /** Unique name of this process. */
  readonly processName: string;
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'now'>;
  /** Called once when only a restart restores a known state: another orchestrator took over, or the server lost commits. */
  readonly onFatal: (error: unknown) => void;
}

export interface OpenPostgresOptions extends HoldPostgresOptions {
  /** Directory for the copy that is made before a migration. */
  readonly backupDir: string;
  /** Migrations to run [default: those of this program]. */
  readonly migrations?: readonly Migration[];
  /** Returns the fault to throw instead of creating a store without any table. */
  readonly faultIfEmpty?: ((place: string) => Fault) | undefined;
  /** Returns the fault to throw instead of opening a store with tables. */
  readonly faultIfThere?: ((place: string) => Fault) | undefined;
}

export interface OpenPostgres extends OpenDatabase {
  readonly store: PostgresStore;
}

/** A locked database, whatever store it holds. */
export interface HeldPostgres {
  readonly store: PostgresStore;
  /** The URL for messages. */
  readonly place: string;
}

/**
 * Checks the server and locks the store in its database; changes nothing there. Throws `invalid_config` for an unsuitable server,
 * `store_unavailable` when none can be reached, `data_dir_locked` while another process uses the store.
 */
export async function holdPostgres(options: HoldPostgresOptions): Promise<HeldPostgres> {
  const pg = await loadPg();
  const url = parsePostgresUrl(options.url);
  const servers = () => clientConfigs(pg, url, options.password);
  const place = url.shown;
  await opened(place, () => checkBefore(pg, servers(), place, options.clock));
  const store = await opened(place, () => PostgresStore.open({ ...options, pg, servers, place }));
  return { store, place };
}

/** Locks the store as `holdPostgres` does, and creates or migrates its schema. Throws as that and as `migratePostgres` do. */
export async function openPostgres(options: OpenPostgresOptions): Promise<OpenPostgres> {
  const { logger, clock, migrations = MIGRATIONS } = options;
  let isOpen = false;
  const { store, place } = await holdPostgres({ ...options, onFatal: (error) => isOpen && options.onFatal(error) });
  try {
    await store.withReader((run) => requireOwnSchema(run, place));
    const schema = await store.withReader(postgresSchemaVersion);
    if (schema === 0 && options.faultIfEmpty) throw options.faultIfEmpty(place);
    if (schema !== 0 && options.faultIfThere) throw options.faultIfThere(place);
    const file = join(options.backupDir, STORE_FILE);
    const backUp = (from: number): Promise<string> => {
      const known = migrations.filter(({ version }) => version <= from);
      return makeSchemaBackup({ file, schema: from, clock, write: (made) => copyPostgresToSqlite(store, made, known) });
    };
    await migratePostgres(store, schema, { place, file, logger, migrations, backUp });
    await store.claim();
    isOpen = true;
  } catch (error) {
    await store.close();
    throw error;
  }
  return {
    kind: 'postgres',
    place,
    db: store.db,
    store,
    latencyMs: () => store.latencyMs,
    backup: (file) => copyPostgresToSqlite(store, file, migrations),
    copy: null,
    close: () => store.close(),
  };
}

/**
 * Runs `work` in a session of its own, without the lock of the store: on the first server that answers. Throws `invalid_config` and
 * `store_unavailable`.
 */
export async function withServerSession<T>(
  server: Pick<HoldPostgresOptions, 'url' | 'password'>,
  work: (run: RunStatement) => Promise<T>,
): Promise<T> {
  const pg = await loadPg();
  const url = parsePostgresUrl(server.url);
  const session = await opened(url.shown, () => connectToAny(pg, clientConfigs(pg, url, server.password)));
  try {
    return await work((text, values) => session.query(text, values));
  } catch (error) {
    throw postgresFault(url.shown, error);
  } finally {
    await session.end();
  }
}

/** Server-side codes of a wrong user, password or database. */
const MISTAKES = ['28', '3D', '42501'];

/** Translates a failure to connect for the person who starts the orchestrator. */
async function opened<T>(place: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (isFault(error)) throw error;
    const code = systemCodeOf(error) ?? '';
    const fault = MISTAKES.some((one) => code.startsWith(one)) ? error : postgresFault(place, error);
    if (isFault(fault)) throw fault;
    throw new Fault('invalid_config', `the database ${place} cannot be used: ${messageOf(error)}`, {
      hint: /SSL|TLS|CERT/i.test(`${code} ${messageOf(error)}`) ? TLS_HINT : LOGIN_HINT,
      cause: error,
    });
  }
}

const LOGIN_HINT = 'look at the user, the database and the password (store_password_file, PGPASSFILE or PGPASSWORD)';
const TLS_HINT =
  'the server needs TLS (ssl = on) with a certificate for the host in the URL; ?sslrootcert=FILE names a CA of your own';

/** Checks the server and the way to it before the store is locked: behind a pooler the lock would stay with the pooler. */
async function checkBefore(
  pg: PgModule,
  servers: readonly ClientConfig[],
  place: string,
  clock: Pick<Clock, 'now'>,
): Promise<void> {
  const sessions: PostgresSession[] = [];
  const connect = async (): Promise<RunStatement> => {
    const session = await connectToAny(pg, servers);
    sessions.push(session);
    return (text, values) => session.query(text, values);
  };
  try {
    const first = await connect();
    await checkServer(first, place, clock);
    await checkSessions(first, await connect(), place);
  } finally {
    for (const session of sessions) await session.end();
  }
}

/** Connects to the first server that answers. Throws the last error. */
export async function connectToAny(pg: PgModule, servers: readonly ClientConfig[]): Promise<PostgresSession> {
  let failure: unknown = new Error('the URL names no server');
  for (const server of servers) {
    try {
      return await PostgresSession.connect(pg, server);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** Returns how to connect to each server of the URL. Throws `invalid_config` for unreadable files. */
export function clientConfigs(pg: PgModule, url: PostgresUrl, password: PasswordSource): readonly ClientConfig[] {
  const ca = url.rootCertificate === null ? undefined : certificates(url.rootCertificate);
  return url.addresses.map((address) => {
    const { host, port } = address;
    const secret = passwordOf(password, url, address);
    return {
      host,
      port,
      user: url.user,
      database: url.database,
      // Without this, the library looks for a password file of its own.
      password: secret ?? '',
      ssl: url.usesTls ? { rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) } : false,
      types: numberTypes(pg),
    };
  });
}

function certificates(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new Fault('invalid_config', `the certificates ${file} (sslrootcert) cannot be read: ${messageOf(cause)}`, {
      cause,
    });
  }
}
