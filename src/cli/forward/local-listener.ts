/** Listens on this machine for the connections of a forward. */
import { once } from 'node:events';
import { lstat } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { type ListenPlace, placeText } from './forward-spec.js';

export interface LocalListener {
  /** Where it listens; a port of 0 is replaced by the chosen one. */
  readonly place: ListenPlace;
  /** Stops listening. Open connections stay. */
  close(): void;
}

/** Listens. Throws `port_in_use`, or `usage` for a place that cannot be listened on. */
export async function listenLocally(
  place: ListenPlace,
  onConnection: (socket: Socket) => void,
): Promise<LocalListener> {
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: false }, (socket) => {
    // The channel reports errors once there is one.
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  await listening(server, place);
  // A failure to accept, such as too many open files, must not end the program.
  server.on('error', () => undefined);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { place: 'path' in place ? place : { ...place, port }, close: () => void server.close() };
}

async function listening(server: Server, place: ListenPlace): Promise<void> {
  if ('path' in place && (await exists(place.path))) {
    throw new Fault('usage', `${place.path} exists already`, { hint: 'remove it if no other program uses it' });
  }
  const listen = () => server.listen('path' in place ? { path: place.path } : { host: place.host, port: place.port });
  try {
    const listens = once(server, 'listening');
    if ('path' in place) privately(listen);
    else listen();
    await listens;
  } catch (error) {
    throw refusalOf(place, error);
  }
}

/** Runs work whose new files only this user may use. Node binds a socket within the call of `listen`. */
function privately(work: () => unknown): void {
  const mask = process.umask(0o177);
  try {
    work();
  } finally {
    process.umask(mask);
  }
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

function refusalOf(place: ListenPlace, error: unknown): Fault {
  const where = placeText(place);
  switch (systemCodeOf(error)) {
    case 'EADDRINUSE':
      return new Fault('port_in_use', `another program listens on ${where}`, { hint: 'choose another port, or 0' });
    case 'EACCES':
      return new Fault('usage', `you may not listen on ${where}`, { hint: 'ports below 1024 are for root' });
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Fault('usage', `${where} is no address of this machine`);
    default:
      return new Fault('usage', `cannot listen on ${where}: ${messageOf(error)}`);
  }
}
