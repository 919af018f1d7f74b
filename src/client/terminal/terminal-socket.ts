/** One WebSocket of a terminal: connects, sends heartbeats, delivers frames, and reports its end once. */
import type { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { type RawData, WebSocket } from 'ws';
import type { Clock } from '../../kernel/clock.js';
import { Fault, isFault } from '../../kernel/fault.js';
import { DirectMessages } from '../../terminal/direct-messages.js';
import { type Frame, jsonFrame, pingFrame, pongFrame, readFrame } from '../../terminal/frames.js';
import { TERMINAL_CLOSE, TERMINAL_LIMITS, TERMINAL_SUBPROTOCOL } from '../../terminal/limits.js';
import type { ClientHello, ForwardHello } from '../../terminal/notes.js';
import { unreachable } from '../unreachable.js';

export interface TerminalSocketOptions {
  readonly address: URL;
  /** Creates and verifies the connection. */
  readonly connections: Agent;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** WebSocket subprotocol [default: that of terminals]. */
  readonly subprotocol?: string;
  readonly hello: ClientHello | ForwardHello;
  /** Returns the age in milliseconds of the oldest unacknowledged input. */
  inputAge(): number;
  /** Receives a frame. A fault closes the connection. */
  onFrame(frame: Frame): void;
  /** Receives the round-trip time in milliseconds. */
  onRoundTrip(ms: number): void;
  /** Called when a ping stays unanswered, and when data arrives again. */
  onSilence(silent: boolean): void;
  /** Called once unless the socket was dropped. `code` is the close code, or null when the connection broke. */
  onClosed(code: number | null, cause: Fault, reason: string): void;
  /** Called when the send queue is empty again. */
  onDrain?(): void;
}

/** Time limit for the first frame in milliseconds. */
const OPENING_DEADLINE = 15_000;
/** Milliseconds after which an unanswered ping counts as silence. */
const PONG_PATIENCE = 2_000;
/** Milliseconds of unacknowledged input after which a ping is sent, and after which an unanswered ping counts as silence. */
const INPUT_ASKS = 1_000;
const INPUT_PATIENCE = 2_000;
const INPUT_ANSWER = 500;
const TICK = 500;
/** Milliseconds that the peer has to answer a close. */
const CLOSE_DEADLINE = 1_000;

export class TerminalSocket {
  private readonly options: TerminalSocketOptions;
  private readonly socket: WebSocket;
  private readonly ticking: NodeJS.Timeout;
  private connection: Socket | null = null;
  private direct: DirectMessages | null = null;
  private isClosed = false;
  private cause: Fault | null = null;
  private answered = false;
  private lastTick: number;
  private lastMessageAt: number;
  private lastPing: number;
  private silent = false;
  private roundTrip = 0;

  constructor(options: TerminalSocketOptions) {
    const { address, connections, clock } = options;
    this.options = options;
    const now = clock.monotonic();
    this.lastTick = now;
    this.lastMessageAt = now;
    this.lastPing = now;
    this.socket = new WebSocket(address, options.subprotocol ?? TERMINAL_SUBPROTOCOL, {
      agent: connections,
      perMessageDeflate: false,
      maxPayload: TERMINAL_LIMITS.pictureFrame,
    });
    this.socket.on('upgrade', ({ socket: connection }) => {
      this.connection = connection;
      connection.on('drain', () => this.options.onDrain?.());
    });
    this.socket.on('open', () => this.opened());
    this.socket.on('message', (data, isBinary) => this.receive(data, isBinary));
    this.socket.on('error', (error) => {
      this.cause ??= unreachable(error, new URL(address.origin.replace(/^ws/, 'http')));
    });
    this.socket.on('close', (code, reason) => this.ended(code, reason.toString()));
    this.ticking = setInterval(() => this.tick(), TICK);
  }

  /** Bytes that the peer has not received. */
  get unsent(): number {
    return this.socket.bufferedAmount;
  }

  /** Sends one frame, given in parts, if the socket is open. */
  send(...parts: readonly [Buffer, ...Buffer[]]): void {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    if (this.direct === null) this.socket.send(parts.length === 1 ? parts[0] : Buffer.concat(parts));
    else this.direct.send(...parts);
  }

  ping(): void {
    this.lastPing = this.options.clock.monotonic();
    // Microseconds, because frames carry integers.
    this.send(pingFrame(Math.round(this.lastPing * 1_000)));
  }

  /** Closes the socket with a code and calls no more events. */
  drop(code: number): void {
    this.stop();
    this.closeWith(code);
  }

  /** Gives up the connection as if the network had lost it. */
  private fail(cause: Fault): void {
    this.cause ??= cause;
    if (isFault(cause, 'protocol_violation')) this.closeWith(TERMINAL_CLOSE.violation);
    else this.socket.terminate();
    this.ended(null);
  }

  private closeWith(code: number): void {
    if (this.socket.readyState !== WebSocket.OPEN) {
      this.socket.terminate();
      return;
    }
    this.socket.close(code);
    const deadline = setTimeout(() => this.socket.terminate(), CLOSE_DEADLINE);
    this.socket.once('close', () => clearTimeout(deadline));
  }

  private opened(): void {
    if (this.isClosed) return;
    this.useDirectMessages();
    this.send(jsonFrame('hello', this.options.hello));
    this.ping();
  }

  /** Uses direct messages over TLS. Without TLS a proxy could misread unmasked frames. */
  private useDirectMessages(): void {
    const { connection, socket } = this;
    if (connection === null || this.options.address.protocol !== 'wss:') return;
    const onMessage = (data: Buffer) => this.receive(data, true);
    this.direct = new DirectMessages({ socket, connection, end: 'client', onMessage });
  }

  private receive(data: RawData, isBinary: boolean): void {
    if (this.isClosed) return;
    this.lastMessageAt = this.options.clock.monotonic();
    this.answered = true;
    if (this.silent) this.setSilent(false);
    try {
      if (!isBinary || !Buffer.isBuffer(data)) throw new Fault('protocol_violation', 'the peer sent text');
      this.dispatch(readFrame(data));
    } catch (error) {
      if (!isFault(error)) throw error;
      this.fail(error);
    }
  }

  private dispatch(frame: Frame): void {
    if (frame.type === 'ping') this.send(pongFrame(frame.t));
    else if (frame.type === 'pong') {
      this.roundTrip = Math.max(0, this.lastMessageAt - frame.t / 1_000);
      this.options.onRoundTrip(this.roundTrip);
    } else this.options.onFrame(frame);
  }

  private tick(): void {
    const now = this.options.clock.monotonic();
    // This process was suspended; data that arrived meanwhile is read later.
    if (now - this.lastTick > 10 * TICK) this.lastMessageAt = now;
    this.lastTick = now;
    const timeout = this.answered ? TERMINAL_LIMITS.deadAfter : OPENING_DEADLINE;
    if (now - this.lastMessageAt > timeout) {
      this.fail(
        new Fault('unreachable', 'the orchestrator has fallen silent', { hint: 'check the network in between' }),
      );
      return;
    }
    if (!this.answered) return;
    const inputAge = this.options.inputAge();
    const isAsked = this.lastMessageAt < this.lastPing;
    const isDue =
      now - this.lastPing >= (inputAge > INPUT_ASKS && !isAsked ? INPUT_ASKS : TERMINAL_LIMITS.pingInterval);
    if (isDue) this.ping();
    if (!isAsked || this.silent) return;
    const within = inputAge > INPUT_PATIENCE ? INPUT_ANSWER : PONG_PATIENCE;
    if (now - this.lastPing > within + this.roundTrip) this.setSilent(true);
  }

  private setSilent(silent: boolean): void {
    this.silent = silent;
    this.options.onSilence(silent);
  }

  private ended(code: number | null, reason = ''): void {
    if (this.isClosed) return;
    this.stop();
    const cause = this.cause ?? new Fault('unreachable', 'the connection to the orchestrator was lost');
    this.options.onClosed(code, cause, reason);
  }

  private stop(): void {
    this.isClosed = true;
    clearInterval(this.ticking);
  }
}
