/** One socket of a terminal, to an agent or to an operator: whole frames in order, signs of life, a bound on what waits. */
import type { Duplex } from 'node:stream';
import type { RawData, WebSocket } from 'ws';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault, isFault, messageOf } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';
import { DirectMessages } from '../../src/terminal/direct-messages.js';
import { type Frame, pingFrame, pongFrame, readFrame } from '../../src/terminal/frames.js';
import { SILENCE_MS } from '../../src/terminal/late-input.js';
import { TERMINAL_CLOSE, TERMINAL_LIMITS } from '../../src/terminal/limits.js';
import { YoungMemory } from '../../src/terminal/young-memory.js';
import { BulkTurns } from './bulk-turns.js';

/** Milliseconds; bytes for `unsent`. */
export interface SocketTimes {
  readonly hello: number;
  readonly ping: number;
  readonly dead: number;
  /** How long the peer has to answer a close. */
  readonly goodbye: number;
}

export const SOCKET_TIMES: SocketTimes = {
  hello: TERMINAL_LIMITS.helloDeadline,
  ping: TERMINAL_LIMITS.pingInterval,
  dead: TERMINAL_LIMITS.deadAfter,
  goodbye: 2_000,
};

export interface SocketEvents {
  /** The first frame, once. What follows waits until `listen`. A Fault `protocol_violation` closes the socket. */
  onHello(value: unknown): void;
  /** Once, however the socket ended. */
  onClosed(): void;
}

/** A frame of the peer, and the bytes it came in. A Fault `protocol_violation` closes the socket. */
export type OnFrame = (frame: Frame, data: Buffer) => void;

export interface TerminalSocketOptions extends SocketEvents {
  /** Has just been opened. */
  readonly socket: WebSocket;
  /** What it runs over. */
  readonly connection: Duplex;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
  readonly times?: SocketTimes;
}

/** Frames that wait while a hello is looked at; one peer of good will sends a handful. */
const HELD = 64;

/** Read in one turn, in bytes: the sockets of others get theirs. */
const TURN = 16 * 1024;

const TURNS = new BulkTurns();
const YOUNG = new YoungMemory();

export class TerminalSocket {
  private readonly options: TerminalSocketOptions;
  private readonly times: SocketTimes;
  private readonly direct: DirectMessages;
  private readonly deadline: NodeJS.Timeout;
  private readonly held: { readonly frame: Frame; readonly data: Buffer }[] = [];
  private onFrame: OnFrame | null = null;
  private greeted = false;
  /** Bytes of that round of the event loop. */
  private heard = 0;
  private heardIn = 0;
  private ended = false;
  private lastHeard: number;
  private lastAsked: number;
  private silences = 0;
  /** When the first ping was sent that is not answered; null when nothing is waited for. */
  private askedAt: number | null = null;
  private latest: number | null = null;
  private onLatency: ((ms: number) => void) | null = null;
  private goodbye: NodeJS.Timeout | undefined;

  constructor(options: TerminalSocketOptions) {
    this.options = options;
    this.times = options.times ?? SOCKET_TIMES;
    this.lastHeard = this.now();
    this.lastAsked = this.lastHeard;
    this.deadline = setTimeout(() => this.close(TERMINAL_CLOSE.violation, 'no hello in time'), this.times.hello);
    const { connection, socket } = options;
    socket.binaryType = 'nodebuffer';
    const onMessage = (data: Buffer) => this.take(data, true);
    this.direct = new DirectMessages({ socket, connection, end: 'server', onMessage });
    socket.on('message', (data, isBinary) => this.take(data, isBinary));
    // The close event says all there is to say.
    socket.on('error', () => undefined);
    socket.on('close', () => this.end());
  }

  get isOpen(): boolean {
    return !this.ended && this.options.socket.readyState === this.options.socket.OPEN;
  }

  /** The newest round trip in milliseconds; null when none was measured yet. */
  get roundTrip(): number | null {
    return this.latest;
  }

  /** How often nothing has come for longer than its peer is ever silent. */
  get stalls(): number {
    return this.silences;
  }

  /** Milliseconds since a ping that nothing has come after; 0 when nothing is waited for. */
  get unanswered(): number {
    return this.askedAt === null ? 0 : this.now() - this.askedAt;
  }

  /** Asks for a sign of life, unless that is done already. */
  probe(): void {
    if (this.askedAt === null) this.ping();
  }

  /** The hello is accepted: hands over what has come since, and from now on each frame as it comes. */
  listen(onFrame: OnFrame): void {
    this.onFrame = onFrame;
    this.options.socket.resume();
    try {
      for (const { frame, data } of this.held.splice(0)) this.hand(frame, data);
    } catch (error) {
      this.failed(error);
    }
  }

  /**
   * One frame, in as many parts as it has; they are not looked at any more when this returns. Closes the socket instead when its
   * peer has too much unread already.
   */
  send(...parts: readonly [Buffer, ...Buffer[]]): void {
    if (!this.isOpen) return;
    const { socket } = this.options;
    this.direct.send(...parts);
    if (socket.bufferedAmount > TERMINAL_LIMITS.unsent) this.close(TERMINAL_CLOSE.overrun, 'too much is unread');
  }

  /** Pings when it is time to, and cuts the socket when nothing was heard for too long. */
  beat(): void {
    const now = this.now();
    if (now - this.lastHeard >= this.times.dead) this.terminate();
    else if (now - this.lastAsked >= this.times.ping) this.ping();
  }

  /** Measures the round trip anew. */
  measure(onLatency: (ms: number) => void): void {
    this.onLatency = onLatency;
    this.ping();
  }

  /** Nothing is heard or sent any more; the peer is told why. */
  close(code: number, reason: string): void {
    if (this.ended) return;
    const { socket } = this.options;
    socket.close(code, reason);
    socket.resume();
    this.goodbye = setTimeout(() => socket.terminate(), this.times.goodbye);
    this.end();
  }

  terminate(): void {
    this.options.socket.terminate();
    this.end();
  }

  private take(data: RawData, isBinary: boolean): void {
    if (this.ended) return;
    const now = this.now();
    if (now - this.lastHeard > SILENCE_MS) this.silences += 1;
    this.lastHeard = now;
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
    if (this.greeted) {
      this.hand(frame, data);
      return;
    }
    if (frame.type !== 'hello') throw new Fault('protocol_violation', 'the peer did not begin with a hello');
    this.greeted = true;
    clearTimeout(this.deadline);
    this.options.onHello(frame.value);
  }

  private hand(frame: Frame, data: Buffer): void {
    if (this.ended) return;
    if (this.onFrame !== null) {
      this.onFrame(frame, data);
      this.takeTurns(data.length);
      return;
    }
    if (this.held.length === HELD) throw new Fault('protocol_violation', 'the peer did not wait for an answer');
    this.held.push({ frame, data });
    this.options.socket.pause();
  }

  /** A flood is read in turns: without a rest one socket would be read until it is empty. */
  private takeTurns(length: number): void {
    const { round } = TURNS;
    if (round !== this.heardIn) this.heard = 0;
    this.heardIn = round;
    this.heard += length;
    if (this.heard < TURN || this.ended || this.options.socket.isPaused) return;
    this.options.socket.pause();
    TURNS.wait(() => this.options.socket.resume());
  }

  /** Whatever a frame brings about costs its own socket at most. */
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
    if (this.options.socket.readyState === this.options.socket.CLOSED) clearTimeout(this.goodbye);
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
