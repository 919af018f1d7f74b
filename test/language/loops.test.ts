/** Loops and conditions: the same for every order and beside any neighbour, and bounded for every text. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { finish } from '../../src/kernel/steps.js';
import { compileSteps } from '../../src/language/compile-module.js';
import { type AgentFacts, isTrue } from '../../src/language/evaluate.js';
import { type Condition, parseCondition } from '../../src/language/parse-condition.js';
import { parseModule } from '../../src/language/parse-module.js';
import { resolve, resolveSteps } from '../../src/language/resolve.js';
import { MAX_RESOURCES } from '../../src/language/schema.js';
import { Work } from '../../src/language/work.js';
import { drawn } from '../support/exhaustive.js';

const AGENT: AgentFacts = { node_id: 'id', name: 'web-01', attributes: { platform: 'linux' }, tags: {} };

/** Resolves a module that is JSON, which YAML reads too. */
function resolved(resources: readonly unknown[], agent = AGENT) {
  const { definition, diagnostics } = parseModule(
    JSON.stringify({ name: 'web', supports: [{ platform: 'linux' }], resources }),
  );
  expect(diagnostics).toEqual([]);
  if (definition === null) throw new Error('the module is wrong');
  return resolve({ modules: [{ name: 'web', definition }], agent, secret: () => null });
}

const EACH = '$' + '{{ each.key }}';
const site = (id: string) => ({ id, resource: { 'file-unix': { path: `/${id}/${EACH}`, content: EACH } } });
const keys = fc.uniqueArray(fc.stringMatching(/^[a-z\u00e9\u{1f600}][\w-]{0,5}$/u), { maxLength: 8 });

describe('the condition of a loop', () => {
  it('is checked in steps of at most fifty elements', () => {
    const many = Array.from({ length: 900 }, (_, index) => `e${index}`);
    const resources = [{ for_each: many, if: 'each.key contains "zz"', ...site('a') }];
    const { definition } = parseModule(JSON.stringify({ name: 'web', supports: [{ platform: 'linux' }], resources }));
    if (definition === null) throw new Error('the module is wrong');
    const compiled = finish(compileSteps({ name: 'web', definition }));
    let steps = 0;
    for (const _ of resolveSteps({ modules: [compiled], agent: AGENT, secret: () => null })) steps += 1;
    expect(steps).toBeGreaterThanOrEqual(900 / 50);
  });
});

describe('a loop', () => {
  it('makes the same resources in every order of its mapping, in the order of code points', () => {
    fc.assert(
      fc.property(keys, fc.infiniteStream(fc.nat()), (names, order) => {
        const shuffled = [...names].map((name) => [order.next().value, name] as const).sort(([a], [b]) => a - b);
        const mapping = (of: readonly string[]) => Object.fromEntries(of.map((name) => [`${name}`, 1]));
        const [a, b] = [names, shuffled.map(([, name]) => name)].map((of) =>
          resolved([{ for_each: mapping(of), ...site('a') }]).resources.map(({ id }) => id),
        );
        expect(a).toEqual(b);
        const bytes = (text: string) => Buffer.from(text);
        const sorted = [...names].sort((left, right) => Buffer.compare(bytes(left), bytes(right)));
        expect(a).toEqual(sorted.map((name) => `a[${name}]`));
      }),
    );
  });

  it('leaves the neighbours of a new element as they are', () => {
    fc.assert(
      fc.property(keys, fc.nat(), (names, at) => {
        const fewer = names.filter((_, index) => index !== at % Math.max(1, names.length));
        const group = (of: readonly string[]) => [
          { for_each: of, resources: [site('a'), { ...site('b'), depends_on: ['a'] }] },
        ];
        const bodies = (of: readonly string[]) => {
          const { resources } = resolved(group(of));
          return resources.map(({ after, ...rest }) => ({
            ...rest,
            after: after.map((turn) => resources[turn]?.identity),
          }));
        };
        const all = bodies(names);
        expect(all).toHaveLength(names.length * 2);
        for (const body of bodies(fewer)) expect(all).toContainEqual(body);
      }),
    );
  });

  it('of an agent makes at most as many resources as a module has', () => {
    const list = Array.from({ length: 100 }, (_, index) => index).join();
    const agent = { ...AGENT, tags: { list } };
    const loop = (members: number) => [
      {
        for_each: 'tags.list | split: ","',
        resources: Array.from({ length: members }, (_, index) => site(`r${index}`)),
      },
    ];
    expect(resolved(loop(MAX_RESOURCES / 100), agent).resources).toHaveLength(MAX_RESOURCES);
    expect(() => resolved(loop(MAX_RESOURCES / 100 + 1), agent)).toThrow(
      `module "web": its loops and directories make more than ${MAX_RESOURCES} resources`,
    );
  });
});

/** A condition as text, and what it is for tags `a` and `b`, by JavaScript. */
interface Known {
  readonly text: string;
  of(tags: Readonly<Record<string, string>>): boolean;
}

const operands = fc.constantFrom('a', 'b');
const texts = fc.constantFrom('x', 'y', '', 'xy', 'and', '(', ' or ', '{{ x }}');
const leaf: fc.Arbitrary<Known> = fc.oneof(
  fc.tuple(operands, fc.constantFrom('==', '!=', 'contains'), texts).map(
    ([tag, by, text]): Known => ({
      text: `tags.${tag} ${by} "${text}"`,
      of: (tags) =>
        by === '==' ? tags[tag] === text : by === '!=' ? tags[tag] !== text : tags[tag]?.includes(text) === true,
    }),
  ),
  operands.map((tag): Known => ({ text: `tags.${tag} == nil`, of: (tags) => tags[tag] === undefined })),
  operands.map((tag): Known => ({ text: `tags.${tag} != nil`, of: (tags) => tags[tag] !== undefined })),
  fc.boolean().map((value): Known => ({ text: String(value), of: () => value })),
  texts.map((text): Known => ({ text: `tags.a|default:"${text}"=="x"`, of: (tags) => (tags.a ?? text) === 'x' })),
);
const { condition } = fc.letrec<{ condition: Known }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 4 },
    leaf,
    tie('condition').map((inner): Known => ({ text: `not (${inner.text})`, of: (tags) => !inner.of(tags) })),
    fc.array(tie('condition'), { minLength: 2, maxLength: 3 }).map(
      (all): Known => ({
        text: all.map(({ text }) => `(${text})`).join(' and '),
        of: (tags) => all.every((one) => one.of(tags)),
      }),
    ),
    fc.array(tie('condition'), { minLength: 2, maxLength: 3 }).map(
      (all): Known => ({
        text: all.map(({ text }) => `(${text})`).join('\n or\t'),
        of: (tags) => all.some((one) => one.of(tags)),
      }),
    ),
  ),
}));

function parsed(text: string): Condition {
  const found = parseCondition(text);
  if (typeof found === 'string') throw new Error(`${text}: ${found}`);
  return found;
}

describe('a condition', () => {
  it('is true exactly when it reads so', () => {
    const tags = fc.record({ a: texts, b: texts }, { requiredKeys: [] });
    fc.assert(
      fc.property(
        condition.filter(({ text }) => text.length < 2_000),
        tags,
        ({ text, of }, given) => {
          expect(
            isTrue(parsed(text), {
              agent: { ...AGENT, tags: given },
              each: null,
              inputs: {},
              shared: {},
              work: new Work(),
            }),
          ).toBe(of(given));
        },
      ),
      { numRuns: drawn(1_000) },
    );
  });

  it('of any characters is read or refused', () => {
    const pieces = fc.constantFrom(
      '(',
      ')',
      'not ',
      ' and ',
      ' or ',
      '==',
      '"',
      "'",
      'tags.a',
      '|',
      ':',
      ' ',
      'nil',
      '<',
      '{{',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(pieces, { maxLength: 60 }).map((all) => all.join('')),
        ),
        (text) => {
          const found = parseCondition(text);
          if (typeof found === 'string') expect(found).not.toBe('');
          else
            expect(typeof isTrue(found, { agent: AGENT, each: null, inputs: {}, shared: {}, work: new Work() })).toBe(
              'boolean',
            );
        },
      ),
      { numRuns: drawn(2_000) },
    );
  });

  it.each([
    ['parentheses', '('.repeat(2_000)],
    ['negations', 'not '.repeat(500)],
    ['joints', `${'true and '.repeat(220)}true`],
    ['quotes', `tags.a == ${'"'.repeat(1_999)}`],
    ['bars', `tags.a${'|upcase'.repeat(250)} == "a"`],
  ])('with many %s is read or refused without a fault', (_, text) => {
    expect(['string', 'object']).toContain(typeof parseCondition(text));
  });
});
