/** Agents with the same facts get the same resources: what a module reads of an agent is known without resolving it. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { compileModule } from '../../src/language/compile-module.js';
import type { AgentFacts } from '../../src/language/evaluate.js';
import { factsRead } from '../../src/language/facts-read.js';
import { parseModule } from '../../src/language/parse-module.js';
import { resolveCompiled } from '../../src/language/resolve.js';

const MODULE = `
name: site
supports:
  - platform: linux
  - platform: macos
    tag.site: home
templates:
  - id: greeting
    content: "\${{ agent.name }} in \${{ attributes.timezone }}\\n"
  - id: rendered
    engine: liquid
    content: |
      {% if tags.mood == "good" %}{{ attributes.arch | default: "none" }}{% endif %}
      {% for part in tags.parts | default: "p" | split: "," %}{% render "part", part: part, owner: agent.name %}{% endfor %}
  - {id: part, engine: liquid, content: '{{ part }} {{ owner }} {{ tags.inner | default: "none" }}'}
resources:
  - resource: {file-unix: {path: /etc/rendered, template: rendered}}
  - resource: {file-unix: {path: /etc/plain, content: "\${{ tags.role }}, not $\${{ tags.color }}"}}
  - resource: {file-unix: {path: /etc/filtered, content: "\${{ tags.nick | default: tags.alias | upcase }}"}}
  - resource: {file-unix: {path: /etc/greeting, template: greeting}}
  - variants:
      - when: {distro: debian}
        resource: {file-unix: {path: /etc/distro, content: debian}}
      - when: {distro: debian, tag.tier: web}
        resource: {file-unix: {path: /etc/tier, content: "\${{ tags.role }}"}}
      - when: {}
        resource: {file-unix: {path: /etc/other, content: other}}
  - if: tags.tint == "red" or (attributes.version != nil and not agent.name == "web-1")
    resource: {file-unix: {path: /etc/if, content: a}}
  - if: tags.nick == nil
    resources:
      - for_each: 'tags.list | default: attributes.version | split: ","'
        if: each.key != tags.alias
        resource: {file-unix: {path: "/etc/list/\${{ each.key }}", content: a}}
verify:
  - {when: {tag.checked: all}, http: {url: "http://\${{ attributes.fqdn }}/"}}
  - {unit: site}
`;
const { definition } = parseModule(MODULE);
if (definition === null) throw new Error('the module of the test is wrong');
const compiled = compileModule({ name: 'site', definition });
const read = (agent: AgentFacts) => factsRead(compiled).values(agent);

const oneOf = (...values: readonly string[]) => fc.constantFrom(...values);
/** Some of the labels, each with one of its values. */
const labels = (known: Readonly<Record<string, readonly string[]>>): fc.Arbitrary<Record<string, string>> =>
  fc
    .subarray(Object.entries(known))
    .chain((some) => fc.tuple(...some.map(([key, values]) => fc.constantFrom(...values).map((value) => [key, value]))))
    .map((entries) => Object.fromEntries(entries));
const facts: fc.Arbitrary<AgentFacts> = fc.record({
  node_id: oneOf('a', 'b'),
  name: oneOf('web-1', 'web-2'),
  attributes: labels({
    platform: ['linux', 'macos', 'windows'],
    distro: ['debian', 'alpine'],
    timezone: ['1', '2'],
    version: ['11', '12'],
    fqdn: ['a', 'b'],
    init_system: ['systemd', 'openrc'],
    cpus: ['1', '2'],
    arch: ['x86_64', 'aarch64'],
  }),
  tags: labels({
    role: ['x', 'y'],
    mood: ['good', 'bad'],
    parts: ['a,b', 'c'],
    inner: ['a', 'b'],
    nick: ['n'],
    tint: ['red', 'blue'],
    list: ['a,b', 'c'],
    alias: ['a', 'b'],
    tier: ['web', 'db'],
    site: ['home', 'away'],
    checked: ['all', 'no'],
    color: ['red', 'blue'],
  }),
});

function outcome(agent: AgentFacts): unknown {
  try {
    const { resources, checks } = resolveCompiled({ modules: [compiled], agent, secret: () => null });
    return { resources, checks };
  } catch {
    return 'an error';
  }
}

/** A change of one fact: a label gets another value or goes away, or the agent another name. */
const change: fc.Arbitrary<(agent: AgentFacts) => AgentFacts> = fc.oneof(
  labels({ platform: ['linux', 'macos'], distro: ['debian'], timezone: ['3'], arch: ['armv7'], cpus: ['3'] }).map(
    (attributes) => (agent: AgentFacts) => ({ ...agent, attributes: { ...agent.attributes, ...attributes } }),
  ),
  labels({
    role: ['z'],
    mood: ['good'],
    parts: ['d'],
    inner: ['c'],
    tint: ['red'],
    list: ['d'],
    tier: ['web'],
    site: ['home'],
    color: ['green'],
  }).map((tags) => (agent: AgentFacts) => ({
    ...agent,
    tags,
  })),
  fc
    .record({ name: oneOf('web-1'), node_id: oneOf('c') })
    .map((names) => (agent: AgentFacts) => ({ ...agent, ...names })),
);

it('resolve to the same for agents that differ in other facts only', () => {
  let compared = 0;
  fc.assert(
    fc.property(facts, change, (one, changed) => {
      const other = changed(one);
      if (JSON.stringify(read(one)) !== JSON.stringify(read(other))) return;
      compared += 1;
      expect(outcome(one)).toEqual(outcome(other));
    }),
    { numRuns: 2000 },
  );
  expect(compared).toBeGreaterThan(100);
});

it('are those of clauses, variants, templates and texts, and no others', () => {
  const agent = { node_id: 'a', name: 'web-1', attributes: {}, tags: {} };
  const base = JSON.stringify(read(agent));
  const changed = (change: Partial<AgentFacts>) => JSON.stringify(read({ ...agent, ...change })) !== base;
  for (const attribute of ['platform', 'distro', 'timezone'])
    expect(changed({ attributes: { [attribute]: 'x' } })).toBe(true);
  for (const tag of ['role', 'tier', 'site', 'tint', 'list', 'alias'])
    expect(changed({ tags: { [tag]: 'x' } })).toBe(true);
  expect(changed({ name: 'x' })).toBe(true);
  expect(changed({ node_id: 'x' })).toBe(false);
  expect(changed({ attributes: { cpus: '2' } })).toBe(false);
  expect(changed({ tags: { color: 'red' } })).toBe(false);
});
