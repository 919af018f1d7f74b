/**
 * Migrations against real old databases. `databases/<version>.sql` is a store of that schema as the last release that had it
 * made it, with rows in every table. Whoever adds migration N+1 leaves those files alone, adds the new one with
 *
 *     node test/database/programs/fill.mjs /tmp/new.db
 *     node test/database/programs/dump.mjs /tmp/new.db > test/database/databases/<N+1>.sql
 *
 * and says in the last test what has to have become of the old rows. Until a schema is released, its file is made anew.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { verifyChain } from '../../daemon/audit/verify-chain.js';
import { findOperator, operatorIdsOfName } from '../../daemon/auth/operator-store.js';
import { listAuditRows } from '../../daemon/core/audit-store.js';
import { MIGRATIONS } from '../../daemon/database/migrations/index.js';
import type { Migration } from '../../daemon/database/migrations/migration.js';
import type { Queryable } from '../../daemon/database/schema.js';
import { openStore, recordingLogger, rejection, SHAPE, Sqlite } from '../support/database.js';
import { DATABASES, oldStore } from '../support/old-store.js';

const versions = readdirSync(DATABASES).map((name) => Number.parseInt(name, 10));
const current = MIGRATIONS.at(-1)?.version ?? 0;

/** Whether a store of that schema had the table. */
const holds = (version: number, table: string): boolean =>
  readFileSync(join(DATABASES, `${version}.sql`), 'utf8').includes(`INSERT INTO "${table}"`);

async function shapeOf(db: Queryable): Promise<unknown> {
  const shape: Record<string, Record<string, string>> = {};
  const { rows } = await sql<{ table: string; column: string; type: string; required: number }>`
    select m.name as "table", c.name as "column", c.type, c."notnull" as required
    from sqlite_master m join pragma_table_info(m.name) c
    where m.type = 'table' and m.name not like 'sqlite_%'
  `.execute(db);
  for (const { table, column, type, required } of rows) {
    shape[table] = { ...shape[table], [column]: type.toLowerCase() + (required ? '' : '?') };
  }
  return shape;
}

/** Everything in the schema as SQL, without the spelling of its maker. */
async function schemaOf(db: Queryable): Promise<readonly unknown[]> {
  const { rows } = await sql`select type, name, tbl_name, sql from sqlite_master order by type, name`.execute(db);
  return rows;
}

const addColumn: Migration = {
  version: current + 1,
  up: async (db) => {
    await db.schema.alterTable('agents').addColumn('note', 'text').execute();
  },
};

describe('the schema', () => {
  it('has the shape that schema.ts says', async () => {
    const { db } = await openStore();
    expect(await shapeOf(db)).toEqual(SHAPE);
  });

  it('is numbered in steps of one', () => {
    expect(MIGRATIONS.map(({ version }) => version)).toEqual(MIGRATIONS.map((_, index) => index + 1));
    expect(versions.toSorted((a, b) => a - b)).toEqual(MIGRATIONS.map(({ version }) => version));
  });

  it('refuses to change what was audited', async () => {
    const { db } = await openStore({ file: oldStore(1) });
    await expect(db.updateTable('audit_events').set({ summary: 'nothing happened' }).execute()).rejects.toThrow(
      'rows of audit_events cannot be changed',
    );
  });

  it('from a later program is refused', async () => {
    const file = oldStore(1);
    const connection = new Sqlite(file);
    connection.pragma('user_version = 99');
    connection.close();
    expect(await rejection(openStore({ file }))).toMatchObject({
      code: 'schema_too_new',
      message: `${file} has schema 99, this program knows schemas up to ${current}`,
      hint: `install the orch that made it, or a newer one; there is no backup of an older schema in ${dirname(file)}`,
    });
  });
});

describe('a migration', () => {
  it('runs once', async () => {
    const file = oldStore(current);
    const migrations = [...MIGRATIONS, addColumn];
    const logger = recordingLogger();
    await (await openStore({ file, migrations, logger })).close();
    expect(logger.lines.map(({ message }) => message)).toEqual([
      'the store was backed up, and is migrated now',
      'the store was migrated',
    ]);
    const again = recordingLogger();
    const { db } = await openStore({ file, migrations, logger: again });
    expect(again.lines).toEqual([]);
    expect(await sql`select note from agents`.execute(db)).toMatchObject({ rows: [{ note: null }] });
  });

  it('may make a table anew without losing what refers to it, but not leave dangling keys', async () => {
    const file = oldStore(current);
    const rebuild: Migration = {
      version: current + 1,
      up: async (db) => {
        await sql`create table new_agents as select * from agents`.execute(db);
        await sql`drop table agents`.execute(db);
        await sql`alter table new_agents rename to agents`.execute(db);
        await sql`create unique index agents_key on agents (node_id)`.execute(db);
      },
    };
    await (await openStore({ file, migrations: [...MIGRATIONS, rebuild] })).close();
    const kept = new Sqlite(file);
    expect(kept.prepare('select count(*) from agent_tags').pluck().get()).toBeGreaterThan(0);
    kept.close();
    const careless: Migration = {
      version: current + 1,
      up: async (db) => {
        await sql`delete from agents`.execute(db);
      },
    };
    await expect(openStore({ file: oldStore(current), migrations: [...MIGRATIONS, careless] })).rejects.toThrow(
      `migration ${current + 1} leaves`,
    );
  });
});

describe('an operator who was added several times', () => {
  it('keeps the newest record and every name, and tokens from before the last time end', async () => {
    const file = oldStore(11);
    const connection = new Sqlite(file);
    const add = connection.prepare(
      "insert into operators (operator_id, public_key, username, role, bootstrap, added_at, added_by, removed_at) values (?, 'k', ?, ?, 0, ?, 'x', ?)",
    );
    const ids = { ada: 'a'.repeat(32), eve: 'e'.repeat(32) };
    add.run(ids.ada, 'ada', 'viewer', 100, 200);
    add.run(ids.eve, 'ada', 'admin', 210, 220);
    add.run(ids.ada, 'ada', 'operator', 230, 240);
    add.run(ids.ada, 'ada-2', 'admin', 300, null);
    const token = connection.prepare(
      "insert into enrolment_tokens (token_id, secret_hash, created_at, created_by, expires_at, uses, uses_left, tags_json, auto_approve) values (?, ?, ?, ?, 9000, 1, 1, '{}', 0)",
    );
    for (const [id, maker, at] of [
      ['early', ids.ada, 250],
      ['late', ids.ada, 350],
      ['gone', ids.eve, 215],
    ]) {
      token.run(id, `hash of ${id}`, at, maker);
    }
    connection.close();
    const { db } = await openStore({ file });
    const operators = await db.selectFrom('operators').selectAll().where('added_by', '=', 'x').execute();
    expect(operators).toMatchObject([
      { operator_id: ids.eve, username: 'ada', removed_at: 220 },
      { operator_id: ids.ada, username: 'ada-2', role: 'admin', removed_at: null },
    ]);
    expect(await operatorIdsOfName(db, 'ada')).toEqual([ids.ada, ids.eve]);
    expect(await operatorIdsOfName(db, 'ada-2')).toEqual([ids.ada]);
    const open = await db.selectFrom('enrolment_tokens').select('token_id').where('revoked_at', 'is', null).execute();
    expect(open).toEqual([{ token_id: 'late' }]);
  });
});

describe('the programs for a new schema', () => {
  it('make a store with a row in every table that the newest of the files has', () => {
    const [fill, dump] = ['fill', 'dump'].map((name) =>
      fileURLToPath(new URL(`programs/${name}.mjs`, import.meta.url)),
    );
    const file = join(dirname(oldStore(current)), 'new.db');
    const run = (program = '') => spawnSync(process.execPath, [program, file], { encoding: 'utf8' });
    expect(run(fill)).toMatchObject({ status: 0, stderr: '' });
    const { stdout } = run(dump);
    const filled = Object.keys(SHAPE).filter((table) => stdout.includes(`INSERT INTO "${table}"`));
    expect(filled).toEqual(Object.keys(SHAPE).filter((table) => holds(current, table)));
  });
});

describe('an old store', () => {
  it.each(versions)('of schema %i has the schema that the migrations up to there make', async (version) => {
    const migrations = MIGRATIONS.slice(0, version);
    const released = await openStore({ file: oldStore(version), migrations });
    const made = await openStore({ migrations });
    const advice = `stores of schema ${version} exist: leave their migrations as they were, and change the schema in a new one`;
    expect(await schemaOf(made.db), advice).toEqual(await schemaOf(released.db));
  });

  it.each(versions)('of schema %i becomes like a new one', async (version) => {
    const old = await openStore({ file: oldStore(version) });
    const fresh = await openStore();
    expect(await schemaOf(old.db)).toEqual(await schemaOf(fresh.db));
    expect(await sql`pragma user_version`.execute(old.db)).toMatchObject({ rows: [{ user_version: current }] });
  });

  it.each(versions)('of schema %i keeps its rows', async (version) => {
    const { db } = await openStore({ file: oldStore(version) });
    const tables = Object.keys(SHAPE).filter((table) => holds(version, table));
    expect(tables.length).toBeGreaterThan(10);
    for (const table of tables) {
      const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(table)}`.execute(db);
      expect([table, rows[0]?.count]).not.toEqual([table, 0]);
    }
    const { rows } = await sql<{ held: string | null }>`select secrets_json as held from applied_resources`.execute(db);
    expect(rows.map(({ held }) => held === null)).toEqual([version < 2]);
    const operations = await sql<{ rollout: string | null }>`select rollout_id as rollout from operations`.execute(db);
    expect(operations.rows.map(({ rollout }) => rollout === null)).toEqual([version < 3]);
    const addresses = await sql<{ address: string }>`select address from operator_addresses`.execute(db);
    expect(addresses.rows).toEqual([{ address: '192.0.2.7' }]);
    const windows = await sql<{ told: string }>`select told from maintenance_windows`.execute(db);
    expect(windows.rows).toEqual(version < 8 ? [] : [{ told: 'started' }]);
    const agents = await sql<{ token: string | null }>`select enrolment_token_id as token from agents`.execute(db);
    expect(agents.rows.map(({ token }) => token === null)).toEqual([version < 9]);
    const [event] = await listAuditRows(db, { eventTypes: ['operator.added'], limit: 1 });
    expect(await findOperator(db, event?.target_id ?? '')).toMatchObject({ username: 'alice', role: 'admin' });
    expect((await verifyChain(db)).broken).toBeNull();
  });

  it.each([
    ['has a rollout that applies outside the windows', '"outsideWindow":true', null, 1],
    ['has a rollout that keeps to the windows', '"outsideWindow":false', null, 0],
    ['is a revert', '"outsideWindow":false', 'A0', 1],
  ])(
    'of schema 27 lets an apply begin outside the windows as before, which %s',
    async (_, order, putsBack, expected) => {
      const file = oldStore(27);
      const old = new Sqlite(file);
      old.prepare('update operations set finished_at = null, puts_back = ?').run(putsBack);
      old.prepare('update rollouts set order_json = ?').run(`{"modules":[],${order}}`);
      old.prepare('update operations set rollout_id = (select rollout_id from rollouts limit 1)').run();
      old.close();
      const { db } = await openStore({ file });
      const { rows } = await sql<{ outside: number }>`select outside_window as outside from operations`.execute(db);
      expect(new Set(rows.map(({ outside }) => outside))).toEqual(new Set([expected]));
    },
  );
});
