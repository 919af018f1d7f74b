/** The socket of one session: dials with a ticket, sends the hello, and detects a dead connection by silence. */
import type { KeyObject } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { RawData, WebSocket } from 'ws';
import { requirePinned } from '../../identity/pin.js';
import type { Clock } from '../../kernel/clock.js';
import { messageOf } from '../../kernel/fault.js';
import { DirectMessages } from '../../terminal/direct-messages.js';
import { type Frame, jsonFrame, pingFrame, pongFrame, readFrame } from '../../terminal/frames.js';
import { SILENCE_MS } from '../../terminal/late-input.js';
import { AGENT_TERMINAL_PATH, TERMINAL_CLOSE, TERMINAL_LIMITS, TERMINAL_SUBPROTOCOL } from '../../terminal/limits.js';
import type { AgentHello, ForwardHello } from '../../terminal/notes.js';
import { dialContext, dialOrchestrator } from '../link/dial.js';
import type { OrchestratorPlace } from './host-messages.js';

/** Times in milliseconds. */
export interface SocketPace {
  readonly pingInterval: number;
  readonly deadAfter: number;
}

export interface SessionSocketOptions {
  readonly place: OrchestratorPlace;
  readonly privateKey: KeyObject;
  readonly clock: Clock;
  readonly pace: SocketPace;
  /** Endpoint of the agent port [default: terminals]. */
  readonly endpoint?: { readonly path: string; readonly subprotocol: string };
  /** Maximum bytes in the send queue [default: 1 MiB]. */
  readonly mostUnsent?: number;
  /** Returns the hello; called when the connection is open. */
  readonly hello: () => AgentHello | ForwardHello;
  /** Receives all frames except pings and pongs. An error closes the socket as a violation. */
  readonly onFrame: (frame: Frame) => void;
  /** Called when the send queue has room again. */
  readonly onDrain: () => void;
  /** Called once when dialling failed (`code` is null) or the socket has closed. */
  readonly onClosed: (code: number | null, reason: string) => void;
}

const DIAL_TIMEOUT = 15_000;
const TERMINALS = { path: AGENT_TERMINAL_PATH, subprotocol: TERMINAL_SUBPROTOCOL } as const;
/** Maximum bytes in the send queue. */
const MOST_UNSENT = 1024 * 1024;
/** Maximum bytes of the head of a WebSocket message. */
const HEAD = 14;
/** Milliseconds between two checks for silence. */
const LOOK = 1_000;
/** Milliseconds that the peer has to answer a close. */
const CLOSE_WITHIN = 2_000;

export class SessionSocket {
  private readonly options: SessionSocketOptions;
  private readonly dialling = new AbortController();
  private socket: WebSocket | null = null;
  private direct: DirectMessages | null = null;
  private heartbeat: NodeJS.Timeout | undefined;
  private lastMessageAt: number;
  private lastAsked: number;
  private silences = 0;
  private isClosed = false;

  /** Starts dialling. */
  constructor(options: SessionSocketOptions) {
    this.options = options;
    this.lastMessageAt = options.clock.monotonic();
    this.lastAsked = this.lastMessageAt;
    void this.dial();
  }

  private get mostUnsent(): number {
    return this.options.mostUnsent ?? MOST_UNSENT;
  }

  /** Number of silences that were longer than the ping interval of the orchestrator. */
  get stalls(): number {
    return this.silences;
  }

  /** False while the send queue is full. */
  get hasRoom(): boolean {
    return (
      this.socket !== null &&
      this.socket.readyState === this.socket.OPEN &&
      this.socket.bufferedAmount < this.mostUnsent
    );
  }

  /** Sends one frame, given in parts, which the caller may reuse afterwards. */
  send(...parts: readonly [Buffer, ...Buffer[]]): void {
    const { socket } = this;
    if (socket === null || socket.readyState !== socket.OPEN) return;
    let length = 0;
    for (const part of parts) length += part.length;
    // The frame that fills the queue reports when it was sent.
    const isFull = socket.bufferedAmount + HEAD + length >= this.mostUnsent;
    if (isFull) socket.send(Buffer.concat(parts), () => this.options.onDrain());
    else this.direct?.send(...parts);
  }

  /** Closes the socket without calling `onClosed`. */
  close(code: number): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.dialling.abort();
    clearInterval(this.heartbeat);
    this.shut(code);
  }

  private async dial(): Promise<void> {
    const { place, privateKey } = this.options;
    try {
      const { socket, connection } = await dialOrchestrator({
        host: place.host,
        port: place.port,
        context: dialContext(privateKey),
        pinned: place.key,
        verifyPeer: (key) => requirePinned(place.key, key, `${place.host}:${place.port}`),
        purpose: {
          ...(this.options.endpoint ?? TERMINALS),
          maxPayload: TERMINAL_LIMITS.frame,
        },
        timeoutMs: DIAL_TIMEOUT,
        signal: this.dialling.signal,
      });
      if (this.isClosed) socket.terminate();
      else this.opened(socket, connection);
    } catch (error) {
      this.closed(null, messageOf(error));
    }
  }

  private opened(socket: WebSocket, connection: TLSSocket): void {
    const { clock, pace, hello } = this.options;
    this.socket = socket;
    this.lastMessageAt = clock.monotonic();
    this.lastAsked = this.lastMessageAt;
    const onMessage = (data: Buffer) => this.take(data, true);
    this.direct = new DirectMessages({ socket, connection, end: 'client', onMessage });
    socket.on('message', (data, binary) => this.take(data, binary));
    socket.on('ping', () => this.recordMessage());
    socket.on('pong', () => this.recordMessage());
    socket.on('error', () => undefined);
    socket.on('close', (code, reason) => this.closed(code, reason.toString()));
    this.heartbeat = setInterval(() => this.beat(socket), Math.min(LOOK, pace.pingInterval));
    socket.send(jsonFrame('hello', hello()));
    socket.resume();
  }

  private take(data: RawData, binary: boolean): void {
    if (this.isClosed) return;
    this.recordMessage();
    try {
      if (!binary || !Buffer.isBuffer(data)) throw new Error('the peer sent text');
      const frame = readFrame(data);
      if (frame.type === 'ping') this.send(pongFrame(frame.t));
      else if (frame.type !== 'pong') this.options.onFrame(frame);
    } catch (error) {
      this.shut(TERMINAL_CLOSE.violation);
      this.closed(TERMINAL_CLOSE.violation, messageOf(error));
    }
  }

  private recordMessage(): void {
    const now = this.options.clock.monotonic();
    if (now - this.lastMessageAt > SILENCE_MS) this.silences += 1;
    this.lastMessageAt = now;
  }

  private beat(socket: WebSocket): void {
    const { clock, pace } = this.options;
    const now = clock.monotonic();
    if (now - this.lastMessageAt > pace.deadAfter) {
      socket.terminate();
      return;
    }
    if (now - this.lastAsked < pace.pingInterval) return;
    this.lastAsked = now;
    this.send(pingFrame(Math.trunc(now)));
  }

  private shut(code: number): void {
    const { socket } = this;
    if (socket === null) return;
    socket.close(code);
    setTimeout(() => socket.terminate(), CLOSE_WITHIN).unref();
  }

  private closed(code: number | null, reason: string): void {
    if (this.isClosed) return;
    this.isClosed = true;
    clearInterval(this.heartbeat);
    this.options.onClosed(code, reason);
  }
}
