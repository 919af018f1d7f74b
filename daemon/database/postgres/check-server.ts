/** Refuses servers that a store cannot rely on. */
import type { Clock } from '../../../src/kernel/clock.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { RunStatement } from './postgres-dialect.js';

const OLDEST = 14;
const CLOCK_MS = 2_000;

/** A reason why a store cannot rely on a server. */
interface ServerFinding {
  /** Continues a sentence that begins with the server. */
  readonly what: string;
  readonly mend: string;
}

/** Returns the release of a server, and why it is too old, loses commits, stores another encoding, or has another time. */
export async function examineServer(
  run: RunStatement,
  clock: Pick<Clock, 'now'>,
): Promise<{ readonly release: number; readonly findings: readonly ServerFinding[] }> {
  const { rows } = await run(
    `select current_setting('server_version_num')::int / 10000 as major, current_setting('server_encoding') as encoding,
       current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
       current_setting('synchronous_commit') as commits, extract(epoch from clock_timestamp()) * 1000 as now`,
    [],
  );
  const [{ major, encoding, fsync, pages, commits, now }] = rows as [Record<string, string | number>];
  const findings: ServerFinding[] = [];
  const find = (what: string, mend: string): void => void findings.push({ what, mend });
  if (Number(major) < OLDEST) find(`is PostgreSQL ${major}`, `upgrade it to PostgreSQL ${OLDEST} or later`);
  if (encoding !== 'UTF8') {
    find(`has the encoding ${encoding}`, 'create it with: createdb --encoding=UTF8 --template=template0');
  }
  if (fsync === 'off') {
    find('runs with fsync=off, and would be damaged by a power cut', 'set fsync = on in postgresql.conf');
  }
  if (pages === 'off') find('runs with full_page_writes=off', 'set full_page_writes = on in postgresql.conf');
  if (commits === 'off') {
    find(
      'runs with synchronous_commit=off, and would lose acknowledged changes',
      'set synchronous_commit = on, in postgresql.conf or with: alter database … set synchronous_commit = on',
    );
  }
  const ahead = Math.abs(Number(now) - clock.now());
  if (ahead > CLOCK_MS) {
    find(`has another time than this machine, by ${Math.round(ahead / 1000)} seconds`, 'let NTP set both clocks');
  }
  return { release: Number(major), findings };
}

/** Throws `invalid_config` for a server that a store cannot rely on. */
export async function checkServer(run: RunStatement, place: string, clock: Pick<Clock, 'now'>): Promise<void> {
  const [first] = (await examineServer(run, clock)).findings;
  if (first !== undefined) {
    throw new Fault('invalid_config', `the database ${place} ${first.what}`, { hint: first.mend });
  }
}

const PROBE = 'orch.probe';

/**
 * Throws `invalid_config` behind a pooler that shares sessions between its clients: prepared statements and the lock of the store
 * live in a session. `first` sets a value of its session, which another session must never see.
 */
export async function checkSessions(first: RunStatement, second: RunStatement, place: string): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    const value = String(round + Math.random());
    await first('select set_config($1, $2, false)', [PROBE, value]);
    await second('begin', []);
    const seen = (await second('select current_setting($1, true) as value', [PROBE])).rows[0]?.value;
    // With a single session, another statement of the first would wait for the second.
    const kept =
      seen === value ? null : (await first('select current_setting($1, true) as value', [PROBE])).rows[0]?.value;
    await second('rollback', []);
    if (kept !== value) {
      throw new Fault('invalid_config', `${place} is a connection pooler that shares sessions between transactions`, {
        hint: 'set pool_mode = session for this database, or connect to PostgreSQL directly',
      });
    }
  }
}
