/**
 * Reads and writes whole binary messages of an open WebSocket at its connection, beside the streams of `ws`. Pings and messages
 * that do not arrive at once are left to `ws`. After a frame of any other kind (close, fragment, violation) everything is. `ws`
 * also does the handshake and the end. Without compression only. Serves the benchmark row "echo of a key".
 *
 * This is the only file that touches private parts of `ws`: the listener that it reads the connection with, and its frames. They
 * belong to one version, and a test compares it with the installed one.
 */
import { BlockPool } from './block-pool.js';

/** Version of `ws` that this file fits. */
export const WS_VERSION = '8.23.0';

/** The used part of a WebSocket of `ws`. */
interface Socket {
  readonly readyState: number;
  readonly OPEN: number;
  once(event: 'error', listener: () => void): unknown;
}

/** The used part of its connection. */
export interface Connection {
  readonly writableLength: number;
  write(bytes: Uint8Array, done?: () => void): boolean;
  listeners(event: 'data'): unknown[];
  on(event: 'data', listener: (chunk: Buffer) => void): unknown;
  off(event: 'data', listener: (chunk: Buffer) => void): unknown;
  prependListener(event: 'close', listener: () => void): unknown;
}

export interface DirectMessagesOptions {
  /** A socket that has just opened and has read nothing. */
  readonly socket: Socket;
  readonly connection: Connection;
  /** Our end of the connection. Clients mask what they send. */
  readonly end: 'client' | 'server';
  readonly onMessage: (data: Buffer) => void;
}

type Listener = (this: Connection, chunk: Buffer) => void;

/** A message that is being delivered, its place in the chunk, and the length of the head before it, which may be overwritten. */
interface Arriving {
  readonly message: Buffer;
  readonly chunk: Buffer;
  readonly from: number;
  readonly room: number;
}

/** First bytes of frames. */
const WHOLE_BINARY = 0x82;
const PING = 0x89;
const PONG = 0x8a;
const MASKED = 0x80;
const MASK_LENGTH = 4;
/** Bytes of a block, which holds a frame of output. */
const BLOCK = 20 * 1024;
/** Maximum length in the second byte. Higher values give the size of the length field. */
const SHORT = 125;
const TWO_BYTES = 126;
const MOST_HEAD = 14;
const NOTHING = Buffer.alloc(0);
/** Maximum bytes that Node allocates from its own pool. */
const SMALL = 4 * 1024;

const POOL = new BlockPool({ size: BLOCK, kept: 64 });

/** Shared by all connections, because a message arrives on one connection and leaves on another. */
let arriving: Arriving | null = null;

export class DirectMessages {
  private readonly options: DirectMessagesOptions;
  private readonly mask: number;
  private readonly wsListener: Listener | null;
  /** Remaining bytes of a frame that `ws` reads. */
  private owed = 0;
  /** Start of an incomplete frame head, which `ws` already has. */
  private partialHead: Buffer = NOTHING;

  constructor(options: DirectMessagesOptions) {
    const { connection, end, socket } = options;
    this.options = options;
    this.mask = end === 'client' ? MASKED : 0;
    const listeners = connection.listeners('data');
    // Leaves everything to a `ws` that reads in another way.
    this.wsListener = listeners.length === 1 ? (listeners[0] as Listener) : null;
    if (this.wsListener === null) return;
    connection.off('data', this.wsListener);
    connection.on('data', this.take);
    const stop = () => connection.off('data', this.take);
    // After that, `ws` reads the rest if at all.
    connection.prependListener('close', stop);
    socket.once('error', stop);
  }

  /** Sends one message, given in parts. The caller watches the send queue. */
  send(first: Buffer, ...more: readonly Buffer[]): void {
    const { connection, socket } = this.options;
    if (socket.readyState !== socket.OPEN) return;
    if (first === arriving?.message && this.forward(arriving, more)) return;
    let { length } = first;
    for (const part of more) length += part.length;
    const head = headLengthFor(length) + (this.mask === 0 ? 0 : MASK_LENGTH);
    const isLarge = head + length > SMALL && head + length <= BLOCK;
    const block = isLarge ? POOL.take() : null;
    const frame = block?.subarray(0, head + length) ?? Buffer.allocUnsafe(head + length);
    writeHead(frame, 0, length, this.mask);
    // A mask of zeros changes nothing. Masks protect proxies from browsers, and TLS hides the frames from proxies.
    if (this.mask !== 0) frame.writeUInt32BE(0, head - MASK_LENGTH);
    frame.set(first, head);
    let at = head + first.length;
    for (const part of more) {
      frame.set(part, at);
      at += part.length;
    }
    if (block === null) connection.write(frame);
    else connection.write(frame, () => POOL.give(block));
  }

  /** Forwards a message without a copy. The room of its old head takes the new one. */
  private forward({ chunk, from, room, message }: Arriving, more: readonly Buffer[]): boolean {
    const head = headLengthFor(message.length);
    const { connection } = this.options;
    // Data that waits long must not pin memory that V8 collects.
    if (this.mask !== 0 || more.length > 0 || head > room || connection.writableLength > 0) return false;
    writeHead(chunk, from - head, message.length, 0);
    connection.write(chunk.subarray(from - head, from + message.length));
    return true;
  }

  private readonly take = (chunk: Buffer): void => {
    for (let at = 0; at < chunk.length; ) {
      if (this.owed > 0 || this.partialHead.length > 0) at = this.leave(chunk, at);
      else at = this.read(chunk, at);
    }
  };

  /** Reads one frame. Returns the start of the next one. */
  private read(chunk: Buffer, at: number): number {
    const head = headLength(chunk, at);
    if (head === 0) {
      this.partialHead = Buffer.from(chunk.subarray(at));
      this.pass(chunk.subarray(at));
      return chunk.length;
    }
    const length = payloadLength(chunk, at);
    const from = at + head;
    if (chunk[at] !== WHOLE_BINARY || !this.hasExpectedMask(chunk, at) || from + length > chunk.length) {
      this.owed = this.isUsual(chunk, at) ? head + length : Number.POSITIVE_INFINITY;
      return this.leave(chunk, at);
    }
    const data = chunk.subarray(from, from + length);
    if (this.mask === 0) unmask(data, chunk, from - MASK_LENGTH);
    const outer = arriving;
    arriving = { message: data, chunk, from, room: head };
    try {
      this.options.onMessage(data);
    } finally {
      arriving = outer;
    }
    return from + length;
  }

  /** Leaves bytes of a frame to `ws`. Returns the start of the next frame. */
  private leave(chunk: Buffer, at: number): number {
    if (this.partialHead.length > 0) {
      const start = Buffer.concat([this.partialHead, chunk.subarray(at, at + MOST_HEAD)]);
      const head = headLength(start, 0);
      if (head === 0) {
        this.partialHead = start;
        this.pass(chunk.subarray(at));
        return chunk.length;
      }
      const left = head + payloadLength(start, 0) - this.partialHead.length;
      this.owed = this.isUsual(start, 0) ? left : Number.POSITIVE_INFINITY;
      this.partialHead = NOTHING;
    }
    const end = Math.min(chunk.length, at + this.owed);
    this.owed -= end - at;
    this.pass(chunk.subarray(at, end));
    return end;
  }

  /** Reports whether `ws` has the same state after this frame as before. */
  private isUsual(bytes: Buffer, at: number): boolean {
    const first = bytes[at];
    const isShort = ((bytes[at + 1] as number) & ~MASKED) <= SHORT;
    const isControl = (first === PING || first === PONG) && isShort;
    return (first === WHOLE_BINARY || isControl) && this.hasExpectedMask(bytes, at);
  }

  private hasExpectedMask(bytes: Buffer, at: number): boolean {
    return ((bytes[at + 1] as number) & MASKED) !== this.mask;
  }

  private pass(bytes: Buffer): void {
    this.wsListener?.call(this.options.connection, bytes);
  }
}

/** Returns the length of the head of a message, without its mask. */
const headLengthFor = (length: number): number => (length <= SHORT ? 2 : length < 2 ** 16 ? 4 : 10);

function writeHead(frame: Buffer, at: number, length: number, mask: number): void {
  frame[at] = WHOLE_BINARY;
  if (length <= SHORT) frame[at + 1] = mask | length;
  else if (length < 2 ** 16) {
    frame[at + 1] = mask | TWO_BYTES;
    frame.writeUInt16BE(length, at + 2);
  } else {
    frame[at + 1] = mask | (TWO_BYTES + 1);
    frame.writeBigUInt64BE(BigInt(length), at + 2);
  }
}

/** Returns the length of the frame head at `at`; 0 when it is incomplete. */
function headLength(bytes: Buffer, at: number): number {
  const second = bytes[at + 1];
  if (second === undefined) return 0;
  const short = second & ~MASKED;
  const length = 2 + (short <= SHORT ? 0 : short === TWO_BYTES ? 2 : 8) + ((second & MASKED) === 0 ? 0 : MASK_LENGTH);
  return at + length <= bytes.length ? length : 0;
}

/** Returns the payload length of a frame with a complete head. */
function payloadLength(bytes: Buffer, at: number): number {
  const short = (bytes[at + 1] as number) & ~MASKED;
  if (short <= SHORT) return short;
  return short === TWO_BYTES ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
}

function unmask(data: Buffer, bytes: Buffer, at: number): void {
  if (bytes.readUInt32BE(at) === 0) return;
  for (let index = 0; index < data.length; index += 1)
    data[index] = (data[index] as number) ^ (bytes[at + (index & 3)] as number);
}
