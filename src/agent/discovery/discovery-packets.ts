/** Receives datagrams on a UDP port, over IPv4 and IPv6, and never sends one. */
import { createSocket, type Socket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { verifySignature } from '../../identity/proof-of-key.js';
import type { Clock } from '../../kernel/clock.js';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { PublicKeyHex } from '../../kernel/ids.js';
import {
  type Announcement,
  DISCOVERY,
  type PacketDecoder,
  packetDecoder,
  signedBytes,
} from '../../wire/discovery-packet.js';

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

/**
 * Decides which discovery packets the agent follows. A packet only says where to dial: the handshake there has to prove the
 * same key. So the times in packets are not held against the clock of this machine, which may be wrong on a new one; they
 * only have to grow, so that an old packet does not lead back to where the orchestrator was.
 */
export interface PacketJudgeOptions {
  readonly clock: Clock;
  /** The only key that is followed, as of now; null while none is pinned and none was given. */
  readonly pinned: () => PublicKeyHex | null;
  /** Follow whatever key comes first. */
  readonly trustOnFirstUse: boolean;
}

/** `key` is the one that the packet names, proved or not. */
export interface Refusal {
  readonly refused: string;
  readonly key: PublicKeyHex | null;
}

export type Verdict = { readonly follow: Announcement } | Refusal;

/** Milliseconds between two packets that are followed. */
const PAUSE = 10_000;
/** So long an earlier packet's time counts, in milliseconds: a clock that was set back must not silence an orchestrator. */
const MEMORY = 600_000;

interface Followed {
  readonly key: PublicKeyHex;
  readonly timestamp: number;
  /** By the monotonic clock. */
  readonly at: number;
}

export class PacketJudge {
  private readonly options: PacketJudgeOptions;
  private readonly decode: PacketDecoder = packetDecoder();
  private last: Followed | null = null;

  constructor(options: PacketJudgeOptions) {
    this.options = options;
  }

  /** Why a packet is not followed, whatever its signature; null when that decides. Costs next to nothing. */
  screen(bytes: Uint8Array): Refusal | null {
    const packet = this.decode(bytes);
    if (packet === null) return { refused: 'it is no discovery packet', key: null };
    const { publicKey: key, timestamp } = packet;
    const refused = this.refusalOf(key) ?? this.untimely(key, timestamp, this.options.clock.monotonic());
    return refused === null ? null : { refused, key };
  }

  judge(bytes: Uint8Array): Verdict {
    const refusal = this.screen(bytes);
    const packet = this.decode(bytes);
    if (refusal !== null) return refusal;
    if (packet === null) return { refused: 'it is no discovery packet', key: null };
    const { publicKey: key, signature, timestamp } = packet;
    const now = this.options.clock.monotonic();
    if (!verifySignature(key, signedBytes(packet), signature)) return { refused: 'its signature is wrong', key };
    this.last = { key, timestamp, at: now };
    return { follow: packet };
  }

  private refusalOf(key: PublicKeyHex): string | null {
    const pinned = this.options.pinned();
    if (pinned === null) return this.options.trustOnFirstUse ? null : 'no key of an orchestrator is known here';
    return key === pinned ? null : 'it is of another orchestrator than the expected one';
  }

  private untimely(key: PublicKeyHex, timestamp: number, now: number): string | null {
    const { last } = this;
    if (last === null) return null;
    if (now - last.at < PAUSE) return 'another one was followed within the last ten seconds';
    const isKnown = last.key === key && now - last.at < MEMORY;
    return isKnown && timestamp <= last.timestamp ? 'it is not newer than the last one' : null;
  }
}
