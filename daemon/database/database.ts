/** Opens a store, wherever it is. */
import { dirname } from 'node:path';
import type { Clock } from '../../src/kernel/clock.js';
import type { Fault } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Migration } from './migrations/migration.js';
import type { OpenDatabase } from './open-database.js';
import { openPostgres } from './postgres/open-postgres.js';
import { openSqlite } from './sqlite/open-sqlite.js';
import type { StoreLocation } from './store-location.js';

export type { OpenDatabase } from './open-database.js';

export interface OpenDatabaseOptions extends StoreLocation {
  readonly logger: Logger;
  readonly clock: Pick<Clock, 'now'>;
  /** Called once when the store can no longer be trusted. The process must end. */
  readonly onFatal: (error: unknown) => void;
  /** True for a copy of another file, which is migrated without a backup [default: false]. */
  readonly isCopy?: boolean;
  /** Migrations to run [default: those of this program]. */
  readonly migrations?: readonly Migration[];
  /** Returns the fault to throw instead of creating a store without any table. */
  readonly faultIfEmpty?: ((place: string) => Fault) | undefined;
  /** Returns the fault to throw instead of opening a store with tables; only for stores on a server. */
  readonly faultIfThere?: ((place: string) => Fault) | undefined;
}

/** Opens the store, and creates or migrates it. Throws as `openSqlite` and `openPostgres` do. */
export function openDatabase({ server, ...options }: OpenDatabaseOptions): Promise<OpenDatabase> {
  return server === null
    ? openSqlite(options)
    : openPostgres({ ...options, ...server, backupDir: dirname(options.file) });
}
