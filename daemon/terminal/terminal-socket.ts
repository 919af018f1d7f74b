/** One terminal socket, to an agent or a client: frames in order, heartbeat, bounded send queue, fair reading under a flood. */

import type { Duplex } from 'node:stream';
import type { RawData, WebSocket } from 'ws';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault, isFault, messageOf } from '../../src/kernel/fault.js';
import { DirectMessages } from '../../src/terminal/direct-messages.js';
import { type Frame, pingFrame, pongFrame, readFrame } from '../../src/terminal/frames.js';
import { SILENCE_MS } from '../../src/terminal/late-input.js';
import { TERMINAL_CLOSE, TERMINAL_LIMITS } from '../../src/terminal/limits.js';
import { YoungMemory } from '../../src/terminal/young-memory.js';
import type { Core } from '../core/core.js';

/** Times in milliseconds. */
export interface SocketTimes {
  readonly hello: number;
  readonly ping: number;
  readonly dead: number;
  /** Time limit for the peer to answer a close. */
  readonly closeTimeout: number;
}

const SOCKET_TIMES: SocketTimes = {
  hello: TERMINAL_LIMITS.helloDeadline,
  ping: TERMINAL_LIMITS.pingInterval,
  dead: TERMINAL_LIMITS.deadAfter,
  closeTimeout: 2_000,
};

interface SocketEvents {
  /** Receives the hello, once. Later frames wait until `listen`. A Fault `protocol_violation` closes the socket. */
  onHello(value: unknown): void;
  /** Called once when the socket has ended. */
  onClosed(): void;
}

/** Receives a frame and its bytes. A Fault `protocol_violation` closes the socket. */
export type OnFrame = (frame: Frame, data: Buffer) => void;

interface TerminalSocketOptions extends SocketEvents, Pick<Core, 'logger'> {
  /** A socket that has just opened. */
  readonly socket: WebSocket;
  /** Connection under the WebSocket. */
  readonly connection: Duplex;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly times?: SocketTimes;
  /** Called when the send queue is empty again. */
  readonly onDrain?: () => void;
}

/** Maximum frames that wait while the hello is checked. A correct peer sends a handful. */
const HELD = 64;

/** Bytes that one socket reads in one turn. */
const TURN = 16 * 1024;

const YOUNG = new YoungMemory();

export class TerminalSocket {
  private readonly options: TerminalSocketOptions;
  private readonly times: SocketTimes;
  private readonly direct: DirectMessages;
  private readonly deadline: NodeJS.Timeout;
  private readonly held: { readonly frame: Frame; readonly data: Buffer }[] = [];
  private onFrame: OnFrame | null = null;
  private hasHello = false;
  /** Bytes read in event-loop round `heardIn`. */
  private roundBytes = 0;
  private lastRound = 0;
  private ended = false;
  private isHeld = false;
  private peerCode: number | null = null;
  private lastMessageAt: number;
  private lastAsked: number;
  private silences = 0;
  /** Time of the first unanswered ping; null without one. */
  private askedAt: number | null = null;
  private latest: number | null = null;
  private onLatency: ((ms: number) => void) | null = null;
  private closeTimer: NodeJS.Timeout | undefined;

  constructor(options: TerminalSocketOptions) {
    this.options = options;
    this.times = options.times ?? SOCKET_TIMES;
    this.lastMessageAt = this.now();
    this.lastAsked = this.lastMessageAt;
    this.deadline = setTimeout(() => this.close(TERMINAL_CLOSE.violation, 'no hello in time'), this.times.hello);
    const { connection, socket } = options;
    socket.binaryType = 'nodebuffer';
    const onMessage = (data: Buffer) => this.take(data, true);
    this.direct = new DirectMessages({ socket, connection, end: 'server', onMessage });
    socket.on('message', (data, isBinary) => this.take(data, isBinary));
    connection.on('drain', () => options.onDrain?.());
    // The close event follows and is enough.
    socket.on('error', () => undefined);
    socket.on('close', (code) => {
      this.peerCode ??= code;
      this.end();
    });
  }

  get isOpen(): boolean {
    return !this.ended && this.options.socket.readyState === this.options.socket.OPEN;
  }

  /** True when the peer has closed the socket in the usual way. */
  get hasClosedByPeer(): boolean {
    return this.peerCode === TERMINAL_CLOSE.done;
  }

  /** Bytes that the peer has not received. */
  get unsent(): number {
    return this.options.socket.bufferedAmount;
  }

  /** Latest round-trip time in milliseconds; null before the first one. */
  get roundTrip(): number | null {
    return this.latest;
  }

  /** Number of silences that were longer than the ping interval of the peer. */
  get stalls(): number {
    return this.silences;
  }

  /** Milliseconds since the first unanswered ping; 0 without one. */
  get unanswered(): number {
    return this.askedAt === null ? 0 : this.now() - this.askedAt;
  }

  /** True after a third of the ping interval without a message of the peer. */
  get isQuiet(): boolean {
    return this.now() - this.lastMessageAt >= this.times.ping / 3;
  }

  /** Sends a ping unless one is unanswered. */
  probe(): void {
    if (this.askedAt === null) this.ping();
  }

  /** Accepts the hello: delivers the waiting frames, then each frame as it arrives. */
  listen(onFrame: OnFrame): void {
    this.onFrame = onFrame;
    this.options.socket.resume();
    try {
      for (const { frame, data } of this.held.splice(0)) this.handle(frame, data);
    } catch (error) {
      this.failed(error);
    }
  }

  /**
   * Sends one frame, given in parts, which the caller may reuse afterwards. Closes the socket when the peer has too much unread.
   */
  send(...parts: readonly [Buffer, ...Buffer[]]): void {
    if (!this.isOpen) return;
    const { socket } = this.options;
    this.direct.send(...parts);
    if (socket.bufferedAmount > TERMINAL_LIMITS.unsent) this.close(TERMINAL_CLOSE.overrun, 'too much is unread');
  }

  /** Stops reading until `release`. The silence in between does not count. */
  hold(): void {
    if (this.isHeld || this.ended) return;
    this.isHeld = true;
    this.options.socket.pause();
  }

  /** Continues to read after `hold`. */
  release(): void {
    if (!this.isHeld) return;
    this.isHeld = false;
    this.lastMessageAt = this.now();
    if (!this.ended) this.options.socket.resume();
  }

  /** Sends a ping when it is due, and cuts the socket after too much silence. */
  beat(): void {
    const now = this.now();
    if (!this.isHeld && now - this.lastMessageAt >= this.times.dead) this.terminate();
    else if (now - this.lastAsked >= this.times.ping) this.ping();
  }

  /** Measures the round-trip time. */
  measure(onLatency: (ms: number) => void): void {
    this.onLatency = onLatency;
    this.ping();
  }

  /** Closes the socket with a reason. Nothing is read or sent afterwards. */
  close(code: number, reason: string): void {
    if (this.ended) return;
    const { socket } = this.options;
    socket.close(code, reason);
    socket.resume();
    this.closeTimer = setTimeout(() => socket.terminate(), this.times.closeTimeout);
    this.end();
  }

  terminate(): void {
    this.options.socket.terminate();
    this.end();
  }

  private take(data: RawData, isBinary: boolean): void {
    if (this.ended) return;
    const now = this.now();
    if (now - this.lastMessageAt > SILENCE_MS) this.silences += 1;
    this.lastMessageAt = now;
    this.askedAt = null;
    if (Buffer.isBuffer(data)) YOUNG.read(data.length);
    try {
      if (!isBinary || !Buffer.isBuffer(data)) throw new Fault('protocol_violation', 'the peer sent a text frame');
      this.read(readFrame(data), data);
    } catch (error) {
      this.failed(error);
    }
  }

  private read(frame: Frame, data: Buffer): void {
    if (frame.type === 'ping') {
      this.send(pongFrame(frame.t));
      return;
    }
    if (frame.type === 'pong') {
      this.answered(frame.t);
      return;
    }
    if (this.hasHello) {
      this.handle(frame, data);
      return;
    }
    if (frame.type !== 'hello') throw new Fault('protocol_violation', 'the peer did not begin with a hello');
    this.hasHello = true;
    clearTimeout(this.deadline);
    this.options.onHello(frame.value);
  }

  private handle(frame: Frame, data: Buffer): void {
    if (this.ended) return;
    if (this.onFrame !== null) {
      this.onFrame(frame, data);
      this.pauseAfterShare(data.length);
      return;
    }
    if (this.held.length === HELD) throw new Fault('protocol_violation', 'the peer did not wait for an answer');
    this.held.push({ frame, data });
    this.options.socket.pause();
  }

  /** Pauses a socket that has read its share, because Node would read it until it is empty. */
  private pauseAfterShare(length: number): void {
    const { round } = TURNS;
    if (round !== this.lastRound) this.roundBytes = 0;
    this.lastRound = round;
    this.roundBytes += length;
    if (this.roundBytes < TURN || this.ended || this.options.socket.isPaused) return;
    this.options.socket.pause();
    TURNS.wait(() => {
      if (!this.isHeld) this.options.socket.resume();
    });
  }

  /** Closes the socket because of an error while handling its frame. */
  private failed(error: unknown): void {
    if (isFault(error, 'protocol_violation')) {
      this.close(TERMINAL_CLOSE.violation, messageOf(error).slice(0, 120));
      return;
    }
    this.options.logger.error('a frame of a terminal could not be handled', { reason: messageOf(error), error });
    this.close(TERMINAL_CLOSE.failed, 'the orchestrator failed');
  }

  private ping(): void {
    this.lastAsked = this.now();
    this.askedAt ??= this.lastAsked;
    this.send(pingFrame(Math.floor(this.lastAsked * 1000)));
  }

  private answered(t: number): void {
    const ms = this.now() - t / 1000;
    if (ms < 0 || ms > this.times.dead) return;
    this.latest = ms;
    this.onLatency?.(ms);
    this.onLatency = null;
  }

  private end(): void {
    if (this.options.socket.readyState === this.options.socket.CLOSED) clearTimeout(this.closeTimer);
    if (this.ended) return;
    this.ended = true;
    clearTimeout(this.deadline);
    this.held.length = 0;
    this.options.onClosed();
  }

  private now(): number {
    return this.options.clock.monotonic();
  }
}

/** Continues reading. */
type ReadOn = () => void;

/**
 * Lets sockets with much to read take turns: one of them is read in each event-loop round, so that keys and their echo wait
 * little. Serves the benchmark row "echo beside idle and flooding sessions".
 */
export class FairScheduler {
  private readonly waiting: ReadOn[] = [];
  private isScheduled = false;
  private count = 0;

  /** A counter that changes with every event-loop round in which it is read. */
  get round(): number {
    this.schedule();
    return this.count;
  }

  /** Queues a socket for a later round, first in, first out. */
  wait(readOn: ReadOn): void {
    this.waiting.push(readOn);
    this.schedule();
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.count += 1;
      this.waiting.shift()?.();
      if (this.waiting.length > 0) this.schedule();
    });
  }
}

/** Shared by all sockets of the process. */
const TURNS = new FairScheduler();
