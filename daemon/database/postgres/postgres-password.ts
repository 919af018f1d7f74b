/** The password of the store's database. */
import { readFileSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { Fault, messageOf } from '../../../src/kernel/fault.js';
import { homeDirectory } from '../../../src/kernel/home-directory.js';
import type { PostgresAddress, PostgresUrl } from './postgres-url.js';

export interface PasswordSource {
  /** File that holds the password alone; '' for none. */
  readonly file: string;
  /** Environment: `PGPASSWORD`, `PGPASSFILE`, `HOME`. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Returns the password from the file, else from `PGPASSWORD`, else from `PGPASSFILE` or ~/.pgpass; undefined without any, as for
 * a server that knows the user of a socket. It is read at each connection, so a changed one needs no restart.
 * Throws `invalid_config` for a file that cannot be read or that others may read.
 */
export function passwordOf(source: PasswordSource, url: PostgresUrl, address: PostgresAddress): string | undefined {
  const { file, env } = source;
  if (file !== '') return readPrivate(file).replace(/\r?\n$/, '');
  if (env.PGPASSWORD !== undefined && env.PGPASSWORD !== '') return env.PGPASSWORD;
  const passFile =
    env.PGPASSFILE ||
    join(
      homeDirectory(env, () => userInfo().homedir),
      '.pgpass',
    );
  if (!env.PGPASSFILE && statSync(passFile, { throwIfNoEntry: false }) === undefined) return undefined;
  return lineFor(readPrivate(passFile), url, address);
}

function readPrivate(file: string): string {
  try {
    if ((statSync(file).mode & 0o077) !== 0) {
      throw new Fault('invalid_config', `the password file ${file} may be read by others`, {
        hint: `chmod 600 ${file}`,
      });
    }
    return readFileSync(file, 'utf8');
  } catch (cause) {
    if (cause instanceof Fault) throw cause;
    throw new Fault('invalid_config', `the password file ${file} cannot be read: ${messageOf(cause)}`, {
      hint: 'make it readable for the user who runs orch serve only: chmod 600',
      cause,
    });
  }
}

/** Format: https://www.postgresql.org/docs/current/libpq-pgpass.html */
function lineFor(text: string, { database, user }: PostgresUrl, { host, port }: PostgresAddress): string | undefined {
  const wanted = [host.startsWith('/') ? 'localhost' : host, String(port), database, user];
  for (const line of text.split(/\r?\n/)) {
    if (line === '' || line.startsWith('#')) continue;
    const fields = [...line.matchAll(/((?:\\.|[^:\\])*)(?::|$)/g)].map(([, field = '']) =>
      field.replace(/\\(.)/g, '$1'),
    );
    if (wanted.every((value, index) => fields[index] === '*' || fields[index] === value)) return fields[4];
  }
  return undefined;
}
