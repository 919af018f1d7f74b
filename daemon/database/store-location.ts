/** Where the settings say that the store is. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Settings } from '../../src/settings/serve.js';
import type { PasswordSource } from './postgres/postgres-password.js';

/** File name of the store in the data directory. */
export const STORE_FILE = 'orch.db';

type StoreSettings = Pick<Settings, 'data_dir' | 'store' | 'store_password_file' | 'store_readers'>;

/** Returns the location of the store. The environment may hold the password: `PGPASSWORD`, `PGPASSFILE`. */
export function storeLocationOf(
  settings: StoreSettings,
  env: Readonly<Record<string, string | undefined>>,
): StoreLocation {
  const file = join(settings.data_dir, STORE_FILE);
  if (settings.store === '') return { file, server: null };
  return {
    file,
    server: serverOf(settings.store, { file: settings.store_password_file, env }, settings.store_readers),
  };
}

/** Returns how to reach a store on PostgreSQL, as a process with a name of its own. */
export const serverOf = (
  url: string,
  password: NonNullable<StoreLocation['server']>['password'],
  readers: number,
): NonNullable<StoreLocation['server']> => ({
  url,
  password,
  readers,
  processName: `orch-${randomBytes(8).toString('hex')}`,
});

/** Where a store is. */
export interface StoreLocation {
  /** Path of the SQLite file; for a store on PostgreSQL, the path that it would have: copies before migrations are put beside it. */
  readonly file: string;
  /** The server that holds the store; null for the file. */
  readonly server: {
    readonly url: string;
    readonly password: PasswordSource;
    readonly readers: number;
    /** Unique name of this process. */
    readonly processName: string;
  } | null;
}
