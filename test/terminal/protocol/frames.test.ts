/** Frames come back as they were written, and what is none is refused. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isFault } from '../../../src/kernel/fault.js';
import {
  ackFrame,
  anewFrame,
  askEchoFrame,
  echoFrame,
  eofFrame,
  FRAME,
  inputFrame,
  jsonFrame,
  OUTPUT_HEAD,
  pingFrame,
  placeFrame,
  pongFrame,
  type Reading,
  readFrame,
  resizeFrame,
  signalFrame,
  snapshotFrame,
} from '../../../src/terminal/frames.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import { TERMINAL_SIGNALS } from '../../../src/terminal/notes.js';
import { outputFrame } from '../../support/terminal-server.js';

const offsets = fc.oneof(
  fc.integer({ min: 0, max: 100_000 }),
  fc.constantFrom(2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 3),
  fc.nat({ max: 2 ** 31 - 1 }).map((high) => high * 2 ** 21),
);
const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));
const streams = fc.constantFrom('out' as const, 'err' as const);
const uint16 = fc.nat({ max: 0xffff });

describe('a frame comes back', () => {
  it('of output and of input', () => {
    fc.assert(
      fc.property(streams, offsets, bytes, (stream, offset, data) => {
        expect(readFrame(outputFrame(stream, offset, data))).toEqual({ type: 'output', stream, offset, bytes: data });
        expect(readFrame(inputFrame(offset, data))).toEqual({ type: 'input', offset, bytes: data });
      }),
    );
  });

  it('of what numbers tell', () => {
    fc.assert(
      fc.property(offsets, offsets, uint16, uint16, fc.nat({ max: 0xffff_ffff }), (a, b, cols, rows, generation) => {
        expect(readFrame(ackFrame(a, b))).toEqual({ type: 'ack', consumed: a, limit: b });
        expect(readFrame(resizeFrame(cols, rows, generation))).toEqual({ type: 'resize', cols, rows, generation });
        expect(readFrame(pingFrame(a))).toEqual({ type: 'ping', t: a });
        expect(readFrame(pongFrame(b))).toEqual({ type: 'pong', t: b });
      }),
    );
  });

  it('of questions about the echo, and their answers', () => {
    fc.assert(
      fc.property(
        offsets,
        offsets,
        offsets,
        fc.constantFrom<Reading>('unknown', 'lines', 'hidden', 'keys'),
        (given, settled, output, reading) => {
          const ack = { given, settled, output, reading };
          expect(readFrame(askEchoFrame(given))).toEqual({ type: 'askEcho', offset: given });
          expect(readFrame(echoFrame(ack))).toEqual({ type: 'echo', ...ack });
        },
      ),
    );
    const later = echoFrame({ given: 1, settled: 1, output: 1, reading: 'keys' });
    // 200 is of a later agent, 1 of an earlier one, which sends it for `ssh` as well.
    for (const code of [200, 1]) {
      later[25] = code;
      expect(readFrame(later)).toMatchObject({ type: 'echo', reading: 'unknown' });
    }
    expect(() => readFrame(later.subarray(0, 25))).toThrow();
  });

  it('of JSON, and of a snapshot with its bytes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.dictionary(fc.string(), fc.string()), bytes, (value, head, data) => {
        for (const type of ['hello', 'exit', 'note'] as const) {
          expect(readFrame(jsonFrame(type, value))).toEqual({ type, value: JSON.parse(JSON.stringify(value)) });
        }
        const frame = readFrame(snapshotFrame(head, data));
        expect(frame).toMatchObject({ type: 'snapshot', bytes: data });
        expect(JSON.stringify(frame.type === 'snapshot' && frame.head)).toBe(JSON.stringify(head));
      }),
    );
  });

  it('of a signal, and of the end of the input', () => {
    for (const signal of TERMINAL_SIGNALS) expect(readFrame(signalFrame(signal))).toEqual({ type: 'signal', signal });
    expect(readFrame(eofFrame())).toEqual({ type: 'eof' });
  });

  it('of the place of the input, and of its new beginning', () => {
    expect(readFrame(placeFrame(2 ** 40))).toEqual({ type: 'place', offset: 2 ** 40 });
    expect(readFrame(anewFrame())).toEqual({ type: 'anew' });
  });

  it('whatever part of a larger buffer it is', () => {
    const frame = outputFrame('err', 7, Buffer.from('text'));
    const around = Buffer.concat([Buffer.alloc(3, 0xff), frame, Buffer.alloc(3, 0xff)]);
    expect(readFrame(around.subarray(3, 3 + frame.length))).toMatchObject({ offset: 7, bytes: Buffer.from('text') });
  });
});

describe('what is no frame', () => {
  const huge = Buffer.alloc(9, 0xff);
  const typed = (type: number, rest: Uint8Array) => Buffer.concat([Buffer.of(type), rest]);

  it.each<[string, Buffer]>([
    ['nothing at all', Buffer.alloc(0)],
    ['output without an offset', outputFrame('out', 0, Buffer.alloc(0)).subarray(0, OUTPUT_HEAD - 1)],
    ['too much output', outputFrame('err', 0, Buffer.alloc(TERMINAL_LIMITS.output + 1))],
    ['too much input', inputFrame(0, Buffer.alloc(TERMINAL_LIMITS.input + 1))],
    ['an offset beyond exact numbers', typed(FRAME.output, huge)],
    ['output that ends beyond exact numbers', outputFrame('out', Number.MAX_SAFE_INTEGER, Buffer.from('x'))],
    ['a short ack', ackFrame(1, 2).subarray(0, 16)],
    ['a long ack', typed(FRAME.ack, Buffer.alloc(17))],
    ['an ack beyond exact numbers', typed(FRAME.ack, Buffer.alloc(16, 0xff))],
    ['a short resize', resizeFrame(1, 2, 3).subarray(0, 8)],
    ['a short ping', pingFrame(1).subarray(0, 8)],
    ['a long pong', typed(FRAME.pong, Buffer.alloc(9))],
    ['a hello that is no JSON', typed(FRAME.hello, Buffer.from('{'))],
    ['an empty note', typed(FRAME.note, Buffer.alloc(0))],
    ['a snapshot without a length', typed(FRAME.snapshot, Buffer.alloc(3))],
    ['a snapshot that is shorter than its head', typed(FRAME.snapshot, Buffer.of(0, 0, 0, 9, 0x7b, 0x7d))],
    ['a snapshot whose head is no JSON', typed(FRAME.snapshot, Buffer.of(0, 0, 0, 1, 0x7b))],
    ['a snapshot of four gigabytes', typed(FRAME.snapshot, Buffer.of(0xff, 0xff, 0xff, 0xff, 0x7b, 0x7d))],
  ])('%s is refused', (_what, data) => {
    expect(() => readFrame(data)).toThrow(expect.objectContaining({ code: 'protocol_violation' }));
  });

  it('any bytes are a frame, one of a later version, or refused as a violation', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (array) => {
        const data = Buffer.from(array);
        try {
          const { type } = readFrame(data);
          const isKnown = Object.values<number>(FRAME).includes(data[0] ?? 0);
          expect(type === 'unknown').toBe(!isKnown);
        } catch (error) {
          expect(isFault(error, 'protocol_violation')).toBe(true);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
