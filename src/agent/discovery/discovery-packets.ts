/** Receives discovery packets over IPv4 and IPv6, and decides which of them the agent follows. */
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
  /** The bound port, which differs from the requested one if that was 0. */
  readonly port: number;
  close(): void;
}

/** @param from sender's address, with the zone of a link-local one; it can be forged */
type OnDatagram = (bytes: Uint8Array, from: string, port: number) => void;

/** Opens the port; without IPv6, for IPv4 only. Throws `port_in_use` or `invalid_config`. */
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

/** Joins the all-nodes group on every interface; Linux delivers its packets anyway, other systems do not. */
function joinGroup(socket: Socket): void {
  for (const [name, addresses = []] of Object.entries(networkInterfaces())) {
    if (!addresses.some(({ family }) => family === 'IPv6')) continue;
    try {
      socket.addMembership(DISCOVERY.group, `::%${name}`);
    } catch {
      // The other interfaces can still join.
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
 * Options of `PacketJudge`, which decides which discovery packets the agent follows. A packet only names an address: the
 * handshake there must prove the same key. So the times in packets are not compared with the clock of this machine, which may
 * be wrong. They only have to grow, so that an old packet does not lead back to an old address.
 */
interface PacketVerifierOptions {
  readonly clock: Clock;
  /** Returns the only accepted key; null while none is pinned or given. */
  readonly pinned: () => PublicKeyHex | null;
  /** Accepts the first key that comes. */
  readonly trustOnFirstUse: boolean;
}

/** Why a packet is not followed. `key` is the key that it names, proved or not. */
interface Refusal {
  readonly refused: string;
  readonly key: PublicKeyHex | null;
}

export type Verdict = { readonly follow: Announcement } | Refusal;

/** Minimum milliseconds between two followed packets. */
const PAUSE = 10_000;
/** Milliseconds for which the time of a followed packet counts, so that a clock set back does not silence an orchestrator. */
const MEMORY = 600_000;

interface Followed {
  readonly key: PublicKeyHex;
  readonly timestamp: number;
  /** Monotonic milliseconds. */
  readonly at: number;
}

export class PacketVerifier {
  private readonly options: PacketVerifierOptions;
  private readonly decode: PacketDecoder = packetDecoder();
  private last: Followed | null = null;

  constructor(options: PacketVerifierOptions) {
    this.options = options;
  }

  /** Returns why a packet is not followed without checking its signature, which is cheap; null when the signature decides. */
  screen(bytes: Uint8Array): Refusal | null {
    const packet = this.decode(bytes);
    if (packet === null) return { refused: 'it is no discovery packet', key: null };
    const { publicKey: key, timestamp } = packet;
    const refused = this.refusalOf(key) ?? this.timeProblem(key, timestamp, this.options.clock.monotonic());
    return refused === null ? null : { refused, key };
  }

  verify(bytes: Uint8Array): Verdict {
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

  private timeProblem(key: PublicKeyHex, timestamp: number, now: number): string | null {
    const { last } = this;
    if (last === null) return null;
    if (now - last.at < PAUSE) return 'another one was followed within the last ten seconds';
    const isKnown = last.key === key && now - last.at < MEMORY;
    return isKnown && timestamp <= last.timestamp ? 'it is not newer than the last one' : null;
  }
}
