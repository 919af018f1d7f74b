/**
 * Fails one SQL statement of this process as a full disk does. The file of ORCH_TEST_FAIL_AT holds its number, counted from the moment
 * at which the number is written; 0 for none. Loaded with `node --require`.
 */
const { readFileSync, writeFileSync } = require('node:fs');

/** Loads the packages that `daemon/database/load-sqlite.ts` may choose. */
function loadAll() {
  return ['better-sqlite3', 'better-sqlite3-13'].flatMap((name) => {
    try {
      return [require(name)];
    } catch {
      return [];
    }
  });
}

const { ORCH_TEST_FAIL_AT: file } = process.env;
if (file !== undefined) {
  for (const Sqlite of loadAll()) {
    const { prepare } = Sqlite.prototype;
    Sqlite.prototype.prepare = function prepareFailing(sql) {
      const statement = prepare.call(this, sql);
      for (const name of ['all', 'run', 'get', 'iterate']) {
        const method = statement[name];
        statement[name] = function failing(...args) {
          const left = Number(readFileSync(file, 'utf8'));
          // A rollback needs no space.
          if (left > 0 && sql !== 'rollback') writeFileSync(file, String(left - 1));
          if (left === 1 && sql !== 'rollback') throw new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL');
          return method.apply(this, args);
        };
      }
      return statement;
    };
  }
}
