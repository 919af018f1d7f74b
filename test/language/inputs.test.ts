/** Values of inputs: whatever the sets are, the choice depends on what they say and not on their order. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readPattern } from '../../src/kernel/pattern.js';
import { compileModule } from '../../src/language/compile-module.js';
import type { AgentFacts } from '../../src/language/evaluate.js';
import { entriesOf, type GivenValues, moduleValues, valuesFor } from '../../src/language/inputs/choose.js';
import { parseValueSet, type ValueEntry } from '../../src/language/inputs/value-set.js';
import { OPEN } from '../../src/language/parse-expression.js';
import { parseModule } from '../../src/language/parse-module.js';
import { resolve } from '../../src/language/resolve.js';
import { drawn } from '../support/exhaustive.js';

const { definition } = parseModule(`name: web
supports: [{}]
inputs:
  one: {type: integer, default: 0}
  list: {type: list, of: {type: integer}, merge: true, default: [0]}
  map: {type: map, of: {type: integer}, merge: true, default: {base: 0}}
  key: {type: string, secret: true, optional: true}
resources:
  - for_each: inputs.map
    file-unix: {path: "/m/${OPEN} each.key }}", content: "${OPEN} each.value }}"}
  - if: inputs.key != nil
    file-unix: {path: /key, content: "a ${OPEN} inputs.key }} b"}
`);
if (definition === null) throw new Error('the module of the test is wrong');
const compiled = compileModule({ name: 'web', definition });

const AGENT: AgentFacts = {
  node_id: 'a',
  name: 'web-1',
  attributes: { platform: 'linux', distro: 'debian' },
  tags: { env: 'prod', role: 'web' },
};

const clause = fc.subarray([
  ['agent', 'web-1'],
  ['tag.env', 'prod'],
  ['tag.role', 'web'],
  ['tag.role', 'db'],
  ['distro', 'debian'],
] as const);
const small = fc.nat(3);
const set = fc.record(
  {
    one: small,
    list: fc.array(small, { maxLength: 3 }),
    map: fc.dictionary(fc.constantFrom('base', 'a', 'b'), fc.option(small), { maxKeys: 3 }),
  },
  { requiredKeys: [] },
);
const entry: fc.Arbitrary<ValueEntry> = fc
  .tuple(clause, set)
  .map(([when, web]) => ({ when: Object.fromEntries(when), shared: {}, set: { web }, lines: {} }));
const entries = fc.array(entry, { maxLength: 6 });
const ranking = fc.constantFrom([], ['tag.role'], ['tag.env', 'tag.role']);

const chosen = (all: readonly ValueEntry[], rank: readonly string[]) => {
  const given: GivenValues = { layers: [entriesOf({ rank: null, entries: all }, 'x')], rank };
  const { inputs, problems } = moduleValues(compiled, valuesFor(given, AGENT));
  return { inputs, wrong: problems.map(({ input }) => input) };
};

describe('the values of inputs', () => {
  it('do not depend on the order of entries', () => {
    const shuffled = entries.chain((all) =>
      fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length })),
    );
    fc.assert(
      fc.property(shuffled, ranking, ([all, other], rank) => {
        expect(chosen(other, rank)).toEqual(chosen(all, rank));
      }),
      { numRuns: drawn(1_000) },
    );
  });

  it('do not depend on entries for other agents, nor on an equal entry more', () => {
    const foreign: ValueEntry = { when: { agent: 'web-2' }, shared: {}, set: { web: { one: 9 } }, lines: {} };
    fc.assert(
      fc.property(entries, ranking, (all, rank) => {
        expect(chosen([...all, foreign], rank)).toEqual(chosen(all, rank));
        expect(chosen([...all, ...all.slice(0, 1)], rank)).toEqual(chosen(all, rank));
      }),
      { numRuns: drawn(500) },
    );
  });

  it('are those of the agent itself where an entry names it', () => {
    const own: ValueEntry = { when: { agent: 'web-1' }, shared: {}, set: { web: { one: 3 } }, lines: {} };
    const others = entries.map((all) => all.filter(({ when }) => when.agent === undefined));
    fc.assert(
      fc.property(others, ranking, (all, rank) => {
        expect(chosen([own, ...all], rank).inputs.one).toBe(3);
      }),
    );
  });

  it('leave the other elements of a loop as they are when one is added', () => {
    const resources = (map: Readonly<Record<string, number>>) => {
      const own: ValueEntry = { when: {}, shared: {}, set: { web: { map } }, lines: {} };
      const values = { layers: [entriesOf({ rank: null, entries: [own] }, 'x')], rank: [] };
      const resolution = resolve({ modules: [{ name: 'web', definition }], agent: AGENT, secret: () => null, values });
      return new Map(resolution.resources.map((one) => [one.identity, JSON.stringify(one)]));
    };
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('a', 'b', 'c'), small), small, (map, more) => {
        const before = resources(map);
        const after = resources({ ...map, added: more });
        for (const [identity, one] of before) expect(after.get(identity)).toBe(one);
      }),
    );
  });

  it('never hold the value of a secret, which is only in the bytes that its spans mark', () => {
    const own: ValueEntry = { when: {}, shared: {}, set: { web: { key: { secret: 'KEY' } } }, lines: {} };
    const values = { layers: [entriesOf({ rank: null, entries: [own] }, 'x')], rank: [] };
    const secret = () => ({ value: 'hunter2', tag: 'abcd' });
    expect(JSON.stringify(moduleValues(compiled, valuesFor(values, AGENT)))).not.toContain('hunter2');
    const { resources } = resolve({ modules: [{ name: 'web', definition }], agent: AGENT, secret, values });
    const spans = [{ start: 2, end: 9, secret: 'KEY', tag: 'abcd' }];
    expect(resources.find(({ identity }) => identity === '/key')).toMatchObject({
      body: { content: 'a hunter2 b' },
      taint: { '/content': spans },
    });
  });
});

describe('a value set', () => {
  it('of any characters is read or refused', () => {
    const pieces = [
      'values:',
      '\n',
      '  - ',
      'when: ',
      '{}',
      'set: ',
      '{a: {b: 1}}',
      'rank: ',
      '[tag.a]',
      ': ',
      '&a',
      '*a',
    ];
    const text = fc.array(fc.constantFrom(...pieces), { maxLength: 30 }).map((all) => all.join(''));
    fc.assert(
      fc.property(fc.oneof(fc.string(), text), (source) => {
        const { set: read, diagnostics } = parseValueSet(source);
        expect(read === null).toBe(diagnostics.some(({ severity }) => severity === 'error'));
      }),
      { numRuns: drawn(1_000) },
    );
  });
});

describe('a pattern', () => {
  it.each(['(a+)+$', '(a|aa)+$', '(.*)*x', '^(\\w+\\s?)*$'])(
    'that would take others for ever ends at once: %s',
    (source) => {
      const pattern = readPattern(source);
      if (typeof pattern === 'string') throw new Error(pattern);
      // The regular expressions of JavaScript would need longer than a test may take.
      expect(typeof pattern.test(`${'a'.repeat(20_000)}!`)).toBe('boolean');
    },
  );
});
