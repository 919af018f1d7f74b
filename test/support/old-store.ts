/** Stores of earlier schemas, from the dumps in `test/database/databases`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Sqlite, temporaryDirectory } from './database.js';

export const DATABASES = fileURLToPath(new URL('../database/databases/', import.meta.url));

/** Makes a file with a store of that schema, and returns its path. */
export function oldStore(version: number, directory = temporaryDirectory()): string {
  const file = join(directory, 'orch.db');
  const connection = new Sqlite(file);
  connection.pragma('journal_mode = WAL');
  connection.exec(readFileSync(join(DATABASES, `${version}.sql`), 'utf8'));
  connection.close();
  return file;
}
