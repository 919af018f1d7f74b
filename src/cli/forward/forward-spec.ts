/** Words such as `8080:localhost:80`: where this machine listens, and what the agent connects to. */
import { Fault } from '../../kernel/fault.js';
import type { ForwardTarget } from '../../kernel/forward-target.js';

/** Where this machine listens: on a TCP port, or at the path of a Unix socket. */
export type ListenPlace = { readonly host: string; readonly port: number } | { readonly path: string };

export interface ForwardSpec {
  readonly listen: ListenPlace;
  readonly target: ForwardTarget;
  /** The target as text. */
  readonly targetText: string;
}

/** Without BIND only programs of this machine reach the port. */
const LOOPBACK = '127.0.0.1';
/** The bind address `*` of OpenSSH: all addresses of this machine. */
const EVERYWHERE = '::';
/** Maximum bytes of the path of a Unix socket. */
const PATH_MAX = 107;

const HOST = '(?:\\[([0-9A-Fa-f:.%]+)\\]|([^\\s:/[\\]]+))';
const PORT = '(\\d{1,5})';
const LISTEN_PORT = new RegExp(`^(?:${HOST}:)?${PORT}:(?=[^:])`);
const LISTEN_PATH = /^(\/[^:]*):(?=[^:])/;
const TARGET = new RegExp(`^${HOST}:${PORT}$`);

/** Parses `[BIND:]PORT:HOST:PORT`, with the path of a socket in place of `[BIND:]PORT`, of `HOST:PORT`, or of both. Throws `usage`. */
export function parseForward(text: string): ForwardSpec {
  const byPath = LISTEN_PATH.exec(text);
  if (byPath !== null) return specOf(text, { path: pathOf(byPath[1] ?? '', text) }, text.slice(byPath[0].length));
  // `8080:db:5432` begins like BIND:PORT with the bind address "8080", so the longer reading comes second.
  const short = new RegExp(`^${PORT}:(?=[^:])`).exec(text);
  if (short !== null) {
    const target = targetOf(text.slice(short[0].length));
    if (target !== null) return specOf(text, { host: LOOPBACK, port: portOf(short[1], text, 0) }, target);
  }
  const long = LISTEN_PORT.exec(text);
  if (long === null) throw notAForward(text);
  const bind = long[1] ?? long[2] ?? LOOPBACK;
  const listen = { host: bind === '*' ? EVERYWHERE : bind, port: portOf(long[3], text, 0) };
  return specOf(text, listen, text.slice(long[0].length));
}

function specOf(text: string, listen: ListenPlace, target: string | ForwardTarget): ForwardSpec {
  const found = typeof target === 'string' ? targetOf(target) : target;
  if (found === null) throw notAForward(text);
  if ('path' in found) pathOf(found.path, text);
  else portOf(String(found.port), text, 1);
  return { listen, target: found, targetText: 'path' in found ? found.path : placeText(found) };
}

function targetOf(text: string): ForwardTarget | null {
  if (text.startsWith('/')) return { path: text };
  const [, v6, name, port] = TARGET.exec(text) ?? [];
  const host = v6 ?? name;
  return host === undefined || host === '*' ? null : { host, port: Number(port) };
}

function portOf(text: string | undefined, spec: string, least: number): number {
  const port = Number(text);
  if (port >= least && port <= 65_535) return port;
  throw new Fault('usage', `"${spec}" has the port ${text}, which is none: ports go from 1 to 65535`);
}

function pathOf(path: string, spec: string): string {
  if (Buffer.byteLength(path) <= PATH_MAX) return path;
  throw new Fault('usage', `"${spec}" has a path of a socket longer than ${PATH_MAX} bytes`);
}

/** Returns a place as text. */
export function placeText(place: ListenPlace): string {
  if ('path' in place) return place.path;
  return place.host.includes(':') ? `[${place.host}]:${place.port}` : `${place.host}:${place.port}`;
}

const notAForward = (text: string): Fault =>
  new Fault('usage', `"${text}" is no forward: it is [BIND:]PORT:HOST:PORT, or has paths of Unix sockets`, {
    hint: 'such as 8080:localhost:80, or 5432:/run/postgresql/.s.PGSQL.5432',
  });
