/** The PostgreSQL database of a store, as `orch doctor` sees it. It only reads. */
import { statSync } from 'node:fs';
import type { ClientConfig } from 'pg';
import { MIGRATIONS } from '../../daemon/database/migrations/index.js';
import { checkSessions, examineServer } from '../../daemon/database/postgres/check-server.js';
import { loadPg, type PgModule } from '../../daemon/database/postgres/load-pg.js';
import { lockHolder } from '../../daemon/database/postgres/lock-holder.js';
import { postgresSchemaVersion } from '../../daemon/database/postgres/migrate-postgres.js';
import { clientConfigs } from '../../daemon/database/postgres/open-postgres.js';
import type { RunStatement } from '../../daemon/database/postgres/postgres-dialect.js';
import { PostgresSession } from '../../daemon/database/postgres/postgres-session.js';
import { type PostgresUrl, parsePostgresUrl } from '../../daemon/database/postgres/postgres-url.js';
import { messageOf, shellWord } from '../../src/kernel/fault.js';
import { type DoctorCheck, guarded, note, ok, problem, warning } from '../../src/programs/doctor-check.js';
import type { Settings } from '../../src/settings/serve.js';
import { systemClock } from '../this-process.js';

const NAME = 'serve store';

interface StoreServerOptions {
  readonly settings: Pick<Settings, 'store' | 'store_password_file' | 'store_readers'>;
  readonly dataDir: string;
  /** Process of the running orchestrator; null when it is stopped. */
  readonly pid: number | null;
}

export async function storeServerChecks(options: StoreServerOptions): Promise<readonly DoctorCheck[]> {
  const { settings } = options;
  const url = parsePostgresUrl(settings.store);
  const pg = await loadPg();
  const password = passwordChecks(options);
  if (password.some(({ state }) => state === 'problem')) return password;
  const configs = clientConfigs(pg, url, { file: settings.store_password_file, env: process.env });
  const { session, config, checks } = await connect(pg, configs, url);
  if (session === null || config === null) return [...password, ...checks];
  const run: RunStatement = (text, values) => session.query(text, values);
  try {
    return [
      ...password,
      ...checks,
      ...(await guarded(`${NAME} server`, () => serverChecks(run))),
      ...(await guarded(`${NAME} schema`, async () => [await schemaCheck(run, url)])),
      ...(await guarded(`${NAME} lock`, async () => [await lockCheck(run, options)])),
      ...(await guarded(`${NAME} sessions`, async () => [await sessionCheck(pg, config, run, url)])),
      ...(await guarded(`${NAME} connections`, async () => [await connectionCheck(run, options)])),
      ...(await guarded(`${NAME} standby`, () => standbyChecks(run, url))),
    ];
  } finally {
    await session.end();
  }
}

/** Compares the owner of the password file with that of the data directory, who reads it. */
function passwordChecks({ settings, dataDir }: StoreServerOptions): readonly DoctorCheck[] {
  const { store_password_file: file } = settings;
  if (file === '') return [];
  const name = `${NAME} password`;
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return [problem(name, `there is no ${file}`, 'write the password to it, with mode 0600')];
  const word = shellWord(file);
  if ((stats.mode & 0o077) !== 0) return [problem(name, `${file} may be read by others`, `chmod 600 ${word}`)];
  const { uid } = statSync(dataDir);
  if (process.geteuid !== undefined && stats.uid !== uid) {
    const found = `${file} belongs to user ${stats.uid}, and the orchestrator runs as user ${uid}`;
    return [problem(name, found, `chown --reference=${shellWord(dataDir)} ${word}`)];
  }
  return [ok(name, `${file} is readable by its owner alone`)];
}

interface Connected {
  /** Session on the first server that accepts writes; null without one. */
  readonly session: PostgresSession | null;
  readonly config: ClientConfig | null;
  readonly checks: readonly DoctorCheck[];
}

async function connect(pg: PgModule, configs: readonly ClientConfig[], url: PostgresUrl): Promise<Connected> {
  const failures: DoctorCheck[] = [];
  let standbys = 0;
  for (const config of configs) {
    try {
      const session = await PostgresSession.connect(pg, config);
      const { rows } = await session.query("select current_setting('transaction_read_only') as read_only");
      if (rows[0]?.read_only !== 'on') {
        const found = `${url.shown}: ${config.host}:${config.port} answers and accepts writes`;
        return { session, config, checks: [ok(NAME, found), ...failures] };
      }
      standbys += 1;
      await session.end();
    } catch (error) {
      const fix = 'look at the server, the network to it, pg_hba.conf, the user and the password';
      failures.push(warning(NAME, `${config.host}:${config.port} cannot be used: ${messageOf(error)}`, fix));
    }
  }
  if (standbys > 0) {
    const found = `${url.shown}: the servers that answer only read, as standbys do`;
    failures.push(problem(NAME, found, 'promote one of them, or name the primary in the URL (store)'));
  }
  return { session: null, config: null, checks: failures.map((one) => ({ ...one, state: 'problem' })) };
}

async function serverChecks(run: RunStatement): Promise<readonly DoctorCheck[]> {
  const name = `${NAME} server`;
  const { release, findings } = await examineServer(run, systemClock);
  if (findings.length > 0) return findings.map(({ what, mend }) => problem(name, `it ${what}`, mend));
  return [ok(name, `PostgreSQL ${release}, UTF8; it keeps commits over a power cut, and its clock agrees`)];
}

async function schemaCheck(run: RunStatement, { shown }: PostgresUrl): Promise<DoctorCheck> {
  const name = `${NAME} schema`;
  const found = await postgresSchemaVersion(run);
  const newest = MIGRATIONS.at(-1)?.version ?? 0;
  if (found === 0) {
    const fix =
      'for the store of before: orch store copy, or orch serve restore FILE; the first start of a new one makes it';
    return note(name, `${shown} holds no store yet`, fix);
  }
  if (found > newest) {
    return problem(
      name,
      `schema ${found}, and this orch knows schemas up to ${newest}`,
      'install the orch that made it',
    );
  }
  return found < newest
    ? note(
        name,
        `it has schema ${found}; the next start copies the store to the data directory, and migrates it to ${newest}`,
      )
    : ok(name, `schema ${found}`);
}

async function lockCheck(run: RunStatement, { pid }: StoreServerOptions): Promise<DoctorCheck> {
  const name = `${NAME} lock`;
  const holder = await lockHolder(run);
  if (holder === null) {
    return pid === null
      ? ok(name, 'no orchestrator uses the database')
      : problem(name, `process ${pid} runs and does not hold the database`, 'see the log: journalctl -u orch-serve');
  }
  const { place, isOwnRole, role, pid: process } = holder;
  if (!isOwnRole) {
    return warning(
      name,
      `the role ${role} holds the lock of the store in process ${process} of the server`,
      'let no other role connect to this database: revoke connect on database … from public',
    );
  }
  return pid === null
    ? warning(name, `another process uses the database: ${place}`, 'stop it before an orchestrator starts here')
    : ok(name, `held by ${place}`);
}

async function sessionCheck(
  pg: PgModule,
  config: ClientConfig,
  run: RunStatement,
  { shown }: PostgresUrl,
): Promise<DoctorCheck> {
  const second = await PostgresSession.connect(pg, config);
  try {
    await checkSessions(run, (text, values) => second.query(text, values), shown);
    return ok(`${NAME} sessions`, 'each connection has a session of its own');
  } finally {
    await second.end();
  }
}

/** Connections beside those that read: one that writes, one that watches, and two for the checks of a start. */
const BESIDE_READERS = 4;

async function connectionCheck(run: RunStatement, { settings, pid }: StoreServerOptions): Promise<DoctorCheck> {
  const name = `${NAME} connections`;
  const { rows } = await run(
    `select least(
         current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
           - (select count(*) from pg_stat_activity where backend_type = 'client backend'),
         (select case rolconnlimit when -1 then 100000 else
            rolconnlimit - (select count(*) from pg_stat_activity where usename = current_user) end
          from pg_roles where rolname = current_user),
         (select case datconnlimit when -1 then 100000 else
            datconnlimit - (select count(*) from pg_stat_activity where datname = current_database()) end
          from pg_database where datname = current_database())
       ) as free`,
    [],
  );
  // This check has a connection too.
  const free = Number(rows[0]?.free) + 1;
  const needed = settings.store_readers + BESIDE_READERS;
  if (pid !== null || free >= needed) return ok(name, `${free} are free`);
  const fix = 'raise max_connections, or the limit of the user or the database; or lower store_readers';
  return warning(name, `${free} are free, and an orchestrator needs up to ${needed}`, fix);
}

async function standbyChecks(run: RunStatement, { addresses }: PostgresUrl): Promise<readonly DoctorCheck[]> {
  if (addresses.length < 2) return [];
  const name = `${NAME} standby`;
  const { rows } = await run("select current_setting('synchronous_standby_names') as names", []);
  const names = String(rows[0]?.names ?? '');
  if (names !== '') return [ok(name, `commits wait for ${names}`)];
  const found =
    'the URL names several servers, but commits wait for no standby: a failover can lose acknowledged changes';
  return [warning(name, found, 'set synchronous_standby_names in postgresql.conf of the primary')];
}
