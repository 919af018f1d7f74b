/** Modules that make sense to apply, and machines to apply them to, by chance. */
import fc from 'fast-check';
import type { ModuleDefinition } from '../../src/language/schema.js';
import { directoryOf, type FakeNode, fileOf } from './fake-files.js';
import type { FakeMachineOptions } from './fake-machine.js';

type Entry = NonNullable<ModuleDefinition['resources']>[number];

const OPEN = '$' + '{{';

const content = fc.constantFrom(
  'one\n',
  'two\n',
  '',
  `key = ${OPEN} secrets.s }}\n`,
  `on ${OPEN} agent.name }}\n`,
  null,
);
const metadata = {
  owner: fc.constantFrom('root', '0', null),
  group: fc.constantFrom('root', 'g1', '0', null),
  mode: fc.constantFrom('0644', '600', '2750', null),
};

const file = (path: string) =>
  fc
    .record({ content, ...metadata }, { requiredKeys: [] })
    .map((body): Entry => ({ resource: { 'file-unix': { path, ...body } } }));

const directory = (path: string) =>
  fc
    .record(metadata, { requiredKeys: [] })
    .map((body): Entry => ({ resource: { 'directory-unix': { path, ...body } } }));

const group = (name: string) =>
  fc
    .record({ gid: fc.constantFrom(2000, 2001, null) }, { requiredKeys: [] })
    .map((body): Entry => ({ resource: { 'group-unix': { name, ...body } } }));

const script = (body: Record<string, unknown>) =>
  fc.constant<Entry>({ resource: { script: { program: 'sh', ...body } } });

/** What a module may hold, in an order in which it can be applied. The copies are made anew when their source changes. */
const SLOTS: Readonly<Record<string, fc.Arbitrary<Entry>>> = {
  g1: group('g1'),
  g2: group('g2'),
  a: directory('/a'),
  b: directory('/a/b'),
  f: file('/a/b/f'),
  g: file('/a/g'),
  h: file('/h'),
  d: directory('/d'),
  x: file('/d/x'),
  touched: script({ apply: 'touch /touched', check: 'test -e /touched', undo: 'rm /touched' }),
  'copy-of-h': script({ apply: 'cp /h /copy-of-h', undo: 'rm /copy-of-h' }),
  'copy-of-g': script({ apply: 'cp /a/g /copy-of-g', check: 'test -e /copy-of-g', undo: 'rm /copy-of-g' }),
};

const SOURCES: Readonly<Record<string, string>> = { 'copy-of-h': 'h', 'copy-of-g': 'g' };
const names = Object.keys(SLOTS);

const moduleOf = (chosen: readonly string[]): fc.Arbitrary<ModuleDefinition> =>
  fc
    .tuple(...chosen.map((name, at) => entryOf(name, chosen.slice(0, at), chosen)))
    .map((resources) => ({ name: 'm', supports: [{}], resources }));

/** In an order that works, with some dependencies on what comes earlier. */
export const orderedModule: fc.Arbitrary<ModuleDefinition> = fc.subarray(names).chain(moduleOf);

/** At times in an order in which files come before their directory and their group. */
export const anyModule: fc.Arbitrary<ModuleDefinition> = fc.oneof(
  { weight: 3, arbitrary: orderedModule },
  { weight: 1, arbitrary: fc.shuffledSubarray(names).chain(moduleOf) },
);

function entryOf(id: string, earlier: readonly string[], chosen: readonly string[]): fc.Arbitrary<Entry> {
  const source = SOURCES[id];
  const isHeard = source !== undefined && chosen.includes(source);
  const depends = fc.subarray([...earlier], { maxLength: Math.min(1, earlier.length) });
  return fc.tuple(SLOTS[id] ?? fc.constant<Entry>({}), depends).map(([entry, depends_on]) => ({
    id,
    depends_on,
    ...entry,
    ...(isHeard && { resource: { script: { ...entry.resource?.script, rerun_on: [source] } } }),
  }));
}

const somethingAt = fc.constantFrom<FakeNode | null>(
  null,
  directoryOf(),
  directoryOf(0o700),
  fileOf('by hand\n', 0o600),
  { type: 'symlink', target: '/elsewhere' },
  { type: 'fifo' },
);

/** Machines on which some of that is already, as it should be or not. */
export const anyMachine: fc.Arbitrary<FakeMachineOptions> = fc
  .record({
    a: somethingAt,
    h: somethingAt,
    inA: fc.constantFrom(null, fileOf('old\n')),
    d: fc.constantFrom(null, directoryOf()),
    groups: fc.constantFrom<Record<string, number>>({}, { g1: 1000 }, { g1: 2000 }, { g2: 2001, other: 2000 }),
  })
  .map(({ a, h, inA, d, groups }) => {
    const nodes: readonly (readonly [string, FakeNode | null])[] = [
      ['/a', a],
      ['/h', h],
      ['/a/g', a?.type === 'directory' ? inA : null],
      ['/d', d],
      ['/d/by-hand', d && fileOf('stays\n')],
    ];
    return { groups, files: Object.fromEntries(nodes.flatMap(([path, node]) => (node ? [[path, node]] : []))) };
  });
