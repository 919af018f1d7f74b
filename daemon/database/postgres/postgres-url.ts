/** The URL of a store on PostgreSQL, such as `postgres://orch@db.example/orch`. */
import { isIP } from 'node:net';
import { Fault } from '../../../src/kernel/fault.js';

export interface PostgresAddress {
  /** Name or address; a path that begins with `/` is the directory of a Unix socket. */
  readonly host: string;
  readonly port: number;
}

export interface PostgresUrl {
  /** Servers to try in this order: the one that accepts writes holds the store. */
  readonly addresses: readonly PostgresAddress[];
  readonly user: string;
  readonly database: string;
  /** File with the certificates that sign the server's; null for those of the system. */
  readonly rootCertificate: string | null;
  /** False only for loopback addresses and Unix sockets, unless the URL asks for TLS there too. */
  readonly usesTls: boolean;
  /** The URL for messages; it holds no secret. */
  readonly shown: string;
}

const PORT = 5432;
const FORM = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?([^/?#]*)\/([^/?#]*)(?:\?([^#]*))?$/;
const PARAMETERS = ['host', 'sslmode', 'sslrootcert'];

/** Returns true for a text that names a store on PostgreSQL, and not a file. */
export const isPostgresUrl = (text: string): boolean => /^postgres(ql)?:/i.test(text);

/** Throws `invalid_config` for a URL that is malformed, holds a password, or would send one without TLS. */
export function parsePostgresUrl(text: string): PostgresUrl {
  const [, account = '', authority = '', database = '', query = ''] = FORM.exec(text) ?? refuse('is no such URL');
  const [user = '', ...password] = account.split(':');
  if (password.length > 0) {
    refuse(
      'holds a password',
      'write it to a file that only this user may read, and name that file with store_password_file',
    );
  }
  const parameters = new URLSearchParams(query);
  for (const name of parameters.keys()) {
    if (!PARAMETERS.includes(name)) refuse(`has the parameter ${name}`, `the parameters are ${PARAMETERS.join(', ')}`);
  }
  if (user === '' || database === '') refuse(`names no ${user === '' ? 'user' : 'database'}`);
  const socket = parameters.get('host');
  const addresses = (socket === null ? authority.split(',') : [socket]).map(addressOf);
  const mode = parameters.get('sslmode');
  if (mode !== null && mode !== 'disable' && mode !== 'verify-full') {
    refuse(`has sslmode=${mode}`, 'TLS is verified (verify-full) or, on this machine alone, off (disable)');
  }
  const isLocal = addresses.every(({ host }) => isLoopback(host));
  if (mode === 'disable' && !isLocal) {
    refuse(
      'turns TLS off for another machine',
      'remove sslmode; a certificate of your own CA is named with sslrootcert=FILE',
    );
  }
  const names = addresses.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(',');
  return {
    addresses,
    user: decoded(user),
    database: decoded(database),
    rootCertificate: parameters.get('sslrootcert'),
    usesTls: mode === 'verify-full' || !isLocal,
    shown: `postgres://${user}@${socket === null ? names : ''}/${database}${socket === null ? '' : `?host=${socket}`}`,
  };
}

function addressOf(text: string): PostgresAddress {
  if (text.startsWith('/')) return { host: text, port: PORT };
  const [, bracketed, plain, port] =
    /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? refuse('names no host');
  const host = bracketed ?? plain ?? '';
  if (Number(port ?? PORT) > 65_535) refuse(`names the port ${port}`);
  return { host: decoded(host), port: Number(port ?? PORT) };
}

const isLoopback = (host: string): boolean =>
  host.startsWith('/') || host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return refuse('is not encoded rightly');
  }
}

/** Never shows the URL itself, because it may hold a password. */
function refuse(
  what: string,
  hint = 'write postgres://USER@HOST:PORT/DATABASE, or postgres://USER@/DATABASE?host=/run/postgresql',
): never {
  throw new Fault('invalid_config', `the URL of the store (store) ${what}`, { hint });
}
