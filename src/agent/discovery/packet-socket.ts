/** Receives datagrams on a UDP port, over IPv4 and IPv6, and never sends one. */
import { createSocket, type Socket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { DISCOVERY } from '../../wire/discovery-packet.js';

export interface PacketSocket {
  /** It got another one than asked for when that was 0. */
  readonly port: number;
  close(): void;
}

/** `from` is the address that the datagram says it came from, with the zone of a link-local one. */
export type OnDatagram = (bytes: Uint8Array, from: string, port: number) => void;

/** Throws `port_in_use` or `invalid_config`. A machine without IPv6 hears IPv4 alone. */
export async function openPacketSocket(port: number, onDatagram: OnDatagram): Promise<PacketSocket> {
  const four = createSocket({ type: 'udp4' });
  const six = createSocket({ type: 'udp6', ipv6Only: true });
  const close = () => {
    four.close();
    six.close();
  };
  try {
    const actual = await bind(four, port, '0.0.0.0');
    const isHeard = await bind(six, actual, '::').then(
      () => true,
      () => false,
    );
    if (isHeard) joinGroup(six);
    for (const socket of [four, six]) {
      socket.on('error', () => undefined);
      socket.on('message', (bytes, { address, port }) => onDatagram(bytes, address, port));
    }
    return { port: actual, close };
  } catch (error) {
    close();
    throw refusal(error, port);
  }
}

function bind(socket: Socket, port: number, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ port, address, exclusive: true }, () => {
      socket.off('error', reject);
      resolve(socket.address().port);
    });
  });
}

/** Linux delivers what goes to all nodes anyway; other systems want every interface to be named. */
function joinGroup(socket: Socket): void {
  for (const [name, addresses = []] of Object.entries(networkInterfaces())) {
    if (!addresses.some(({ family }) => family === 'IPv6')) continue;
    try {
      socket.addMembership(DISCOVERY.group, `::%${name}`);
    } catch {
      // An interface that cannot have the group hears no packet of it; the others do.
    }
  }
}

function refusal(cause: unknown, port: number): Fault {
  if (systemCodeOf(cause) === 'EADDRINUSE') {
    return new Fault('port_in_use', `UDP port ${port} is already in use`, {
      hint: 'another agent waits there: stop it, or choose another port with --port',
      cause,
    });
  }
  return new Fault('invalid_config', `UDP port ${port} cannot be listened on: ${messageOf(cause)}`, { cause });
}
