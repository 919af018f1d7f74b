/** One agent's WebSocket: its allowed messages, their order, and its liveness. */
import type { RawData, WebSocket } from 'ws';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import type { NodeId, PublicKeyHex } from '../../src/kernel/ids.js';
import { type Decode, encode, encodedPieces, isLarge, UnknownMessage, unknownType } from '../../src/wire/codec.js';
import { CLOSE, LINK_LIMITS } from '../../src/wire/limits.js';
import {
  type AgentMessage,
  type AgentMessageOf,
  type OrchestratorMessage,
  PENDING_MESSAGES,
} from '../../src/wire/messages.js';
import { fitTo, isKnown } from '../../src/wire/version.js';
import type { Core } from '../core/core.js';
import type { AgentPeer } from './agent-peer.js';
import type { FrameLimit } from './frame-limit.js';
import { IgnoredBudget } from './ignored-budget.js';
import { Outbox } from './outbox.js';
import type { WriteTurns } from './write-turns.js';

/**
 * State of an open connection: `fresh` before its hello is processed, `pending` until an operator decides, then
 * `approved`.
 */
export type OpenState = 'fresh' | 'pending' | 'approved';
type ConnectionState = OpenState | 'closed';

interface ConnectionEvents {
  /** Handles a valid message that the state allows. The next one is delivered once this has settled. */
  message(message: AgentMessage): Promise<void>;
  /**
   * Called with the reason why the connection ends: the peer's `protocol_violation` or `protocol_mismatch`, or the
   * error of `message`.
   */
  failed(fault: Fault): void;
  /** Called once, in the tick in which the connection ends; its socket may take longer to close. */
  closed(last: OpenState): void;
}

interface ConnectionOptions extends AgentPeer, Pick<Core, 'clock'> {
  readonly decode: Decode<AgentMessage>;
  /** Shared by all connections. */
  readonly turns: WriteTurns;
}

/** States from which a connection may enter a state. */
const BEFORE: Readonly<Record<'pending' | 'approved', readonly ConnectionState[]>> = {
  pending: ['fresh'],
  approved: ['fresh', 'pending'],
};
/** Messages queued before the socket is paused. */
const QUEUE_LIMIT = 32;
/** Timeout in milliseconds for the peer's answer to a close. */
const GOODBYE = 2_000;

export class AgentConnection {
  readonly publicKey: PublicKeyHex;
  readonly nodeId: NodeId;
  readonly remoteAddress: string;
  private readonly socket: WebSocket;
  private readonly transport: AgentPeer['transport'];
  private readonly limit: FrameLimit;
  private readonly decode: Decode<AgentMessage>;
  private readonly liveness: Liveness;
  private readonly ignored: IgnoredBudget;
  private readonly queue: AgentMessage[] = [];
  private readonly outbox: Outbox;
  private readonly turns: WriteTurns;
  /** The message that is being written, and its next piece. */
  private unfinished: { readonly rest: Iterator<string>; next: string } | null = null;
  private events: ConnectionEvents | undefined;
  private current: ConnectionState = 'fresh';
  private hasHello = false;
  private version = 1;
  private hostname: string | null = null;
  private draining = false;
  private closeTimer: NodeJS.Timeout | undefined;
  /** Set while nothing is read because the agent sent too much that is ignored. */
  private slowdown: NodeJS.Timeout | undefined;

  constructor(options: ConnectionOptions) {
    this.socket = options.socket;
    this.transport = options.transport;
    this.publicKey = options.publicKey;
    this.nodeId = options.nodeId;
    this.remoteAddress = options.remoteAddress;
    this.limit = options.limit;
    this.decode = options.decode;
    this.liveness = new Liveness(options.clock);
    this.ignored = new IgnoredBudget(options.clock);
    this.outbox = new Outbox(options.clock);
    this.turns = options.turns;
  }

  get state(): ConnectionState {
    return this.current;
  }

  /** Starts delivering messages. */
  open(events: ConnectionEvents): void {
    this.events = events;
    this.limit(LINK_LIMITS.pendingFrame, () => this.fail(tooMuch()));
    this.transport.on('drain', () => {
      if (this.hasMore()) this.turns.add(this.writePiece);
    });
    this.socket.on('message', (data, isBinary) => this.take(data, isBinary));
    this.socket.on('ping', () => this.liveness.recordMessage());
    this.socket.on('pong', () => this.liveness.recordMessage());
    this.socket.on('error', (error) => {
      // Other errors come from the transport, and its close event follows.
      const isPeers = this.current !== 'closed' && systemCodeOf(error)?.startsWith('WS_ERR_');
      if (isPeers) this.fail(violation(`a broken frame: ${messageOf(error)}`));
    });
    this.socket.on('close', () => {
      clearTimeout(this.closeTimer);
      this.end();
    });
  }

  /**
   * Moves the agent to a state. Returns false, without a change, when the connection has ended or is already in that
   * state.
   */
  become(state: 'pending' | 'approved'): boolean {
    if (!BEFORE[state].includes(this.current)) return false;
    this.current = state;
    if (state === 'approved') this.limit(null);
    return true;
  }

  /** Takes the protocol version and the host name of the agent from its hello. */
  greeted({ protocol_version, hostname }: AgentMessageOf<'hello'>): void {
    this.version = protocol_version;
    this.hostname = hostname;
  }

  /** Host name and address of the machine; null before its hello. */
  get machine(): { readonly hostname: string; readonly address: string } | null {
    return this.hostname === null ? null : { hostname: this.hostname, address: this.remoteAddress };
  }

  /** Returns false when the agent's protocol version lacks messages of this type. */
  supports(type: OrchestratorMessage['type']): boolean {
    return isKnown(this.version, type);
  }

  /**
   * Sends a message, as soon as the agent has read most of those before. Returns false when the connection is closed, the peer
   * does not know the message, or its backlog exceeded the limit and the connection was terminated.
   */
  send(message: OrchestratorMessage): boolean {
    if (!this.supports(message.type) || this.current === 'closed' || this.socket.readyState !== this.socket.OPEN)
      return false;
    const isNext = this.unfinished === null && this.outbox.isEmpty;
    if (isNext && this.socket.bufferedAmount <= LINK_LIMITS.ahead && !isLarge(message)) {
      this.socket.send(encode(fitTo(this.version, message)));
      return true;
    }
    if (!this.outbox.add(message)) {
      this.terminate();
      return false;
    }
    if (this.hasMore()) this.turns.add(this.writePiece);
    return true;
  }

  /** Returns true when something waits that can be written now. */
  private hasMore(): boolean {
    if (this.socket.readyState !== this.socket.OPEN || this.socket.bufferedAmount > LINK_LIMITS.ahead) return false;
    return this.unfinished !== null || !this.outbox.isEmpty;
  }

  /** Writes the next piece of what waits. Returns whether there is another one to write now. */
  private readonly writePiece = (): boolean => {
    if (!this.hasMore()) return false;
    const writing = this.unfinished ?? this.begun();
    if (writing === null) return false;
    const piece = writing.next;
    const { value, done } = writing.rest.next();
    if (!done) writing.next = value;
    this.unfinished = done ? null : writing;
    this.socket.send(piece, { fin: done === true });
    this.outbox.moved();
    return this.hasMore();
  };

  private begun(): AgentConnection['unfinished'] {
    const message = this.outbox.next();
    if (message === undefined) return null;
    const rest = encodedPieces(fitTo(this.version, message));
    const { value, done } = rest.next();
    return done ? null : { rest, next: value };
  }

  /** Sends messages in order with one write, until one cannot be sent; returns false then. */
  sendAll(messages: readonly OrchestratorMessage[]): boolean {
    this.transport.cork();
    try {
      return messages.every((message) => this.send(message));
    } finally {
      this.transport.uncork();
    }
  }

  ping(): void {
    this.liveness.asked();
    if (this.socket.readyState === this.socket.OPEN) this.socket.ping();
  }

  /** Pings when a ping is due, and terminates a connection that was silent for too long. */
  beat(): void {
    if (this.liveness.isDead() || this.outbox.isStalled(this.unfinished !== null)) this.terminate();
    else if (this.liveness.isPingDue()) this.ping();
  }

  /** Calls `watcher` on each sign of life, and at the end. Returns a function that stops the watch. */
  watch(watcher: Watcher): () => void {
    return this.liveness.watch(watcher);
  }

  /** Closes with a code and reason; from this moment nothing is received or sent. */
  close(code: number, reason: string): void {
    if (this.current === 'closed') return;
    this.end();
    this.socket.close(code, closeReason(reason));
    // Resume reading for the peer's answer; a peer that sends none must not hold the socket open.
    this.socket.resume();
    this.closeTimer = setTimeout(() => this.socket.terminate(), GOODBYE);
  }

  /** Terminates the connection without a close frame. */
  terminate(): void {
    this.end();
    this.socket.terminate();
  }

  private end(): void {
    const last = this.current;
    if (last === 'closed') return;
    this.current = 'closed';
    clearTimeout(this.slowdown);
    this.queue.length = 0;
    this.outbox.clear();
    this.unfinished = null;
    this.liveness.ended();
    this.events?.closed(last);
  }

  private take(data: RawData, isBinary: boolean): void {
    if (this.current === 'closed') return;
    this.liveness.recordMessage();
    try {
      const message = this.decode(this.textOf(data, isBinary), (characters) => this.slowDown(characters));
      if (message instanceof UnknownMessage) {
        // A pending agent may send a single message type, which is known.
        if (this.current !== 'approved') throw violation(unknownType(message.type));
        return;
      }
      this.queue.push(this.allowed(message));
    } catch (error) {
      this.fail(isFault(error) ? error : violation(`what cannot be read: ${messageOf(error)}`));
      return;
    }
    if (this.queue.length >= QUEUE_LIMIT) this.socket.pause();
    void this.drain();
  }

  private textOf(data: RawData, isBinary: boolean): string {
    if (isBinary) throw violation('a binary frame');
    const text = data.toString();
    if (this.current !== 'approved' && Buffer.byteLength(text) > LINK_LIMITS.pendingFrame) throw tooMuch();
    return text;
  }

  private allowed(message: AgentMessage): AgentMessage {
    // Exactly one hello, before everything else.
    if ((message.type === 'hello') === this.hasHello) throw violation(`${message.type} out of turn`);
    if (this.current !== 'approved' && !PENDING_MESSAGES.has(message.type)) {
      throw violation(`${message.type} before it was approved`);
    }
    this.hasHello = true;
    return message;
  }

  private slowDown(ignored: number): void {
    const pause = this.ignored.charge(ignored);
    if (pause === 0 || this.current !== 'approved') return;
    clearTimeout(this.slowdown);
    this.slowdown = setTimeout(() => {
      this.slowdown = undefined;
      this.readOn();
    }, pause);
    this.socket.pause();
  }

  /** Reads from the agent again, unless it is slowed down or its messages are not handled yet. */
  private readOn(): void {
    const isReady = this.slowdown === undefined && this.queue.length < QUEUE_LIMIT / 2;
    if (isReady && this.current !== 'closed' && this.socket.isPaused) this.socket.resume();
  }

  private async drain(): Promise<void> {
    if (this.draining) return;
    this.draining = true;
    try {
      for (let message = this.queue.shift(); message !== undefined; message = this.queue.shift()) {
        await this.events?.message(message);
        this.readOn();
      }
    } catch (error) {
      this.fail(isFault(error) ? error : new Fault('internal', messageOf(error), { cause: error }));
    } finally {
      this.draining = false;
    }
  }

  private fail(fault: Fault): void {
    this.events?.failed(fault);
    const { code, reason } = farewell(fault);
    this.close(code, reason);
  }
}

const violation = (what: string): Fault => new Fault('protocol_violation', `the peer sent ${what}`);

const tooMuch = (): Fault => violation(`more than ${LINK_LIMITS.pendingFrame} bytes at once before it was approved`);

/** Maximum bytes of a close reason: an RFC 6455 control frame has 125, two of them for the code. */
const REASON_BYTES = 123;

/** Returns the close code and reason of a fault. The peer sees its own mistakes in full, and ours not at all. */
function farewell({ code, message }: Fault): { readonly code: number; readonly reason: string } {
  switch (code) {
    case 'protocol_violation':
      return { code: CLOSE.violation, reason: message };
    case 'protocol_mismatch':
      return { code: CLOSE.version, reason: message };
    default:
      return { code: CLOSE.goingAway, reason: 'the orchestrator could not handle a message' };
  }
}

/** Truncates to as many whole characters as fit, because peers influence the text. */
function closeReason(text: string): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(REASON_BYTES));
  return text.slice(0, read);
}

/** Called with true on each sign of life, and with false at the end. */
type Watcher = (isAlive: boolean) => void;

class Liveness {
  private readonly clock: Clock;
  private readonly watchers = new Set<Watcher>();
  private lastMessageAt: number;
  private lastAsked: number;

  constructor(clock: Clock) {
    this.clock = clock;
    this.lastMessageAt = clock.monotonic();
    this.lastAsked = this.lastMessageAt;
  }

  recordMessage(): void {
    this.lastMessageAt = this.clock.monotonic();
    this.report(true);
  }

  /** Notes that a ping was sent. */
  asked(): void {
    this.lastAsked = this.clock.monotonic();
  }

  ended(): void {
    this.report(false);
  }

  isDead(): boolean {
    return this.clock.monotonic() - this.lastMessageAt >= LINK_LIMITS.deadAfter;
  }

  isPingDue(): boolean {
    return this.clock.monotonic() - this.lastAsked >= LINK_LIMITS.pingInterval;
  }

  /** Returns a function that stops the watch. */
  watch(watcher: Watcher): () => void {
    this.watchers.add(watcher);
    return () => {
      this.watchers.delete(watcher);
    };
  }

  private report(isAlive: boolean): void {
    for (const watcher of [...this.watchers]) watcher(isAlive);
  }
}
