/** How many agents a second the orchestrator's rules resolve: modules, tags and secrets to one set of resources. */
import { compileModule } from '../../src/language/compile-module.js';
import type { AgentFacts } from '../../src/language/evaluate.js';
import { parseModule } from '../../src/language/parse-module.js';
import { resolveCompiled } from '../../src/language/resolve.js';
import { alternate, atLeast, atMostTimes, numbersOf, OURS, type Part, rowOf } from './row.js';
import { sized } from './sized.js';

const ROUNDS = sized(5, 1);
const RESOURCES = 50;
/** Elements of the loop. */
const ELEMENTS = 20;
const MANY = sized(10_000, 40);
const FEW = sized(1_000, 20);
/** Agents before the first that counts. */
const WARM_UP = sized(500, 5);
const RATE = `resolution: agents per second of one core, ${RESOURCES} resources with variants, templates and secrets`;
const LOOP_RATE = 'resolution: agents per second of one core, a loop of 20 files with a template of 200 lines';
const GROWTH = `resolution: time of one agent among ${MANY.toLocaleString('en')}`;
const LOOP = 'a loop';
const AMONG_FEW = `among ${FEW.toLocaleString('en')}`;

export const resolution: Part = {
  name: 'resolution',
  summary: `resolution of a module with ${RESOURCES} resources for ${MANY.toLocaleString('en')} agents, in this process`,
  run: ({ measure }) =>
    measure([RATE, LOOP_RATE, GROWTH], async () => {
      const resolve = resolver(moduleText(), RESOURCES);
      const resolveLoop = resolver(loopText(), ELEMENTS);
      resolve(WARM_UP);
      resolveLoop(WARM_UP);
      const programs = new Map([
        [OURS, async () => cpuOfEach(MANY, resolve)],
        [AMONG_FEW, async () => cpuOfEach(FEW, resolve)],
        [LOOP, async () => cpuOfEach(FEW, resolveLoop)],
      ]);
      const runs = await alternate(ROUNDS, programs);
      const alone = new Map([...runs].filter(([program]) => program !== LOOP));
      const ratesOf = (program: string) => new Map([[OURS, (runs.get(program) ?? []).map((each) => 1e6 / each)]]);
      return [
        rowOf({ what: RATE, unit: '/s', runs: ratesOf(OURS), goal: atLeast(3_500, '/s') }),
        rowOf({ what: LOOP_RATE, unit: '/s', runs: ratesOf(LOOP), goal: atLeast(1_000, '/s') }),
        rowOf({ what: GROWTH, unit: 'us', runs: numbersOf(alone, (each) => each), goal: atMostTimes(1.2, AMONG_FEW) }),
      ];
    }),
};

/** Microseconds of the processor for each agent. */
function cpuOfEach(count: number, resolve: (count: number) => void): number {
  const before = process.cpuUsage();
  resolve(count);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

/** The module is parsed and compiled once, as at its upload. */
function resolver(text: string, expected: number): (count: number) => void {
  const parsed = parseModule(text);
  if (parsed.definition === null) throw new Error('the module of the benchmark is not valid');
  const modules = [compileModule({ name: 'bench', definition: parsed.definition })];
  return (count) => {
    for (let index = 0; index < count; index += 1) {
      const { resources } = resolveCompiled({
        modules,
        agent: agentOf(index),
        secret: (name) => ({ value: `${name}-${index}`, tag: '0000' }),
      });
      if (resources.length !== expected) throw new Error(`${resources.length} resources instead of ${expected}`);
    }
  };
}

const agentOf = (index: number): AgentFacts => ({
  node_id: String(index).padStart(32, '0'),
  name: `web-${index}`,
  attributes: {
    hostname: `web-${index}`,
    platform: 'linux',
    distro: index % 2 === 0 ? 'debian' : 'fedora',
    distro_version: '12',
    init_system: 'systemd',
    arch: 'x64',
  },
  tags: { role: index % 3 === 0 ? 'web' : 'database', site: `site-${index % 50}` },
});

/** A fifth of the resources has variants, a fifth a template, and a fifth a secret. */
function moduleText(): string {
  const entries = Array.from({ length: RESOURCES }, (_, index) => {
    const path = `/srv/\${{ tags.site }}/file-${index}`;
    switch (index % 5) {
      case 0:
        return `  - variants:
      - when: {distro: debian}
        resource: {package-apt: {name: tool-${index}}}
      - when: {distro: fedora}
        resource: {package-dnf: {name: tool-${index}}}`;
      case 1:
        return `  - resource: {file-unix: {path: "${path}", template: banner, mode: "0644"}}`;
      case 2:
        return `  - resource: {file-unix: {path: "${path}", content: "token = \${{ secrets.TOKEN }}\\n", mode: "0600"}}`;
      case 3:
        return `  - resource: {service-systemd: {name: service-${index}, enabled: true, running: true}}`;
      default:
        return `  - resource: {directory-unix: {path: "${path}", owner: root, group: root, mode: "0755"}}`;
    }
  });
  return `name: bench
supports:
  - platform: linux
templates:
  - id: banner
    content: |
      This is \${{ agent.name }} of \${{ tags.site }}, a \${{ tags.role }}.
      Managed by orch.
resources:
${entries.join('\n')}
`;
}

/** A loop over mappings. The lines of the template name the element, and every fifth stands in a condition. */
function loopText(): string {
  const line = 'key = {{ each.key }}, name = {{ each.value.name | upcase }}, host = {{ agent.name }}\n';
  const lines = `${line.repeat(4)}{% if tags.role == "web" or agent.name != each.key %}\n${line}{% endif %}\n`;
  const elements = Array.from({ length: ELEMENTS }, (_, index) => [`site-${index}`, { name: `name ${index}` }]);
  return JSON.stringify({
    name: 'bench',
    supports: [{ platform: 'linux' }],
    templates: [{ id: 'site', engine: 'liquid', content: lines.repeat(40) }],
    resources: [
      {
        for_each: Object.fromEntries(elements),
        resource: { 'file-unix': { path: `/etc/sites/$\{{ each.key }}`, template: 'site' } },
      },
    ],
  });
}
