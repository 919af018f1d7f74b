/**
 * Frames of terminal sockets (`docs/protocols/terminal.md`): a type byte and a payload, numbers in big-endian order. The relay
 * forwards output frames unchanged. The reader of a JSON payload validates it.
 */
import { Fault } from '../kernel/fault.js';
import { jsonExcess } from '../kernel/json.js';
import { TERMINAL_LIMITS } from './limits.js';

export const FRAME = {
  hello: 0x00,
  output: 0x01,
  input: 0x02,
  ack: 0x03,
  resize: 0x04,
  signal: 0x05,
  exit: 0x06,
  snapshot: 0x07,
  note: 0x08,
  ping: 0x09,
  pong: 0x0a,
  eof: 0x0b,
  /** Standard error of a command. Shares the offsets of the output, in the order in which the agent read both. */
  errors: 0x0c,
  place: 0x10,
  anew: 0x11,
  /** Client: asks for an `echo` frame once the program has had the input for a while. */
  askEcho: 0x0d,
  /** Agent: how far the input got, and how the program reads it. */
  echo: 0x0e,
  /** A frame of one connection of a forward (`channel-frames.ts`). */
  channel: 0x20,
} as const;

/**
 * How the program reads its terminal. `keys`: the program edits a line, and alone decides what is echoed. `lines`: lines that the
 * kernel echoes. `hidden`: lines without an echo, such as passwords. `unknown`: everything else, such as a program that passes keys
 * on to another terminal, whose echo the agent cannot see.
 */
export type Reading = 'unknown' | 'lines' | 'hidden' | 'keys';

/** Earlier agents send 1 for every program that reads single keys, also for `ssh`. It proves nothing, so it reads as `unknown`. */
const READING_CODES: Readonly<Record<Reading, number>> = { unknown: 0, lines: 2, hidden: 3, keys: 4 };
const READINGS = new Map(Object.entries(READING_CODES).map(([reading, code]) => [code, reading as Reading]));

/** `given` and `settled` are input offsets, `output` is an output offset. */
export interface EchoAck {
  /** The program could read the input before this offset when `reading` was determined. */
  readonly given: number;
  /** The echo of the input before this offset, if any, is in the output before `output`. */
  readonly settled: number;
  readonly output: number;
  readonly reading: Reading;
}

/** Stream of a program that output belongs to. A terminal has only `out`. */
export type OutputStream = 'out' | 'err';

export type Frame =
  | { readonly type: 'hello' | 'exit' | 'note'; readonly value: unknown }
  /** `offset` is the offset of the first byte. */
  | { readonly type: 'output'; readonly stream: OutputStream; readonly offset: number; readonly bytes: Buffer }
  | { readonly type: 'input'; readonly offset: number; readonly bytes: Buffer }
  /** Everything before `consumed` is processed, and the producer may send up to `limit`. Both are offsets. */
  | { readonly type: 'ack'; readonly consumed: number; readonly limit: number }
  /** The highest `generation` wins. */
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number; readonly generation: number }
  | { readonly type: 'signal'; readonly signal: string }
  | { readonly type: 'snapshot'; readonly head: unknown; readonly bytes: Buffer }
  /** The peer returns `t` unchanged. */
  | { readonly type: 'ping' | 'pong'; readonly t: number }
  /** End of the input. */
  | { readonly type: 'eof' }
  /** Input has arrived up to the offset. The sender answers with `anew`, and resends the rest or drops it. */
  | { readonly type: 'place'; readonly offset: number }
  /** The input that follows is current. */
  | { readonly type: 'anew' }
  /** The client asks for an `echo` frame when the input before `offset` is settled. */
  | { readonly type: 'askEcho'; readonly offset: number }
  | ({ readonly type: 'echo' } & EchoAck)
  /** `op` is one of `CHANNEL_OPS`. */
  | { readonly type: 'channel'; readonly channel: number; readonly op: number; readonly bytes: Buffer }
  /** A type of a later version, which receivers ignore. */
  | { readonly type: 'unknown' };

/** Length of the head of an output frame in bytes: type and offset. */
export const OUTPUT_HEAD = 9;

const outputType = (stream: OutputStream): number => (stream === 'out' ? FRAME.output : FRAME.errors);

/** Returns the head of an output frame. */
export function outputHead(stream: OutputStream, offset: number): Buffer {
  const head = Buffer.allocUnsafe(OUTPUT_HEAD);
  head[0] = outputType(stream);
  writeOffset(head, offset, 1);
  return head;
}

export function inputFrame(offset: number, bytes: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(OUTPUT_HEAD + bytes.length);
  frame[0] = FRAME.input;
  writeOffset(frame, offset, 1);
  frame.set(bytes, OUTPUT_HEAD);
  return frame;
}

export function ackFrame(consumed: number, limit: number): Buffer {
  const frame = Buffer.allocUnsafe(17);
  frame[0] = FRAME.ack;
  writeOffset(frame, consumed, 1);
  writeOffset(frame, limit, 9);
  return frame;
}

export function resizeFrame(cols: number, rows: number, generation: number): Buffer {
  const frame = Buffer.allocUnsafe(9);
  frame[0] = FRAME.resize;
  frame.writeUInt16BE(cols, 1);
  frame.writeUInt16BE(rows, 3);
  frame.writeUInt32BE(generation, 5);
  return frame;
}

export const signalFrame = (signal: string): Buffer => Buffer.from(`\x05${signal}`, 'latin1');

export const eofFrame = (): Buffer => Buffer.of(FRAME.eof);

export function placeFrame(offset: number): Buffer {
  const frame = pingFrame(offset);
  frame[0] = FRAME.place;
  return frame;
}

export const anewFrame = (): Buffer => Buffer.of(FRAME.anew);
export function askEchoFrame(offset: number): Buffer {
  const frame = Buffer.allocUnsafe(9);
  frame[0] = FRAME.askEcho;
  writeOffset(frame, offset, 1);
  return frame;
}

export function echoFrame({ given, settled, output, reading }: EchoAck): Buffer {
  const frame = Buffer.allocUnsafe(26);
  frame[0] = FRAME.echo;
  writeOffset(frame, given, 1);
  writeOffset(frame, settled, 9);
  writeOffset(frame, output, 17);
  frame[25] = READING_CODES[reading];
  return frame;
}

/** @param t integer that the pong returns, such as milliseconds of a monotonic clock */
export function pingFrame(t: number): Buffer {
  const frame = Buffer.allocUnsafe(9);
  frame[0] = FRAME.ping;
  writeOffset(frame, t, 1);
  return frame;
}

/** Returns the answer to a ping frame with the same `t`. */
export function pongFrame(t: number): Buffer {
  const frame = pingFrame(t);
  frame[0] = FRAME.pong;
  return frame;
}

export function jsonFrame(type: 'hello' | 'exit' | 'note', value: unknown): Buffer {
  return Buffer.concat([Buffer.of(FRAME[type]), Buffer.from(JSON.stringify(value))]);
}

/** Returns a snapshot frame. `bytes` draw the screen on any terminal, whatever it showed before. */
export function snapshotFrame(head: object, bytes: Uint8Array): Buffer {
  const json = Buffer.from(JSON.stringify(head));
  const start = Buffer.allocUnsafe(5);
  start[0] = FRAME.snapshot;
  start.writeUInt32BE(json.length, 1);
  return Buffer.concat([start, json, bytes]);
}

/**
 * Parses a frame. The bytes of the result are views of `data`.
 * @throws Fault `protocol_violation` for a frame that no version of the protocol sends
 */
export function readFrame(data: Buffer): Frame {
  const type = data[0];
  switch (type) {
    // Cases are tested in order, so keys and their echo come first.
    case FRAME.output:
    case FRAME.errors: {
      const { offset, bytes } = readOffsetAndBytes(data, TERMINAL_LIMITS.output);
      return { type: 'output', stream: type === FRAME.output ? 'out' : 'err', offset, bytes };
    }
    case FRAME.input:
      return { type: 'input', ...readOffsetAndBytes(data, TERMINAL_LIMITS.input) };
    case FRAME.ack:
      requireLength(data, 17);
      return { type: 'ack', consumed: readOffset(data, 1), limit: readOffset(data, 9) };
    case undefined:
      throw violation('an empty frame');
    case FRAME.hello:
      return { type: 'hello', value: readJson(data.subarray(1)) };
    case FRAME.exit:
      return { type: 'exit', value: readJson(data.subarray(1)) };
    case FRAME.note:
      return { type: 'note', value: readJson(data.subarray(1)) };
    case FRAME.resize:
      requireLength(data, 9);
      return {
        type: 'resize',
        cols: data.readUInt16BE(1),
        rows: data.readUInt16BE(3),
        generation: data.readUInt32BE(5),
      };
    case FRAME.signal:
      return { type: 'signal', signal: data.toString('latin1', 1, 17) };
    case FRAME.snapshot:
      return readSnapshot(data);
    case FRAME.ping:
    case FRAME.pong:
      requireLength(data, 9);
      return { type: type === FRAME.ping ? 'ping' : 'pong', t: readOffset(data, 1) };
    case FRAME.eof:
      return { type: 'eof' };
    case FRAME.place:
      requireLength(data, 9);
      return { type: 'place', offset: readOffset(data, 1) };
    case FRAME.anew:
      return { type: 'anew' };
    case FRAME.askEcho:
      requireLength(data, 9);
      return { type: 'askEcho', offset: readOffset(data, 1) };
    case FRAME.echo:
      return readEcho(data);
    case FRAME.channel:
      if (data.length < 6) throw violation('a truncated frame');
      return {
        type: 'channel',
        channel: data.readUInt32BE(1),
        op: data[5] as number,
        bytes: data.subarray(6),
      };
    default:
      return { type: 'unknown' };
  }
}

function readEcho(data: Buffer): Frame {
  requireLength(data, 26);
  return {
    type: 'echo',
    given: readOffset(data, 1),
    settled: readOffset(data, 9),
    output: readOffset(data, 17),
    // A later version may add readings.
    reading: READINGS.get(data[25] as number) ?? 'unknown',
  };
}

function readOffsetAndBytes(data: Buffer, most: number): { offset: number; bytes: Buffer } {
  if (data.length < OUTPUT_HEAD) throw violation('a truncated frame');
  if (data.length > OUTPUT_HEAD + most) throw violation(`more than ${most} bytes in a frame`);
  const offset = readOffset(data, 1);
  const bytes = data.subarray(OUTPUT_HEAD);
  return { offset, bytes };
}

function readSnapshot(data: Buffer): Frame {
  const length = data.length < 5 ? Number.POSITIVE_INFINITY : data.readUInt32BE(1);
  if (5 + length > data.length) throw violation('a truncated snapshot');
  return { type: 'snapshot', head: readJson(data.subarray(5, 5 + length)), bytes: data.subarray(5 + length) };
}

function readJson(bytes: Buffer): unknown {
  const text = bytes.toString('utf8');
  if (jsonExcess(text, TERMINAL_LIMITS.json) !== null) throw violation('JSON that exceeds the limits');
  try {
    return JSON.parse(text);
  } catch {
    throw violation('invalid JSON');
  }
}

function requireLength(data: Buffer, length: number): void {
  if (data.length !== length) throw violation('a frame of the wrong length');
}

function writeOffset(frame: Buffer, value: number, at: number): void {
  frame.writeUInt32BE(Math.floor(value / 2 ** 32), at);
  frame.writeUInt32BE(value % 2 ** 32, at + 4);
}

function readOffset(frame: Buffer, at: number): number {
  const value = frame.readUInt32BE(at) * 2 ** 32 + frame.readUInt32BE(at + 4);
  if (value > TERMINAL_LIMITS.offset) throw violation('an offset that is too large');
  return value;
}

const violation = (what: string): Fault => new Fault('protocol_violation', `the peer sent ${what}`);
