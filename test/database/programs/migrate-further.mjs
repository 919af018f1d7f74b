/**
 * Opens a store as the orch of a later schema does: `node test/database/programs/migrate-further.mjs FILE [middle]`. With
 * `middle` it says so when the migration is half done, and goes no further.
 */
import { sql } from 'kysely';
import { openDatabase } from '../../../dist/daemon/database/database.js';
import { MIGRATIONS } from '../../../dist/daemon/database/migrations/index.js';
import { silentLogger } from '../../../dist/src/kernel/logger.js';

const [file, where] = process.argv.slice(2);
const next = (MIGRATIONS.at(-1)?.version ?? 0) + 1;
const migrations = [
  ...MIGRATIONS,
  {
    version: next,
    up: async (db) => {
      await db.schema.alterTable('agents').addColumn('note', 'text').execute();
      await sql`create table bulk as with recursive n(i) as (values (1) union all select i + 1 from n where i < 24000)
        select i, randomblob(1000) as text from n`.execute(db);
    },
  },
  {
    version: next + 1,
    up: async (db) => {
      await db.schema.alterTable('operators').addColumn('note', 'text').execute();
      if (where !== 'middle') return;
      console.log('middle');
      await new Promise((resolve) => setTimeout(resolve, 2 ** 30));
    },
  },
];
const options = { server: null, file, clock: Date, logger: silentLogger, migrations, onFatal: () => process.exit(70) };
await (await openDatabase(options)).close();
console.log('migrated');
