/** A backlog gives back exactly what was appended, wherever it was dropped and read, and keeps no more than that. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Backlog } from '../../../src/terminal/backlog.js';
import type { OutputStream } from '../../../src/terminal/frames.js';
import { drawn } from '../../support/exhaustive.js';

type Step =
  | { readonly do: 'append'; readonly bytes: Buffer; readonly stream: OutputStream }
  | { readonly do: 'drop' | 'cut'; readonly offset: number }
  | { readonly do: 'read'; readonly offset: number; readonly most: number; readonly limit: number }
  | { readonly do: 'restart'; readonly offset: number };

/** The same as one byte after the other. */
class Model {
  bytes: { readonly byte: number; readonly stream: OutputStream }[] = [];
  start: number;

  constructor(start: number) {
    this.start = start;
  }

  get end(): number {
    return this.start + this.bytes.length;
  }
}

/** Places relative to the start, for they have to meet what is kept. */
const place = fc.integer({ min: -20, max: 400 });
const size = fc.oneof({ weight: 4, arbitrary: fc.nat({ max: 40 }) }, { weight: 1, arbitrary: fc.nat({ max: 9_000 }) });
const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('append' as const),
        bytes: fc
          .tuple(size, fc.nat(255))
          .map(([length, first]) => Buffer.from(Array.from({ length }, (_, i) => first + i))),
        stream: fc.constantFrom('out' as const, 'out' as const, 'err' as const),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('drop' as const), offset: place }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('cut' as const), offset: place }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('read' as const),
        offset: place,
        most: fc.integer({ min: 1, max: 10_000 }),
        limit: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), place),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const), offset: fc.nat({ max: 1_000 }) }) },
  ),
  { maxLength: 120 },
);

function play(backlog: Backlog, model: Model, step: Step): void {
  switch (step.do) {
    case 'append':
      backlog.append(step.bytes, step.stream);
      for (const byte of step.bytes) model.bytes.push({ byte, stream: step.stream });
      break;
    case 'drop': {
      const offset = model.start + step.offset;
      backlog.dropBefore(offset);
      const dropped = Math.min(Math.max(0, step.offset), model.bytes.length);
      model.bytes = model.bytes.slice(dropped);
      model.start += dropped;
      break;
    }
    case 'cut':
      backlog.dropFrom(model.start + step.offset);
      model.bytes = model.bytes.slice(0, Math.max(0, step.offset));
      break;
    case 'restart':
      backlog.restart(step.offset);
      model.bytes = [];
      model.start = step.offset;
      break;
    case 'read': {
      const offset = model.start + step.offset;
      const limit = model.start + step.limit;
      const piece = backlog.read(offset, step.most, limit);
      const there = step.offset >= 0 && offset < Math.min(model.end, limit);
      expect(piece !== null).toBe(there);
      if (piece === null) return;
      expect(piece.offset).toBe(offset);
      expect(piece.bytes.length).toBeGreaterThan(0);
      expect(piece.bytes.length).toBeLessThanOrEqual(step.most);
      expect(offset + piece.bytes.length).toBeLessThanOrEqual(limit);
      const expected = model.bytes.slice(step.offset, step.offset + piece.bytes.length);
      expect(new Set(expected.map(({ stream }) => stream))).toEqual(new Set([piece.stream]));
      expect(piece.bytes.equals(Buffer.from(expected.map(({ byte }) => byte)))).toBe(true);
    }
  }
}

/** All that can be read, piece by piece, as whoever sends it does. */
function drain(backlog: Backlog, most: number): Buffer {
  const parts: Buffer[] = [];
  let at = backlog.start;
  for (let piece = backlog.read(at, most); piece !== null; piece = backlog.read(at, most)) {
    parts.push(piece.bytes);
    at += piece.bytes.length;
  }
  expect(at).toBe(backlog.end);
  return Buffer.concat(parts);
}

describe('a backlog', () => {
  it('is what a plain list of bytes is', () => {
    fc.assert(
      fc.property(fc.nat({ max: 1_000 }), steps, fc.integer({ min: 1, max: 500 }), (start, all, most) => {
        const backlog = new Backlog(start);
        const model = new Model(start);
        for (const step of all) {
          play(backlog, model, step);
          expect([backlog.start, backlog.end, backlog.length]).toEqual([model.start, model.end, model.bytes.length]);
        }
        expect(drain(backlog, most).equals(Buffer.from(model.bytes.map(({ byte }) => byte)))).toBe(true);
      }),
      { numRuns: drawn(300) },
    );
  });

  it('gives pieces that stay as they are while more is appended', () => {
    const backlog = new Backlog();
    backlog.append(Buffer.from('ab'));
    const piece = backlog.read(0, 10);
    for (let round = 0; round < 1_000; round += 1) backlog.append(Buffer.alloc(1_000, 'c'));
    expect(piece?.bytes.toString()).toBe('ab');
  });

  it('keeps a copy of what it is given', () => {
    const backlog = new Backlog();
    const bytes = Buffer.from('ab');
    backlog.append(bytes);
    bytes.fill('x');
    expect(drain(backlog, 10).toString()).toBe('ab');
  });

  it('shares memory with others over time, and never what it holds', () => {
    const all = Array.from({ length: 4 }, () => new Backlog());
    for (let round = 0; round < 400; round += 1) {
      for (const [index, backlog] of all.entries()) {
        backlog.append(Buffer.alloc(50_000, index));
        backlog.dropBefore(backlog.end - (round % 7) * 60_000);
      }
    }
    for (const [index, backlog] of all.entries()) {
      expect(drain(backlog, 16_000).equals(Buffer.alloc(backlog.length, index))).toBe(true);
    }
  });

  it('does not keep the bytes of pieces that are dropped', () => {
    const backlog = new Backlog();
    for (let round = 0; round < 60; round += 1) {
      backlog.append(Buffer.alloc(1024 * 1024));
      backlog.dropBefore(backlog.end);
    }
    expect(backlog.length).toBe(0);
    expect(JSON.stringify(backlog).length).toBeLessThan(10_000);
  });

  it('takes a program that writes byte by byte without an object for each', () => {
    const backlog = new Backlog();
    for (let at = 0; at < 64 * 1024; at += 1) backlog.append(Buffer.of(at % 251), at < 32 * 1024 ? 'out' : 'err');
    let pieces = 0;
    for (let at = 0; at < backlog.end; pieces += 1) at += backlog.read(at, 64 * 1024)?.bytes.length ?? Number.NaN;
    expect(pieces).toBeLessThanOrEqual(32);
    expect(drain(backlog, 1_000).equals(Buffer.from(Array.from({ length: 64 * 1024 }, (_, at) => at % 251)))).toBe(
      true,
    );
  });
});
