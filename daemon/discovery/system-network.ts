/** UDP sockets of this machine for discovery packets. */
import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import type { DiscoveryNetwork, PacketChannel } from './discovery-network.js';
import { isUnicast } from './route-of-packet.js';

export const systemNetwork: DiscoveryNetwork = {
  interfaces: () =>
    Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
      addresses.map(({ family, address, netmask }) => ({ name, family, address, netmask })),
    ),
  broadcast: async ({ from, host, port }) => {
    const isGroup = host.includes(':');
    const socket = createSocket(isGroup ? 'udp6' : 'udp4');
    return opened(socket, async () => {
      await bind(socket, isGroup ? '::' : from);
      if (isGroup) socket.setMulticastInterface(`::%${from}`);
      else socket.setBroadcast(true);
      return channelOf(socket, from, (packet, done) => socket.send(packet, port, host, done));
    });
  },
  unicast: async ({ host, port }) => {
    const { address, family } = await lookup(host, { verbatim: true });
    if (!isUnicast(address)) throw new Error(`${address} is not the address of one machine`);
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
    return opened(socket, async () => {
      await bind(socket, family === 6 ? '::' : '0.0.0.0');
      // Connecting selects the interface, and so the packet's source address.
      await settled(socket, (done) => socket.connect(port, address, done));
      return channelOf(socket, socket.address().address, (packet, done) => socket.send(packet, done));
    });
  },
};

async function opened(socket: Socket, open: () => Promise<PacketChannel>): Promise<PacketChannel> {
  try {
    return await open();
  } catch (error) {
    socket.close();
    throw error;
  }
}

const bind = (socket: Socket, address: string): Promise<void> =>
  settled(socket, (done) => socket.bind({ address, port: 0, exclusive: true }, done));

type Done = (error?: Error | null) => void;

function channelOf(socket: Socket, from: string, send: (packet: Uint8Array, done: Done) => void): PacketChannel {
  // ICMP errors about an earlier packet are irrelevant.
  socket.on('error', () => undefined);
  return {
    from,
    send: (packet) => new Promise((resolve, reject) => send(packet, (error) => (error ? reject(error) : resolve()))),
    close: () => socket.close(),
  };
}

/** Settles a socket call, whose failure arrives either in its callback or as an event. */
function settled(socket: Socket, call: (done: Done) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    call((error) => {
      socket.off('error', reject);
      if (error) reject(error);
      else resolve();
    });
  });
}
