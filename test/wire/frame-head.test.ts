import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { agentDecoder, UnknownMessage } from '../../src/wire/codec.js';
import { headOfFrame } from '../../src/wire/frame-head.js';

describe('the head of a frame', () => {
  it.each<[string, string | null]>([
    ['{"type":"hello"}', 'hello'],
    ['{ "a" : {"type":"inner"}, "type" : "outer" }', 'outer'],
    ['{"type":"first","type":"last"}', 'last'],
    ['{"a":["type","x"],"b":"\\"type\\":\\"no\\"","type":"yes"}', 'yes'],
    ['{"a":"type"}', null],
    ['{"type":7}', null],
    ['{"type":"a\\u0062"}', null],
    ['[{"type":"x"}]', null],
    ['', null],
  ])('of %s has the type %j', (frame, type) => {
    expect(headOfFrame(frame).type).toBe(type);
  });

  it('has the size of each other member', () => {
    expect([...headOfFrame('{"type":"x","a":[1,2],"b":{"c":","}}').sizes]).toEqual([
      ['a', '"a":[1,2]'.length],
      ['b', '"b":{"c":","}'.length],
    ]);
  });

  it('agrees with the parser about every object (property)', () => {
    const objects = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => ({ ...value, type: 'hello' }));
    fc.assert(
      fc.property(objects, (value) => {
        const { type, sizes } = headOfFrame(JSON.stringify(value));
        expect(type).toBe('hello');
        expect([...sizes.keys()]).toEqual(
          Object.keys(value)
            .filter((name) => name !== 'type')
            .map((name) => JSON.stringify(name).slice(1, -1)),
        );
      }),
    );
  });
});

describe('a decoder for messages of agents', () => {
  it.each<[string, number]>([
    ['{"type":"weather","degrees":21}', 31],
    ['{"type":"run_accepted","run_id":"01J8ZQ4Y7M0000000000000000","extra":[1,2]}', '"extra":[1,2]'.length],
    ['{"type":"run_accepted","run_id":"01J8ZQ4Y7M0000000000000000"}', 0],
  ])('says how much of %s it ignores', (frame, expected) => {
    let ignored = 0;
    const message = agentDecoder()(frame, (characters) => {
      ignored += characters;
    });
    expect(ignored).toBe(expected);
    expect(message instanceof UnknownMessage).toBe(frame.includes('weather'));
  });
});
