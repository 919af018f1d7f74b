/** Finds the orchestrator's address by discovery packets. */
import type { Clock } from '../../kernel/clock.js';
import type { PublicKeyHex } from '../../kernel/ids.js';
import type { Logger } from '../../kernel/logger.js';
import { type Announcement, DISCOVERY } from '../../wire/discovery-packet.js';
import type { OrchestratorAddress } from '../link/orchestrator-address.js';
import { openPacketSocket, type PacketSocket, type PacketVerifier, type Verdict } from './discovery-packets.js';

interface DiscoveredAddressOptions {
  /** UDP port; 0 picks a free one. */
  readonly port: number;
  readonly verifier: PacketVerifier;
  /** Last address of the orchestrator, or null. */
  readonly last: OrchestratorAddress | null;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Minimum milliseconds between two log lines about refused packets, because any host can send them. */
const TOLD_EVERY = 60_000;

/** Minimum milliseconds between two signature checks. */
const CHECK_EVERY = 50;
/** Maximum senders with waiting packets, and maximum ports per sender. */
const MOST_ADDRESSES = 64;
const MOST_PORTS = 16;

interface Packet {
  readonly bytes: Uint8Array;
  readonly from: string;
  readonly port: number;
}

/**
 * The newest packet of each sender, so that a flood from one does not keep packets of others from being checked. Addresses
 * take turns. Ports of one address, and evicted senders, are chosen at random, because senders can be forged.
 */
class WaitingPackets {
  /** Longest-waiting address first. */
  private readonly byAddress = new Map<string, Map<number, Packet>>();

  put(packet: Packet): void {
    const ports = this.byAddress.get(packet.from) ?? new Map<number, Packet>();
    if (!ports.has(packet.port) && ports.size >= MOST_PORTS) ports.delete(anyOf(ports.keys()) ?? 0);
    ports.set(packet.port, packet);
    if (!this.byAddress.has(packet.from) && this.byAddress.size >= MOST_ADDRESSES) {
      this.byAddress.delete(anyOf(this.byAddress.keys()) ?? '');
    }
    this.byAddress.set(packet.from, ports);
  }

  take(): Packet | null {
    const [first] = this.byAddress;
    if (first === undefined) return null;
    const [address, ports] = first;
    const packet = anyOf(ports.values()) ?? null;
    this.byAddress.delete(address);
    ports.delete(packet?.port ?? 0);
    if (ports.size > 0) this.byAddress.set(address, ports);
    return packet;
  }
}

function anyOf<T>(all: Iterable<T>): T | undefined {
  const list = [...all];
  return list[Math.floor(Math.random() * list.length)];
}

export class DiscoveredAddress implements AddressSource {
  private readonly options: DiscoveredAddressOptions;
  private socket: PacketSocket | null = null;
  private current: AddressCandidate | null;
  /** Address at which the right key answered last. */
  private proven: AddressCandidate | null;
  /** True when the candidate was not tried yet. */
  private isFresh = false;
  private isConnected = false;
  private wake: () => void = () => undefined;
  private readonly waiting = new WaitingPackets();
  /** Timer of the next signature check; undefined while no packet waits. */
  private turn: NodeJS.Timeout | undefined;
  private refusals = 0;
  private lastLogged = Number.NEGATIVE_INFINITY;

  constructor(options: DiscoveredAddressOptions) {
    this.options = options;
    this.current = options.last === null ? null : { address: options.last, announcedKey: null };
    this.proven = this.current;
  }

  async start(): Promise<void> {
    this.socket = await openPacketSocket(this.options.port, (...datagram) => this.receive(...datagram));
    this.options.logger.info('waiting for discovery packets', { udp_port: this.socket.port });
  }

  stop(): void {
    clearTimeout(this.turn);
    this.socket?.close();
    this.socket = null;
  }

  get candidate(): AddressCandidate | null {
    return this.current;
  }

  async untilKnown(signal: AbortSignal): Promise<void> {
    while (this.current === null && !signal.aborted) await this.wait(null, signal);
    this.isFresh = false;
  }

  async pause(ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.isFresh) await this.wait(ms, signal);
    return this.isFresh;
  }

  setConnected(is: boolean): void {
    this.isConnected = is;
    if (!is) return;
    this.isFresh = false;
    this.proven = this.current;
  }

  abandon(): boolean {
    // The orchestrator may return to its last address.
    if (!this.isFresh) this.current = this.proven;
    return true;
  }

  private receive(bytes: Uint8Array, from: string, port: number): void {
    if (this.isConnected || bytes.length > DISCOVERY.maxBytes) return;
    const refusal = this.options.verifier.screen(bytes);
    if (refusal === null) {
      this.waiting.put({ bytes, from, port });
      if (this.turn === undefined) this.verifyNext();
    } else this.logRefusal(refusal, from);
  }

  /** Checks one signature and schedules the next check, so that a flood of forgeries does not load the machine. */
  private verifyNext(): void {
    const packet = this.waiting.take();
    this.turn = packet === null ? undefined : setTimeout(() => this.verifyNext(), CHECK_EVERY);
    if (packet === null || this.isConnected) return;
    const verdict = this.options.verifier.verify(packet.bytes);
    if ('follow' in verdict) this.follow(verdict.follow, packet.from);
    else this.logRefusal(verdict, packet.from);
  }

  private follow(announcement: Announcement, from: string): void {
    const { publicKey: key } = announcement;
    const target = targetOf(announcement, from);
    this.options.logger.info('an orchestrator was found by its discovery packet', { ...target, from, key });
    this.current = { address: target, announcedKey: key };
    this.isFresh = true;
    this.wake();
  }

  private logRefusal({ refused, key }: Extract<Verdict, { refused: string }>, from: string): void {
    this.refusals += 1;
    const now = this.options.clock.monotonic();
    if (now - this.lastLogged < TOLD_EVERY) return;
    this.lastLogged = now;
    this.options.logger.warn('a discovery packet was not followed', {
      reason: refused,
      from,
      key,
      packets: this.refusals,
    });
    this.refusals = 0;
  }

  /** @param ms null to wait without limit */
  private wait(ms: number | null, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.wake = () => undefined;
        resolve();
      };
      const timer = ms === null ? undefined : setTimeout(done, ms);
      this.wake = done;
      signal.addEventListener('abort', done, { once: true });
      if (signal.aborted) done();
    });
  }
}

/** Returns the announced address; a link-local one gets the interface on which the packet arrived. */
function targetOf({ host, port }: Announcement, from: string): OrchestratorAddress {
  const [, zone] = /%(.+)$/.exec(from) ?? [];
  return { host: zone !== undefined && /^fe[89ab][0-9a-f]:/i.test(host) ? `${host}%${zone}` : host, port };
}

export interface AddressCandidate {
  readonly address: OrchestratorAddress;
  /** Key that the discovery packet announced; null for a given address. */
  readonly announcedKey: PublicKeyHex | null;
}

export interface AddressSource {
  /** Throws `port_in_use` or `invalid_config` when the port cannot be opened. */
  start(): Promise<void>;
  stop(): void;
  /** Address to dial now; null while it is unknown. */
  readonly candidate: AddressCandidate | null;
  /** Waits until `candidate` is known or `signal` aborts. */
  untilKnown(signal: AbortSignal): Promise<void>;
  /** Waits that many milliseconds. Returns true, and earlier, when there is a new address to try. */
  pause(ms: number, signal: AbortSignal): Promise<boolean>;
  /** Reports whether the agent is connected; packets are ignored while it is. */
  setConnected(is: boolean): void;
  /** Gives up an address at which another key answered. Returns false when no other address can come. */
  abandon(): boolean;
}
