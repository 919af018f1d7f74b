/** Binds a server to its port, and explains a failure in plain words. */
import { isIPv6, type Server } from 'node:net';
import { Fault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

interface ListenOptions extends ListenAddress {
  /** Name of the setting that chooses the port, for messages. */
  readonly setting: string;
}

/** Returns the bound address. Throws `port_in_use` or `invalid_config`. */
export function listen(server: Server, options: ListenOptions): Promise<ListenAddress> {
  return new Promise((resolve, reject) => {
    const refuse = (error: Error) => reject(refusal(error, options));
    server.once('error', refuse);
    server.listen({ host: options.host, port: options.port }, () => {
      server.off('error', refuse);
      const address = server.address();
      if (typeof address !== 'object' || address === null) return reject(refusal(new Error('no address'), options));
      resolve({ host: address.address, port: address.port });
    });
  });
}

function refusal(cause: Error, { host, port, setting }: ListenOptions): Fault {
  const place = isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
  switch (systemCodeOf(cause)) {
    case 'EADDRINUSE':
      return new Fault('port_in_use', `${place} (${setting}) is already in use`, {
        hint: `another program, or another \`orch serve\`, listens there: stop it or choose another ${setting}`,
        data: { host, port },
        cause,
      });
    case 'EACCES':
      return new Fault('invalid_config', `${place} (${setting}) may not be used by this user`, {
        hint: `choose a ${setting} above 1023, or run as root`,
        cause,
      });
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Fault('invalid_config', `${host} is not an address of this machine`, { cause });
    default:
      return new Fault('invalid_config', `${place} (${setting}) cannot be listened on: ${messageOf(cause)}`, { cause });
  }
}
