/** Property: what `--local` says of module files and values, the orchestrator says of them too. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { setTag } from '../../daemon/fleet/tag-store.js';
import { localDesired } from '../../src/cli/local/local-desired.js';
import type { LocalSession } from '../../src/cli/local/local-session.js';
import type { RunResult } from '../../src/contract/runs.js';
import { isFault } from '../../src/kernel/fault.js';
import { OPEN } from '../../src/language/parse-expression.js';
import type { DesiredResource } from '../../src/resources/desired.js';
import { RunAssembly } from '../../src/wire/parts.js';
import { temporaryDirectory } from '../support/database.js';
import { ALICE, type Bench, oneSecret, openBench, type ScriptedAgent } from '../support/engine.js';
import { drawn } from '../support/exhaustive.js';

const SECRET = 'hunter2';
const print = (expression: string) => `${OPEN} ${expression} }}`;
const file = (path: string, content: string) => ({ 'file-unix': { path, content } });
const resource = (path: string, content: string) => ({ resource: file(path, content) });

const INPUTS = {
  count: { type: 'integer', default: 3, maximum: 9 },
  word: { type: 'string', pattern: '[a-z]+', default: 'plain' },
  needed: { type: 'string' },
  on: { type: 'boolean', default: false },
  names: { type: 'list', of: { type: 'string' }, default: ['a', 'b'] },
  sites: {
    type: 'map',
    merge: true,
    of: {
      type: 'object',
      fields: { port: { type: 'integer' }, key: { type: 'string', secret: true, optional: true } },
    },
    default: { shop: { port: 1 } },
  },
  key: { type: 'string', secret: true, optional: true },
};

/** Entries that are right, for some agents and some values. */
const SOUND: readonly object[] = [
  resource('/plain', 'text'),
  resource('/count', print('inputs.count')),
  resource('/word', `${print('inputs.word | upcase')} ${print('agent.name')} ${print('attributes.distro')}`),
  resource('/needed', print('inputs.needed')),
  resource('/tag', print('tags.env')),
  resource('/default', print('tags.env | default: "none"')),
  resource('/shared', print('shared.domain | default: "lan"')),
  resource('/joined', print('inputs.names | join: ","')),
  resource('/divided', print('inputs.count | divided_by: inputs.count')),
  resource('/key', `a ${print('inputs.key | default: "none"')} b`),
  resource('/secret', print('secrets.KEY')),
  { if: 'inputs.key != nil', ...resource('/if-key', print('inputs.key')) },
  { if: 'inputs.on', ...resource('/on', 'on') },
  { if: 'inputs.count > 4 and tags.role == "web"', ...resource('/many', 'many') },
  { if: 'tags.role > 4', ...resource('/compared', '') },
  { for_each: 'inputs.names', ...resource(`/names/${print('each.key')}`, print('each.value')) },
  { for_each: 'inputs.names', ...resource(`/same/${print('each.value | slice: 0')}`, print('each.value')) },
  { for_each: 'inputs.sites', ...resource(`/sites/${print('each.key')}`, print('each.value.port')) },
  {
    for_each: 'inputs.sites',
    if: 'each.value.key != nil',
    ...resource(`/keys/${print('each.key')}`, print('each.value.key')),
  },
  {
    id: 'group',
    for_each: 'inputs.names',
    resources: [
      { id: 'one', ...resource(`/group/${print('each.key')}/one`, '1') },
      { depends_on: ['one'], ...resource(`/group/${print('each.key')}/two`, '2') },
    ],
  },
  { absent: { 'file-unix': { path: '/absent' } } },
  { absent: { 'file-unix': { path: '/plain' } } },
  {
    variants: [
      { when: { 'tag.role': 'web' }, resource: file('/variant', 'web') },
      { when: {}, resource: file('/variant', 'any') },
    ],
  },
  { variants: [{ when: { 'tag.role': 'db' }, resource: file('/db', 'db') }] },
  { resource: { 'line-unix': { path: '/plain', line: 'x' } } },
  { resource: { 'line-unix': { path: '/etc/lines', line: print('inputs.word') } } },
  { resource: { 'file-unix': { path: '/liquid', template: 'names' } } },
  { resource: { 'file-unix': { path: '/tags', template: 'tags' } } },
  { resource: { 'file-unix': { path: '/mode', content: '', mode: print('inputs.word') } } },
  { resource: { 'package-apt': { name: 'nginx' } } },
];

/** Entries that are wrong for every agent. */
const WRONG: readonly object[] = [
  resource('/gone', print('inputs.missing')),
  resource('/list', print('inputs.names')),
  resource('/zero', print('inputs.count | divided_by: 0')),
  { if: 'inputs.key == "x"', ...resource('/compared', 'x') },
  { if: 'inputs.count', ...resource('/truthy', 'no') },
  { for_each: 'inputs.names', ...resource('/again', print('each.value')) },
  { for_each: 'inputs.count', ...resource('/number', 'x') },
  { depends_on: ['nothing'], ...resource('/after', 'after') },
  { resource: { 'file-unix': { path: '/jinja', template: 'jinja' } } },
  { resource: { 'file-unix': { path: '/unknown', contents: '' } } },
  { resource: { 'file-unix': { path: 'relative', content: '' } } },
];

const TEMPLATES = [
  { id: 'names', engine: 'liquid', content: '{% for n in inputs.names %}{{ n }}{% endfor %}' },
  { id: 'tags', engine: 'liquid', content: '{{ tags.env }}' },
];

const of = (items: readonly object[], maxLength: number) => fc.subarray([...items], { minLength: 1, maxLength });
const seldom = <T>(often: T, arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(often) }, { weight: 1, arbitrary });

const moduleNamed = (name: string) =>
  fc
    .record({
      supports: seldom<object>(
        [{ platform: 'linux' }],
        fc.constantFrom([{ distro: 'debian' }], [{ distro: 'alpine' }]),
      ),
      inputs: seldom<object>(INPUTS, fc.constant({})),
      sound: of(SOUND, 4),
      wrong: seldom<object[]>([], of(WRONG, 2)),
    })
    .map(({ supports, inputs, sound, wrong }) => ({
      name,
      supports,
      inputs,
      templates: inputs === INPUTS ? TEMPLATES : [],
      resources: [...sound, ...wrong],
    }));

const words = fc.subarray<string>(
  [
    'web:needed=given',
    'web:count=5',
    'web:count=many',
    'web:count=12',
    'web:word=NO',
    'web:on=true',
    'web:names=["x", "y"]',
    'web:missing=1',
    'other:count=1',
    'web:key=plain',
    'web:count',
  ],
  { maxLength: 2 },
);
const NO_SET = '{when: {}, sets: {}}';
const sets = fc.subarray<string>(
  [
    '{when: {}, set: {web: {needed: given}, base: {needed: given}}}',
    '{when: {}, shared: {domain: a.net}, set: {web: {count: 6}}}',
    '{when: {}, set: {web: {count: 4}}}',
    '{when: {tag.role: web}, set: {web: {count: 7, key: {secret: KEY}}}}',
    '{when: {tag.role: db}, set: {web: {count: 8}}}',
    '{when: {}, set: {web: {sites: {blog: {port: 2, key: {secret: KEY}}}}}}',
    '{when: {tag.role: web}, set: {web: {names: []}}}',
    '{when: {distro: debian}, set: {web: {names: [z, zz]}}}',
    '{when: {}, set: {web: {sites: {blog: {port: none}}}}}',
    '{when: {}, set: {web: {names: [x, x]}}}',
    '{when: {}, set: {web: {key: plain}}}',
    '{when: {}, set: {web: {unknown: 1}}}',
    NO_SET,
  ],
  { maxLength: 3 },
);

interface Given {
  readonly modules: readonly { readonly name: string; readonly [member: string]: unknown }[];
  /** Values of `--set`. */
  readonly words: readonly string[];
  /** A value set: of `--values` here, stored there. */
  readonly content: string;
}
const given: fc.Arbitrary<Given> = fc
  .record({
    modules: fc.oneof(fc.tuple(moduleNamed('web')), fc.tuple(moduleNamed('web'), moduleNamed('base'))),
    words: seldom<string[]>([], words),
    sets: fc.oneof(fc.constant<string[]>(['{when: {}, set: {web: {needed: given}, base: {needed: given}}}']), sets),
  })
  .map(({ modules, words: all, sets: entries }) => ({
    modules,
    // A file that is no value set is refused before values are looked at.
    words: entries.includes(NO_SET) ? [] : all,
    content: entries.length === 0 ? 'values: []' : ['values:', ...entries.map((one) => `  - ${one}`)].join('\n'),
  }));

/** The place of a group that is repeated is not that of a resource. */
const SAME_ELEMENTS: Given = {
  modules: [
    {
      ...{ name: 'web', supports: [{}], inputs: INPUTS },
      resources: [{ for_each: 'inputs.names', resources: [resource(`/${print('each.key')}`, '')] }],
    },
  ],
  words: ['web:needed=given', 'web:names=["x", "x"]'],
  content: 'values: []',
};

/** One for each stage that accepts or refuses, because the few that are drawn may lack one. */
const webOf = (entry: object, content = 'values: []'): Given => ({
  modules: [
    { name: 'web', supports: [{ platform: 'linux' }], inputs: INPUTS, templates: TEMPLATES, resources: [entry] },
  ],
  words: [],
  content,
});
const GIVEN = 'values: [{when: {}, set: {web: {needed: given}}}]';
const STAGES: readonly Given[] = [
  webOf(resource('/needed', print('inputs.needed')), GIVEN),
  webOf(resource('/needed', print('inputs.needed'))),
  webOf(resource('/gone', print('inputs.missing')), GIVEN),
  webOf(resource('/plain', 'text'), `values: [${NO_SET}]`),
];

/** Resources and warnings, or the mistakes of the stage that refuses. */
interface Verdict {
  readonly code: string;
  readonly errors: readonly string[];
  readonly resources: unknown;
  readonly warnings: readonly string[];
}

const refusal = (error: unknown): Verdict => {
  if (!isFault(error)) throw error;
  const errors = (error.errors ?? []).map(({ path, message }) =>
    error.code === 'invalid_values' ? withoutPlace(message) : `${path}: ${withoutDirectory(message)}`,
  );
  return { code: error.code, errors: errors.sort(), resources: [], warnings: [] };
};

/** The command names a file with its place, and the orchestrator a module with the line. */
const withoutDirectory = (message: string): string =>
  message.replaceAll(/[^\s(]*\/verdict-\w+\//g, '').replaceAll(/\w+\.orch\.yaml:(\d+):\d+/g, 'line $1');

/** A pushed value set is refused by the pointers in it, and given values by their places. Only files give secrets here. */
const withoutPlace = (message: string): string =>
  withoutDirectory(message)
    .replace(/^mine\.values\.yaml:\d+: /, '')
    .replace(/(the input is a secret), .*/, '$1');

const accepted = (found: Pick<RunResult, 'warnings'>, resources: readonly DesiredResource[]): Verdict => ({
  code: '',
  errors: [],
  // The tags of a secret's value are of a key that each side has for itself.
  resources: JSON.parse(JSON.stringify(resources, (key, value) => (key === 'tag' ? undefined : value))),
  warnings: found.warnings.map(({ module, path, message, line }) => `${module}${path}:${line}: ${message}`),
});

/** Resolves the modules as `--local` does. */
async function resolvedHere({ modules, words: set, content }: Given, facts: LocalSession['facts'], below: string) {
  const directory = mkdtempSync(join(below, 'verdict-'));
  const write = (name: string, text: string): string => {
    const path = join(directory, name);
    writeFileSync(path, text);
    return path;
  };
  const file = modules.map((one) => write(`${one.name}.orch.yaml`, stringify(one)));
  const values = [write('mine.values.yaml', content)];
  const secret = () => ({ value: SECRET, tag: 'abcd' });
  const session = { facts, secret, machine: { dataDir: directory }, state: { applied: [] } };
  return localDesired(session as unknown as LocalSession, { file, values, set }, () => undefined);
}

/** The orchestrator stores the modules and the value set, and plans with the values of `--set`. */
async function serverVerdict(bench: Bench, agent: ScriptedAgent, { modules, words: set, content }: Given) {
  const { engine } = bench;
  const sent = modules.map((one) => ({ name: one.name, content: stringify(one) }));
  const ofModules: Verdict[] = [];
  for (const one of sent) await engine.modules.upload(one, ALICE).catch((error) => ofModules.push(refusal(error)));
  if (ofModules.length > 0) return merged(ofModules);
  const ofValues: Verdict[] = [];
  const keep = (error: unknown) => ofValues.push(refusal(error));
  await engine.values.upload({ name: 'mine', content }, ALICE).catch(keep);
  await engine.oneOff({ set: [...set] }, [], ALICE.actor.id).catch(keep);
  if (ofValues.length > 0) return merged(ofValues);
  agent.received.length = 0;
  const names = modules.map(({ name }) => name);
  try {
    const plan = await bench.plan(agent, names, undefined, { set: [...set] });
    return accepted(plan, contentSent(agent));
  } catch (error) {
    return refusal(error);
  }
}

const merged = (verdicts: readonly Verdict[]): Verdict => ({
  code: verdicts[0]?.code ?? '',
  errors: verdicts.flatMap(({ errors }) => errors).sort(),
  resources: [],
  warnings: [],
});

/** Returns the resources of the only run that an agent got. */
function contentSent({ received }: ScriptedAgent): readonly DesiredResource[] {
  const head = received.find((message) => message.type === 'run');
  if (head === undefined) return [];
  const assembly = new RunAssembly(head);
  const parts = received.filter((message) => message.type === 'run_part').map((part) => assembly.add(part));
  return parts.at(-1)?.resources ?? [];
}

/** Removes what an earlier round has stored. */
async function forget({ engine }: Bench): Promise<void> {
  await engine.values.remove('mine', ALICE).catch(refusal);
  for (const name of ['web', 'base']) await engine.modules.remove(name, ALICE).catch(refusal);
}

it('gives the same resources, warnings and mistakes', { timeout: 300_000 }, async () => {
  const bench = await openBench({ secrets: oneSecret(SECRET) });
  const agents = [await bench.agent('a'), await bench.agent('b')];
  await setTag(bench.db, agents[1]?.nodeId ?? '', 'role', 'web');
  const seen = new Set<string>();
  const directory = temporaryDirectory();
  await fc.assert(
    fc.asyncProperty(given, fc.nat(1), async (one, index) => {
      const agent = agents[index];
      if (agent === undefined) throw new Error('no agent');
      const facts: LocalSession['facts'] = {
        node_id: agent.nodeId,
        name: index === 0 ? 'web-a' : 'web-b',
        attributes: { platform: 'linux', arch: 'x86_64', distro: 'debian' },
        tags: index === 0 ? {} : { role: 'web' },
      };
      await forget(bench);
      const local = await resolvedHere(one, facts, directory).then(
        (found) => accepted(found, found.resources),
        refusal,
      );
      seen.add(local.code);
      expect(local).toEqual(await serverVerdict(bench, agent, one));
    }),
    {
      numRuns: drawn(100) + STAGES.length,
      examples: [SAME_ELEMENTS, ...STAGES].map((one): [Given, number] => [one, 0]),
    },
  );
  // Each stage has accepted and refused something.
  expect([...seen]).toEqual(expect.arrayContaining(['', 'invalid_module', 'invalid_values', 'input_missing']));
});

it('says which values of a file have no module here', async () => {
  const modules = [{ name: 'web', supports: [{}], inputs: INPUTS, resources: [resource('/plain', '')] }];
  const content = 'values:\n  - {when: {}, set: {web: {needed: x}, base: {needed: x}, wbe: {needed: x}}}';
  const facts = { node_id: 'a', name: 'web-a', attributes: { platform: 'linux' }, tags: {} };
  const { notes } = await resolvedHere({ modules, words: [], content }, facts, temporaryDirectory());
  expect(notes).toEqual(['the values of base, wbe are not used: -f gives no such module']);
});
