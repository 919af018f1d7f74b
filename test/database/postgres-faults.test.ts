/** A store on PostgreSQL whose server, connections and answers are lost. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { readChainHead } from '../../daemon/core/audit-log.js';
import { SYSTEM } from '../../daemon/core/domain-event.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import { type OpenDatabase, openDatabase } from '../../daemon/database/database.js';
import { getMeta, setMeta } from '../../daemon/database/meta.js';
import { STORE_LOCK } from '../../daemon/database/postgres/lock-holder.js';
import { ConnectionLost } from '../../daemon/database/postgres/postgres-error.js';
import { PostgresSession } from '../../daemon/database/postgres/postgres-session.js';
import { isFault } from '../../src/kernel/fault.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { CuttingWay, type Loss } from '../support/cutting-way.js';
import { newIds, rejection, temporaryDirectory } from '../support/database.js';
import { noPostgres, TestPostgres } from '../support/postgres.js';
import { until } from '../support/until.js';

const CLOCK = { now: Date.now, monotonic: () => performance.now() };

const NAME = `a store on PostgreSQL${noPostgres === null ? '' : ` (skipped: ${noPostgres})`}`;

describe.skipIf(noPostgres !== null)(NAME, () => {
  let postgres: TestPostgres;
  let databases = 0;

  beforeAll(async () => {
    postgres = await TestPostgres.start();
  });
  afterAll(() => postgres?.remove());

  /** Opens a store of its own, over `way` if there is one. */
  async function open(way: { readonly port: number } | null = null, name?: string): Promise<Opened> {
    databases += name === undefined ? 1 : 0;
    const database = name ?? `d${databases}`;
    if (name === undefined) await postgres.createDatabase(database);
    const fatal: unknown[] = [];
    const url = `postgres://orch@127.0.0.1:${way?.port ?? postgres.port}/${database}`;
    const store = await openDatabase({
      file: join(temporaryDirectory(), 'orch.db'),
      server: {
        url,
        password: { file: '', env: {} },
        readers: 3,
        processName: `test-${randomBytes(6).toString('hex')}`,
      },
      logger: silentLogger,
      clock: Date,
      onFatal: (error) => fatal.push(error),
    });
    onTestFinished(() => store.close());
    const uow = new TransactionalWriter({
      db: store.db,
      clock: CLOCK,
      newId: newIds(),
      publish: () => undefined,
    });
    return { store, uow, fatal, database };
  }

  interface Opened {
    readonly store: OpenDatabase;
    readonly uow: TransactionalWriter;
    readonly fatal: readonly unknown[];
    readonly database: string;
  }

  /** Writes a key, with an audit event or without one. Returns true when it was acknowledged. */
  async function write({ uow }: Opened, key: string, hasEvent: boolean): Promise<boolean> {
    try {
      await uow.write(async (tx, emit) => {
        await setMeta(tx, key, 'written');
        if (hasEvent) {
          emit({ type: 'orchestrator.started', actor: SYSTEM, target: SYSTEM, summary: key, metadata: {} });
        }
      });
      return true;
    } catch (error) {
      if (isFault(error, 'store_unavailable')) return false;
      throw error;
    }
  }

  it.each<[Loss, boolean, boolean]>([
    ['request', true, false],
    ['request', false, false],
    ['answer', true, true],
    ['answer', false, true],
  ])('tells the truth about a commit whose %s is lost (with an event: %s)', async (loss, hasEvent, isCommitted) => {
    const way = await CuttingWay.to(postgres.port);
    onTestFinished(() => way.close());
    const opened = await open(way);
    expect(await write(opened, 'before', true)).toBe(true);
    way.loseCommit(loss);
    expect(await write(opened, 'lost', hasEvent)).toBe(isCommitted);
    expect(await getMeta(opened.store.db, 'lost')).toBe(isCommitted ? 'written' : null);
    expect(await write(opened, 'after', true)).toBe(true);
    expect(opened.fatal).toEqual([]);
  });

  it('acknowledges exactly what it holds, however often commits and connections are lost', async () => {
    const way = await CuttingWay.to(postgres.port);
    onTestFinished(() => way.close());
    const opened = await open(way);
    const acknowledged = new Map<string, boolean>();
    for (let round = 0; round < 30; round += 1) {
      const fault = round % 5;
      if (fault === 0) way.loseCommit('answer');
      if (fault === 1) way.loseCommit('request');
      if (fault === 2) setImmediate(() => way.cut());
      const keys = Array.from({ length: 8 }, (_, index) => `${round}-${index}`);
      await Promise.all(
        keys.map(async (key, index) => acknowledged.set(key, await write(opened, key, (round + index) % 3 !== 0))),
      );
    }
    await until(async () => write(opened, 'end', true), 'a write is accepted');
    for (const [key, isAcknowledged] of acknowledged) {
      expect([key, await getMeta(opened.store.db, key)]).toEqual([key, isAcknowledged ? 'written' : null]);
    }
    expect(opened.fatal).toEqual([]);
  });

  it('refuses reads and writes while the server is away, and goes on with what it had when it is back', async () => {
    const own = await TestPostgres.start();
    onTestFinished(() => own.remove());
    await own.createDatabase('orch');
    const store = await openDatabase({
      file: join(temporaryDirectory(), 'orch.db'),
      server: { url: own.url('orch'), password: { file: '', env: {} }, readers: 3, processName: 'test-away' },
      logger: silentLogger,
      clock: Date,
      onFatal: (error) => {
        throw error;
      },
    });
    onTestFinished(() => store.close());
    const uow = new TransactionalWriter({
      db: store.db,
      clock: CLOCK,
      newId: newIds(),
      publish: () => undefined,
    });
    const opened: Opened = { store, uow, fatal: [], database: 'orch' };
    expect(await write(opened, 'one', true)).toBe(true);
    const head = await readChainHead(store.db);
    for (const round of ['first', 'second']) {
      await own.kill();
      expect((await rejection(getMeta(store.db, 'one'))).code).toBe('store_unavailable');
      expect(await write(opened, round, true)).toBe(false);
      await own.boot();
      await until(async () => (await getMeta(store.db, 'one').catch(() => null)) === 'written', 'reads are answered');
      expect(await readChainHead(store.db)).toEqual(head);
      expect(await getMeta(store.db, round)).toBe(null);
    }
    await until(() => write(opened, 'again', true), 'a write is accepted');
    expect((await readChainHead(store.db)).seq).toBe(head.seq + 1);
  });

  it('gives up on a server that is silent, and goes on when it speaks again', async () => {
    const way = await CuttingWay.to(postgres.port);
    onTestFinished(() => way.close());
    const opened = await open(way);
    expect(await write(opened, 'one', true)).toBe(true);
    way.silent = true;
    expect((await rejection(getMeta(opened.store.db, 'one'))).code).toBe('store_unavailable');
    way.silent = false;
    await until(() => write(opened, 'two', true), 'a write is accepted');
    expect(opened.fatal).toEqual([]);
  });

  it('is refused while another orchestrator has it, and free when that one has ended', async () => {
    const first = await open();
    const refused = await rejection(open(null, first.database));
    expect(refused.code).toBe('data_dir_locked');
    expect(refused.message).toContain('is in use by another orchestrator (127.0.0.1/32, since');
    await first.store.close();
    await open(null, first.database);
  });

  it('is refused with the name of the role that holds its lock, and how to keep roles out', async () => {
    await postgres.createDatabase('locked');
    await postgres.sql('create role mallory login');
    const mallory = new pg.Client({ host: '127.0.0.1', port: postgres.port, user: 'mallory', database: 'locked' });
    await mallory.connect();
    await mallory.query(`select pg_advisory_lock(${STORE_LOCK})`);
    const refused = await rejection(open(null, 'locked'));
    await mallory.end();
    expect([refused.code, refused.message]).toEqual([
      'data_dir_locked',
      expect.stringMatching(/process \d+ of the server holds the lock of .*, as the role mallory$/),
    ]);
    expect(refused.hint).toMatch(/pg_terminate_backend\(\d+\).*revoke connect on database/);
    await open(null, 'locked');
  });

  it('is refused in a schema of another role, which could drop its tables', async () => {
    await postgres.createDatabase('foreign');
    await postgres.sql('create role owner; create schema orch authorization owner', 'foreign');
    const refused = await rejection(open(null, 'foreign'));
    expect([refused.code, refused.message]).toEqual([
      'invalid_config',
      expect.stringContaining('belongs to the role owner, and orch serve connects as orch'),
    ]);
    await postgres.sql('alter schema orch owner to orch', 'foreign');
    await open(null, 'foreign');
  });

  it('ends when another orchestrator has taken the store over', async () => {
    const way = await CuttingWay.to(postgres.port);
    onTestFinished(() => way.close());
    const opened = await open(way);
    expect(await write(opened, 'one', true)).toBe(true);
    way.closed = true;
    way.cut();
    const other = await open(null, opened.database);
    way.closed = false;
    expect(await write(opened, 'two', true)).toBe(false);
    expect(await write(other, 'two', true)).toBe(true);
    expect(opened.fatal).toEqual([]);
    await other.store.close();
    await until(() => opened.fatal.length > 0, 'the other one is noticed');
    expect(String(opened.fatal[0])).toContain('another orchestrator has written to the store meanwhile');
    expect(await write(opened, 'three', true)).toBe(false);
  });

  it('ends when the server lacks events that were committed', async () => {
    const way = await CuttingWay.to(postgres.port);
    onTestFinished(() => way.close());
    const opened = await open(way);
    expect(await write(opened, 'one', true)).toBe(true);
    expect(await write(opened, 'two', true)).toBe(true);
    await postgres.sql('delete from orch.audit_events where seq = 2', opened.database);
    way.cut();
    await until(() => opened.fatal.length > 0, 'the loss is noticed');
    expect(String(opened.fatal[0])).toContain('the store lacks events that were committed');
    expect(await write(opened, 'three', true)).toBe(false);
  });

  it('takes a commit for unconfirmed when the server warns of anything, in whatever language', async () => {
    const database = await postgres.createDatabase('warned');
    const session = await PostgresSession.connect(pg, { connectionString: database });
    onTestFinished(() => session.end());
    await session.query('create table public.t (a int)');
    const warn = "begin raise warning 'die Standby-Bestätigung fehlt'; return null; end";
    await session.query(`create function public.warn() returns trigger language plpgsql as $$ ${warn} $$`);
    await session.query(
      'create constraint trigger w after insert on public.t deferrable initially deferred for each row execute function public.warn()',
    );
    await session.query('begin');
    expect(session.isIdle).toBe(false);
    await session.query('insert into public.t values (1)');
    await expect(session.commit()).rejects.toBeInstanceOf(ConnectionLost);
    expect(session.ended.aborted).toBe(true);
  });

  it('does not commit a transaction that has failed within', async () => {
    const opened = await open();
    const swallowing = opened.uow.write(async (tx) => {
      await setMeta(tx, 'half', 'written');
      await tx
        .insertInto('meta')
        .values({ key: 'half', value: 'twice' })
        .execute()
        .catch(() => undefined);
    });
    await expect(swallowing).rejects.toThrow();
    expect(await getMeta(opened.store.db, 'half')).toBe(null);
    expect(await write(opened, 'whole', true)).toBe(true);
  });

  it('refuses updates of the audit log', async () => {
    const opened = await open();
    expect(await write(opened, 'one', true)).toBe(true);
    await expect(postgres.sql("update orch.audit_events set summary = 'other'", opened.database)).rejects.toThrow(
      'rows of audit_events cannot be changed',
    );
  });
});
