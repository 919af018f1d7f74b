/**
 * The frames of a terminal's sockets (`docs/protocols/terminal.md`): one type byte and a payload, numbers in big-endian order. Output is
 * forwarded as it came; what is JSON is checked by whoever reads it.
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
  /** Output of a command's standard error; shares the offsets of the output, in the order in which both were read. */
  errors: 0x0c,
  place: 0x10,
  anew: 0x11,
  /** From the client: tell where its input stands once the program has had it for a while. */
  askEcho: 0x0d,
  /** From the agent: where the input stands, and how the program reads it. */
  echo: 0x0e,
} as const;

/**
 * How the program reads its terminal. `keys`: each for itself, echoed by the program if at all. `lines`: as lines, echoed by the
 * system. `hidden`: as lines, without an echo, as for a password.
 */
export const READINGS = ['unknown', 'keys', 'lines', 'hidden'] as const;
export type Reading = (typeof READINGS)[number];

/** Offsets: all input before them. */
export interface EchoAck {
  /** The program could read it before `reading` was looked at. */
  readonly given: number;
  /** The program could read it for so long that its echo, if there is one, is in the output before `output`. */
  readonly settled: number;
  readonly output: number;
  readonly reading: Reading;
}

/** Which of a program's streams wrote it; a terminal has but one. */
export type OutputStream = 'out' | 'err';

export type Frame =
  | { readonly type: 'hello' | 'exit' | 'note'; readonly value: unknown }
  /** `offset` is that of the first byte. */
  | { readonly type: 'output'; readonly stream: OutputStream; readonly offset: number; readonly bytes: Buffer }
  | { readonly type: 'input'; readonly offset: number; readonly bytes: Buffer }
  /** Absolute offsets: all before `consumed` is dealt with, and the producer may send up to `limit`. */
  | { readonly type: 'ack'; readonly consumed: number; readonly limit: number }
  /** The newest `generation` counts. */
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number; readonly generation: number }
  | { readonly type: 'signal'; readonly signal: string }
  | { readonly type: 'snapshot'; readonly head: unknown; readonly bytes: Buffer }
  /** `t` is whatever the sender wants back. */
  | { readonly type: 'ping' | 'pong'; readonly t: number }
  /** No more input follows. */
  | { readonly type: 'eof' }
  /** Input has come up to the offset. Its sender sends the rest again, or drops it and goes on from there, behind an `anew`. */
  | { readonly type: 'place'; readonly offset: number }
  /** Input that follows is what its sender means now. */
  | { readonly type: 'anew' }
  /** The client wants to know when all input before `offset` is settled. */
  | { readonly type: 'askEcho'; readonly offset: number }
  | ({ readonly type: 'echo' } & EchoAck)
  /** Of a later version; to be ignored. */
  | { readonly type: 'unknown' };

/** Bytes before the payload of an output frame: type and offset. */
export const OUTPUT_HEAD = 9;

const outputType = (stream: OutputStream): number => (stream === 'out' ? FRAME.output : FRAME.errors);

/** What an output frame begins with, in front of its bytes. */
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
  frame[25] = READINGS.indexOf(reading);
  return frame;
}

/** @param t whole number that the pong gives back, such as milliseconds of a monotonic clock */
export function pingFrame(t: number): Buffer {
  const frame = Buffer.allocUnsafe(9);
  frame[0] = FRAME.ping;
  writeOffset(frame, t, 1);
  return frame;
}

/** The answer to a ping frame, which is given as it came. */
export function pongFrame(t: number): Buffer {
  const frame = pingFrame(t);
  frame[0] = FRAME.pong;
  return frame;
}

export function jsonFrame(type: 'hello' | 'exit' | 'note', value: unknown): Buffer {
  return Buffer.concat([Buffer.of(FRAME[type]), Buffer.from(JSON.stringify(value))]);
}

/** The bytes draw the screen; a terminal that is given them shows it, whatever it showed before. */
export function snapshotFrame(head: object, bytes: Uint8Array): Buffer {
  const json = Buffer.from(JSON.stringify(head));
  const start = Buffer.allocUnsafe(5);
  start[0] = FRAME.snapshot;
  start.writeUInt32BE(json.length, 1);
  return Buffer.concat([start, json, bytes]);
}

/**
 * Reads a frame; its bytes are views of `data`.
 * @throws Fault `protocol_violation` for what no version of the protocol sends
 */
export function readFrame(data: Buffer): Frame {
  const type = data[0];
  switch (type) {
    // Looked for one after the other: keys and their echo first.
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
    // A later version may know more of them.
    reading: READINGS[data[25] as number] ?? 'unknown',
  };
}

function readOffsetAndBytes(data: Buffer, most: number): { offset: number; bytes: Buffer } {
  if (data.length < OUTPUT_HEAD) throw violation('a frame that is cut short');
  if (data.length > OUTPUT_HEAD + most) throw violation(`more than ${most} bytes in a frame`);
  const offset = readOffset(data, 1);
  const bytes = data.subarray(OUTPUT_HEAD);
  return { offset, bytes };
}

function readSnapshot(data: Buffer): Frame {
  const length = data.length < 5 ? Number.POSITIVE_INFINITY : data.readUInt32BE(1);
  if (5 + length > data.length) throw violation('a snapshot that is cut short');
  return { type: 'snapshot', head: readJson(data.subarray(5, 5 + length)), bytes: data.subarray(5 + length) };
}

function readJson(bytes: Buffer): unknown {
  const text = bytes.toString('utf8');
  if (jsonExcess(text, TERMINAL_LIMITS.json) !== null) throw violation('JSON with too much in it');
  try {
    return JSON.parse(text);
  } catch {
    throw violation('text that is no JSON');
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
