/** Prints a store as SQL: `node test/database/programs/dump.mjs FILE > test/database/databases/VERSION.sql`. */
import { loadSqlite } from '../../../dist/daemon/database/sqlite/load-sqlite.js';

const Sqlite = await loadSqlite();
const db = new Sqlite(process.argv[2], { readonly: true });
const quote = (value) => {
  if (value === null) return 'NULL';
  return typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`;
};
const lines = ['PRAGMA foreign_keys = OFF;'];
const objects = db.prepare("select type, name, sql from sqlite_master where name not like 'sqlite_%'").all();
for (const { type, sql } of objects) if (type === 'table') lines.push(`${sql};`);
for (const { type, name } of objects) {
  if (type !== 'table') continue;
  for (const row of db.prepare(`select * from "${name}"`).all()) {
    const columns = Object.keys(row).map((column) => `"${column}"`);
    lines.push(`INSERT INTO "${name}" (${columns.join(', ')}) VALUES (${Object.values(row).map(quote).join(', ')});`);
  }
}
for (const { type, sql } of objects) if (type !== 'table' && sql) lines.push(`${sql};`);
lines.push(`PRAGMA user_version = ${db.pragma('user_version', { simple: true })};`);
console.log(lines.join('\n'));
