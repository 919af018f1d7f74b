/** Pieces of JSON: together they are the JSON of the value, and each is small. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encode, encodedPieces } from '../../src/wire/codec.js';
import { jsonPieces, PIECE_CHARACTERS } from '../../src/wire/json-pieces.js';
import type { OrchestratorMessage } from '../../src/wire/messages.js';

const joined = (value: unknown): string => [...jsonPieces(value)].join('');

describe('the pieces of a value', () => {
  it('are its JSON', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => joined(value) === JSON.stringify(value)));
  });

  it('are its JSON also where texts, lists and mappings are large', () => {
    const long = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 8 })
      .map((text) => text.repeat(Math.ceil((2.5 * PIECE_CHARACTERS) / text.length)));
    const large = fc.record({
      list: fc.array(fc.oneof(long, fc.jsonValue()), { maxLength: 4 }),
      map: fc.dictionary(fc.string(), fc.oneof(long, fc.constant(undefined), fc.jsonValue()), { maxKeys: 4 }),
      text: long,
      none: fc.constant(undefined),
    });
    fc.assert(
      fc.property(large, (value) => joined(value) === JSON.stringify(value)),
      { numRuns: 30 },
    );
  });

  it('cut no character in two', () => {
    for (const before of ['', 'x']) {
      const text = before + '🦉'.repeat(PIECE_CHARACTERS);
      const pieces = [...jsonPieces(text)];
      expect(pieces.length).toBeGreaterThan(1);
      expect(Buffer.concat(pieces.map((piece) => Buffer.from(piece))).toString()).toBe(JSON.stringify(text));
    }
  });

  it('are small, in one text and in many', () => {
    const values = [
      'x'.repeat(1_000_000),
      Array.from({ length: 10_000 }, (_, at) => ({ path: `/srv/file-${at}`, at })),
    ];
    for (const value of values) {
      for (const { length } of jsonPieces(value)) expect(length).toBeLessThan(2 * PIECE_CHARACTERS + 16);
    }
  });
});

describe('the frame of a message', () => {
  const part = (contents: readonly string[]): OrchestratorMessage => ({
    type: 'run_part',
    run_id: '01J8ZQ4Y7M0000000000000000',
    part: 0,
    resources: contents.map((content, at) => {
      const path = `/srv/${at}`;
      return {
        module: 'web',
        kind: 'file-unix',
        identity: path,
        id: null,
        name: null,
        body: { path, content },
        after: [],
      };
    }),
    removals: [],
  });

  it('is one piece when it is small, and the same text in several when it is large', () => {
    const small = part(['x']);
    expect([...encodedPieces(small)]).toEqual([encode(small)]);
    const large = part(['x'.repeat(300_000), 'short', '"\n'.repeat(100_000)]);
    const pieces = [...encodedPieces(large)];
    expect(pieces.length).toBeGreaterThan(5);
    expect(JSON.parse(pieces.join(''))).toEqual(JSON.parse(encode(large)));
  });
});
