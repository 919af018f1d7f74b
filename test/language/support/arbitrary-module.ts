/** Modules and agents by chance, for properties. */
import fc from 'fast-check';
import type { AgentFacts } from '../../../src/language/fill.js';
import type { ModuleDefinition } from '../../../src/language/schema.js';

const value = fc.constantFrom('a', 'b');

/** Clauses over few keys and values, so that many of them meet. */
export const clause: fc.Arbitrary<Record<string, string>> = fc.record(
  {
    platform: fc.constantFrom('linux', 'macos', 'windows'),
    distro: fc.constantFrom('debian', 'alpine'),
    'tag.x': value,
    'tag.y': value,
  },
  { requiredKeys: [] },
);

const body = fc.record(
  {
    path: fc.integer({ min: 0, max: 12 }).map((n) => `/${n}`),
    content: fc.constantFrom('one', 'two', `three ${'$'}{{ secrets.s }}`, `${'$'}{{ agent.name }} four`, null),
    mode: fc.constantFrom('0644', '600', null),
  },
  { requiredKeys: ['path'] },
);

const resource = body.map((one) => ({ 'file-unix': one }));

const choice = fc.oneof(
  resource.map((one) => ({ resource: one })),
  fc.array(fc.record({ when: clause, resource }), { minLength: 1, maxLength: 4 }).map((variants) => ({ variants })),
);

const entries = (choices: readonly fc.Arbitrary<object>[], mayDepend: (index: number, other: number) => boolean) =>
  fc.tuple(
    ...choices.map((one, index) => {
      const others = [...choices.keys()].filter((other) => mayDepend(index, other));
      const depends = fc.subarray(others, { maxLength: Math.min(2, others.length) });
      return fc.record({ one, depends }).map(({ one: chosen, depends: ids }) => ({
        id: `r${index}`,
        depends_on: ids.map((other) => `r${other}`),
        ...chosen,
      }));
    }),
  );

/** Modules of the right shape; whether they have a meaning is for validation to say. */
export const module = (name: string): fc.Arbitrary<ModuleDefinition> =>
  fc.record({
    name: fc.constant(name),
    supports: fc.array(clause, { minLength: 1, maxLength: 3 }),
    resources: fc.nat(5).chain((count) =>
      entries(
        Array.from({ length: count }, () => choice),
        (index, other) => other < index,
      ),
    ),
  });

/** Modules that validation accepts and every agent gets; two of them share some of their resources. */
export const soundModule = (name: string): fc.Arbitrary<ModuleDefinition> =>
  fc.record({
    name: fc.constant(name),
    supports: fc.constant([{}]),
    resources: fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7]).chain((paths) =>
      entries(
        paths.map((path) => {
          const content = fc.constantFrom('same', 'same', 'same', name);
          return content.map((text) => ({ resource: { 'file-unix': { path: `/${path}`, content: text } } }));
        }),
        // By number, so that two modules seldom contradict each other.
        (index, other) => (paths[other] ?? 0) < (paths[index] ?? 0),
      ),
    ),
  });

/** Agents as they are: the distro fits the platform. */
export const agent: fc.Arbitrary<AgentFacts> = fc
  .record({
    system: fc.constantFrom<Record<string, string>>(
      { platform: 'linux', distro: 'debian' },
      { platform: 'linux', distro: 'alpine' },
      { platform: 'linux' },
      { platform: 'macos' },
      { platform: 'windows' },
    ),
    tags: fc.record({ x: fc.constantFrom('a', 'b', 'c'), y: value }, { requiredKeys: [] }),
  })
  .map(({ system, tags }) => ({ node_id: '0'.repeat(32), name: 'n1', attributes: system, tags: { ...tags } }));
