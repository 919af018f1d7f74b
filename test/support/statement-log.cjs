/** Writes every SQL statement that this process runs to the file of ORCH_TEST_STATEMENTS, one a line. Loaded with `node --require`. */
const { openSync, writeSync } = require('node:fs');

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

const { ORCH_TEST_STATEMENTS: file } = process.env;
if (file !== undefined) {
  const log = openSync(file, 'a');
  for (const Sqlite of loadAll()) {
    const { prepare } = Sqlite.prototype;
    Sqlite.prototype.prepare = function prepareLogged(sql) {
      const statement = prepare.call(this, sql);
      for (const name of ['all', 'run', 'get', 'iterate']) {
        const method = statement[name];
        statement[name] = function logged(...args) {
          writeSync(log, `${JSON.stringify(sql)}\n`);
          return method.apply(this, args);
        };
      }
      return statement;
    };
  }
}
