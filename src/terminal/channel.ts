/**
 * One end of a connection of a forward: passes bytes between a local stream and the frames of its channel. Both ends use it. Reads
 * from the stream only while the peer has given credit and the link has room, so memory is bounded on every hop.
 */
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { Fault, messageOf } from '../kernel/fault.js';
import { CHANNEL_OPS, channelHead, creditFrame, endFrame, resetFrame } from './channel-frames.js';
import { FORWARD_LIMITS } from './forward-limits.js';

/** The socket that carries the frames. */
export interface ChannelLink {
  /** Sends one frame, given in parts. */
  send(...parts: readonly [Buffer, ...Buffer[]]): void;
  /** False while the send queue is full. */
  readonly hasRoom: boolean;
}

/** The local end, such as a TCP connection, or standard input and output. */
export interface LocalStream {
  readonly source: Readable;
  readonly sink: Writable;
  /** Breaks the connection, so that its local peer sees an error where the system can show one. */
  destroy(): void;
}

export interface ChannelOptions {
  readonly id: number;
  readonly link: ChannelLink;
  readonly local: LocalStream;
  /** Called once when the channel has ended. `reason` is null after a complete end, else why it broke. */
  readonly onGone: (reason: string | null) => void;
}

/** Data up to this size is copied, because it may pin a larger block. */
const SMALL = 4 * 1024;

export class Channel {
  private readonly options: ChannelOptions;
  private credit: number = FORWARD_LIMITS.window;
  /** Credit that the peer has used and that was not returned. */
  private owed = 0;
  /** Consumed credit that waits to be returned. */
  private consumed = 0;
  private hasSentEnd = false;
  private hasReceivedEnd = false;
  private hasFinished = false;
  private isGone = false;

  constructor(options: ChannelOptions) {
    this.options = options;
  }

  get id(): number {
    return this.options.id;
  }

  /** Starts to read from the local stream. */
  start(): void {
    const { source, sink } = this.options.local;
    source.on('readable', () => this.pump());
    source.on('end', () => this.sendEnd());
    source.on('error', (error) => this.reset(messageOf(error)));
    if ((source as unknown) !== sink) sink.on('error', (error) => this.reset(messageOf(error)));
    sink.on('finish', () => {
      this.hasFinished = true;
      this.finishIfDone();
    });
    for (const stream of [source, sink]) {
      stream.on('close', () => {
        if (!this.hasSentEnd || (stream === sink && !this.hasFinished)) this.reset('the connection was closed');
      });
    }
    this.pump();
  }

  /** Sends one frame if there is data, credit and room. Returns true when it sent one. */
  pumpOne(): boolean {
    const { link, local, id } = this.options;
    const { source } = local;
    if (this.isGone || this.hasSentEnd || !link.hasRoom) return false;
    if (source.readableLength === 0) {
      // Lets the stream report its end.
      source.read(0);
      if (source.readableLength === 0) return false;
    }
    const most = Math.min(source.readableLength, FORWARD_LIMITS.data, this.credit - FORWARD_LIMITS.frameCost);
    if (most <= 0) return false;
    const bytes = source.read(most) as Buffer | null;
    if (bytes === null) return false;
    this.credit -= bytes.length + FORWARD_LIMITS.frameCost;
    link.send(channelHead(id, CHANNEL_OPS.data), bytes);
    return true;
  }

  /** Sends what credit and room permit. */
  pump(): void {
    while (this.pumpOne());
  }

  /** Handles a frame of the peer. Throws `protocol_violation`. */
  receive(op: number, bytes: Buffer): void {
    if (this.isGone) return;
    switch (op) {
      case CHANNEL_OPS.data:
        this.write(bytes);
        return;
      case CHANNEL_OPS.credit:
        this.addCredit(bytes);
        return;
      case CHANNEL_OPS.end:
        if (this.hasReceivedEnd) throw violation('an end after the end');
        this.hasReceivedEnd = true;
        this.options.local.sink.end();
        return;
      case CHANNEL_OPS.reset:
        this.gone(reasonOf(bytes));
        this.options.local.destroy();
        return;
      default:
        throw violation('an unknown operation of a channel');
    }
  }

  /** Breaks the connection at both ends. */
  reset(reason: string): void {
    if (this.isGone) return;
    this.options.link.send(resetFrame(this.options.id, clip(reason)));
    this.abandon(reason);
  }

  /** Breaks the connection at this end, because the link is gone. */
  abandon(reason: string): void {
    if (this.isGone) return;
    this.gone(reason);
    this.options.local.destroy();
  }

  private write(bytes: Buffer): void {
    if (this.hasReceivedEnd) throw violation('data after the end');
    if (bytes.length === 0 || bytes.length > FORWARD_LIMITS.data) throw violation('data of a wrong size');
    const cost = bytes.length + FORWARD_LIMITS.frameCost;
    this.owed += cost;
    if (this.owed > FORWARD_LIMITS.window) throw violation('more data than it had credit for');
    this.options.local.sink.write(bytes.length < SMALL ? Buffer.from(bytes) : bytes, (error) => {
      if (!error) this.giveBack(cost);
    });
  }

  private giveBack(cost: number): void {
    this.consumed += cost;
    if (this.isGone || this.hasReceivedEnd || this.consumed < FORWARD_LIMITS.creditStep) return;
    this.owed -= this.consumed;
    this.options.link.send(creditFrame(this.options.id, this.consumed));
    this.consumed = 0;
  }

  private addCredit(bytes: Buffer): void {
    if (bytes.length !== 4) throw violation('a frame of the wrong length');
    this.credit += bytes.readUInt32BE(0);
    if (this.credit > FORWARD_LIMITS.window) throw violation('more credit than was used');
    this.pump();
  }

  private sendEnd(): void {
    if (this.isGone || this.hasSentEnd) return;
    this.hasSentEnd = true;
    this.options.link.send(endFrame(this.options.id));
    this.finishIfDone();
  }

  private finishIfDone(): void {
    if (this.hasSentEnd && this.hasReceivedEnd && this.hasFinished) this.gone(null);
  }

  private gone(reason: string | null): void {
    if (this.isGone) return;
    this.isGone = true;
    this.options.onGone(reason);
  }
}

/** Breaks a connection: with a reset over TCP. Unix sockets have no reset, and Node throws for one. */
export function breakSocket(socket: Socket): void {
  if (socket.remoteFamily === undefined) socket.destroy();
  else socket.resetAndDestroy();
}

/** Returns the reason in a reset, without characters that could act on a terminal. */
export const reasonOf = (bytes: Buffer): string => printable(bytes.subarray(0, FORWARD_LIMITS.reason).toString('utf8'));

/** Returns text of a peer without characters that could act on a terminal. */
export const printable = (text: string): string => text.replace(/[^\x20-\x7e\u00a1-\u2027\u202f-\ud7ff]/g, '?');

const clip = (reason: string): string => Buffer.from(reason).subarray(0, FORWARD_LIMITS.reason).toString('utf8');

const violation = (what: string): Fault => new Fault('protocol_violation', `the peer sent ${what}`);

/** Sends one frame of each channel in turn, until none can send. */
export function pumpInTurn(channels: ReadonlyMap<number, Channel>): void {
  for (let hasSent = true; hasSent; ) {
    hasSent = false;
    for (const channel of channels.values()) if (channel.pumpOne()) hasSent = true;
  }
}
