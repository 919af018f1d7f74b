/** Kinds with what the catalogue's later kinds bring: triggers, choices, numbers, maps, and identities per module. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import * as Type from 'typebox';
import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { closed, nullable, optional } from '../../src/kernel/schema.js';
import type { AgentFacts } from '../../src/language/evaluate.js';
import { kindSet } from '../../src/language/kind-set.js';
import type { ModuleDefinition } from '../../src/language/schema.js';
import { CATALOGUE } from '../../src/resources/catalogue.js';
import type { Body, ResourceKind } from '../../src/resources/kind.js';

const ids = optional(Type.Array(Type.String()));

const unused: Pick<ResourceKind, 'platforms' | 'read' | 'exists' | 'plan' | 'planRemoval'> = {
  platforms: ['linux'],
  read: () => [],
  exists: () => false,
  plan: () => ({ action: 'none' }),
  planRemoval: () => ({ action: 'none' }),
};

const text = (body: Body, member: string): string => {
  const value = body[member];
  return typeof value === 'string' ? value : '';
};

const sampleService: ResourceKind = {
  ...unused,
  kind: 'sample-service',
  family: 'service',
  schema: closed({
    name: Type.String({ minLength: 1, pattern: '^[a-z.]+$', description: 'Unit name in lower case' }),
    running: optional(Type.Boolean()),
    type: optional(Type.Enum(['simple', 'oneshot', 'notify'])),
    nice: optional(Type.Integer({ minimum: -20, maximum: 19 })),
    step: optional(Type.Integer({ multipleOf: 5 })),
    environment: optional(Type.Record(Type.String(), nullable(Type.String()))),
    dependencies: optional(Type.Array(Type.String(), { minItems: 1, maxItems: 3 })),
    either: optional(Type.Union([Type.Integer(), Type.Array(Type.Integer({ maximum: 9 }), { uniqueItems: true })])),
    reload_on: ids,
    restart_on: ids,
  }),
  check: () => [],
  identity: (body) => text(body, 'name'),
  requires: () => [],
};

const sampleScript: ResourceKind = {
  ...unused,
  kind: 'sample-script',
  family: 'script',
  schema: closed({
    program: Type.Enum(['sh', 'bash']),
    apply: Type.String(),
    manages: optional(Type.String()),
    rerun_on: ids,
  }),
  check: () => [],
  identity: (body, id) => text(body, 'manages') || (id ?? ''),
  requires: () => [],
};

const sampleText: ResourceKind = {
  ...unused,
  kind: 'sample-text',
  family: 'group',
  schema: closed({ name: Type.String(), content: optional(Type.String()), template: optional(Type.String()) }),
  check: (body) =>
    text(body, 'content').includes('\0') ? [{ path: '/content', message: 'content holds a NUL character' }] : [],
  identity: (body) => text(body, 'name'),
  requires: () => [],
};

/** The catalogue's kinds and the samples. */
export const SAMPLE_KINDS = kindSet(
  new Map([...CATALOGUE, ...[sampleService, sampleScript, sampleText].map((kind) => [kind.kind, kind] as const)]),
);

/** Modules and agents by chance, for properties. */
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

/**
 * Cases as data: one YAML file each, what is given above `expected:`, what comes out below it.
 * `UPDATE_CASES=1 npx vitest run test/language` writes what comes out now into every file; review the difference like code.
 */
const root = fileURLToPath(new URL('../language/cases', import.meta.url));
const updating = process.env.UPDATE_CASES === '1';

/** Runs every case of a folder: `run` makes from a case what its `expected` has to be. */
export function runCases<Given>(folder: string, run: (given: Given) => unknown): void {
  const files = readdirSync(join(root, folder)).filter((name) => name.endsWith('.yaml'));
  for (const name of files) {
    it(basename(name, '.yaml'), () => {
      const file = join(root, folder, name);
      const text = readFileSync(file, 'utf8');
      const { expected, ...given } = parse(text) as { expected?: unknown };
      const actual = JSON.parse(JSON.stringify(run(given as Given)));
      if (updating) writeFileSync(file, withExpected(text, actual));
      else expect(actual).toEqual(expected);
    });
  }
}

/** The text of a case with another expectation; what is given stays as it was written. */
function withExpected(text: string, expected: unknown): string {
  const given = text.split(/^expected:/m)[0]?.trimEnd();
  return `${given}\n${stringify({ expected }, { lineWidth: 0 })}`;
}
