/** The SQLite that the store is opened with on this Node, for tests that look into files or damage them. */
import { type Sqlite as LoadedSqlite, loadSqlite } from '../../daemon/database/load-sqlite.js';

export const Sqlite: LoadedSqlite = await loadSqlite();
