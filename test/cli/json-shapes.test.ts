/** What each command prints with `-o json` has the shape that `docs/reference/json.md` names. `runOrch` compares them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands/index.js';
import { CONTRACT, type RouteId } from '../../src/contract/contract.js';
import { EXAMPLES } from '../../src/contract/examples.js';
import type { Programs } from '../../src/programs/programs.js';
import type { Restored } from '../../src/programs/store.js';
import { Home, noPrograms, type RunOptions, runOrch } from '../support/cli.js';
import { driftDetail, inSync, planned, readings, runResult, streamOf, ulid } from '../support/cli-world.js';
import { type Answers, type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';
import { COMMAND_JSON } from '../support/json-shapes.js';

/** The recorded example of each operation as its answer. */
const examples: Answers = Object.fromEntries(
  Object.keys(CONTRACT).flatMap((id) => {
    const { status = 0, answer } = EXAMPLES[id] ?? {};
    return status < 200 || status > 299 ? [] : [[id as RouteId, { status, body: answer ?? null }]];
  }),
);

let api: FakeApi;
const home = new Home();
const site = home.file('site.orch.yaml');
const values = home.file('prod.values.yaml');
const directory = home.file('site');

beforeAll(async () => {
  api = await startFakeApi();
  const text = 'name: site\nsupports:\n  - platform: linux\nresources: []\n';
  writeFileSync(site, text);
  writeFileSync(values, 'values:\n  - when: {}\n    set: {site: {port: 80}}\n');
  mkdirSync(directory);
  writeFileSync(`${directory}/site.orch.yaml`, text);
});
beforeEach(() => api.answer({ ...examples, ...readings }));
afterAll(async () => {
  await api.stop();
  home.dispose();
});

/** A public key. */
const KEY = '3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29';
const CHANNEL = '01M8GBDSJSZNJJEHVATEFEJ1HT';
const WINDOW = { ...(EXAMPLES.getMaintenanceWindow?.answer as object), starts_at: 1, status: 'active' };

const restoredStore: Restored = {
  file: '/b.orchbackup',
  sha256: 'a'.repeat(64),
  data_dir: '/var/lib/orch',
  store: '/var/lib/orch',
  made_at: null,
  schema: 24,
  last_seq: 1,
  last_hash: 'b'.repeat(64),
  last_at: null,
  present: 'none',
  present_seq: null,
  present_at: null,
  operators_back: [],
  agents_back: [],
  epoch: 2,
  sessions: 0,
  tokens: 0,
  operations: 0,
  deliveries: 0,
  rollouts: [],
  assignments: [],
  kept: null,
  recordings: 0,
  secrets_key: null,
};

/** Programs of a host on which everything succeeds. */
const programs: Partial<Programs> = {
  agent: {
    ...noPrograms.agent,
    status: async () => ({ node_id: 'a'.repeat(32), link: 'connected' }),
  },
  service: {
    isUnknownName: async () => false,
    planServe: async () => ({
      hasStore: true,
      addresses: ['orch.test'],
      settings: { api_host: 'orch.test', agent_host: 'orch.test', advertised_host: 'orch.test' },
      configFile: '/etc/orch/orchestrator.yaml',
    }),
    installServe: async () => ({
      unit: 'orch-serve.service',
      unit_file: '/etc/systemd/system/orch-serve.service',
      api_url: 'https://orch.test:8443',
      local_url: 'https://127.0.0.1:8443',
      agent_address: 'orch.test:7443',
      tls_fingerprint: null,
      public_key: KEY,
    }),
    uninstallServe: noPrograms.service.uninstallServe,
    installAgent: async () => ({
      unit: 'orch-agent.service',
      unit_file: '/etc/systemd/system/orch-agent.service',
      node_id: 'a'.repeat(32),
      orchestrator: null,
      link: 'waiting',
      last_error: null,
      hint: null,
    }),
    uninstallAgent: noPrograms.service.uninstallAgent,
  },
  store: {
    backup: async ({ file }) => ({
      file,
      bytes: 1,
      sha256: 'a'.repeat(64),
      schema: 24,
      last_seq: 1,
      last_hash: 'b'.repeat(64),
      keys: ['/var/lib/orch/identity.key'],
    }),
    restore: async () => restoredStore,
    recoverAdmin: async () => ({
      operator_id: 'c'.repeat(32),
      username: 'ada',
      public_key: KEY,
      change: 'added',
      former_role: null,
    }),
    copy: async ({ from, to }) => {
      const { epoch, sessions, tokens, operations, deliveries, rollouts, assignments } = restoredStore;
      const reset = { epoch, sessions, tokens, operations, deliveries, rollouts, assignments };
      return { ...reset, from: from.text, to: to.text, schema: 24, last_seq: 0, last_hash: '', rows: {}, next: [] };
    },
  },
};

/** Commands whose calls need more than an answer, and the suite that runs them with `-o json`. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'operator rotate': 'operator-rotate',
  'agents keep': 'agent-identity',
  'agents upgrade': 'agents-upgrade',
  apply: 'acting',
  'drift snooze': 'acting',
  'drift accept': 'acting',
  'drift adopt': 'acting',
  explain: 'authoring',
  'rollouts watch': 'rollouts',
  'ops watch': 'hostile',
  exec: 'exec',
  'audit tail': 'audit',
  'package verify': 'package',
};

/** Commands that need a terminal or an agent. The first two print what `values push` and `module publish` print. */
const NOT_RUN: readonly string[] = ['values edit', 'module edit', 'cp', 'forward'];

interface Call {
  readonly argv: readonly string[];
  readonly answers?: Answers;
  readonly options?: RunOptions;
  /** Exit status [0]. */
  readonly status?: number;
}

const call = (argv: string, more: Omit<Call, 'argv'> = {}): Call => ({ argv: argv.split(' '), ...more });

const CALLS: Readonly<Record<string, readonly Call[]>> = {
  status: [call('status')],
  doctor: [call('doctor', { status: 1 })],
  discover: [call('discover')],
  'operator init': [call('operator init')],
  'operator whoami': [call('operator whoami')],
  'operator add': [call(`operator add ${KEY} --username ada`)],
  'operator list': [call('operator list')],
  'operator show': [call('operator show ada')],
  'operator grant': [call('operator grant ada --grant deployer:env=dev --yes')],
  'operator rights': [call('operator rights'), call('operator rights ada web-01')],
  login: [call('login')],
  'config show': [call('config show')],
  'profile create': [call('profile create work --url https://orch.test')],
  'profile update': [call('profile update work --url https://orch.test:8443')],
  'profile list': [call('profile list')],
  'profile use': [call('profile use work')],
  'agents list': [call('agents')],
  'agents show': [call('agents show web-01')],
  'agents approve': [call('agents approve 77aa55ee --name web-03 --yes')],
  'agents reject': [call('agents reject web-01 --yes')],
  'agents rename': [call('agents rename web-01 web-09')],
  'agents tag': [call('agents tag web-01 role=db')],
  'agents untag': [call('agents untag web-01 role')],
  'enroll create': [call('enroll create')],
  'enroll list': [call('enroll list')],
  tags: [call('tags')],
  'module new': [call(`module new fresh --dir ${home.path}`)],
  'module validate': [call(`module validate ${site}`)],
  'module check': [call(`module check ${site} --tag role=web --attribute platform=linux`)],
  'module deps': [call(`module deps ${site}`)],
  'module publish': [call(`module publish ${site} --yes`)],
  'module list': [call('module list')],
  'module show': [call('module show site')],
  'module pull': [call(`module pull site --out ${home.path}/pulled`)],
  'module diff': [call(`module diff ${site}`)],
  'module revisions': [call('module revisions site')],
  'module schema': [call('module schema')],
  'values list': [call('values list')],
  'values show': [call('values show prod')],
  'values revisions': [call('values revisions prod')],
  'values diff': [call(`values diff ${values}`)],
  'values check': [call(`values check ${values}`)],
  'values push': [call(`values push ${values} --yes`)],
  'assignments list': [call('assignments list')],
  'assignments show': [call('assignments show web')],
  'assignments create': [call('assignments create web --module site --selector role=web')],
  'assignments edit': [call('assignments edit web --mode manual')],
  'assignments resume': [call('assignments resume web')],
  sync: [call(`sync ${directory} --plan`)],
  plan: [call('plan web-01 -m site', { answers: { planAgent: streamOf(runResult(planned)) } })],
  verify: [call('verify web-01'), call('verify web-01 web-02')],
  drift: [
    call('drift web-01', { answers: { checkDrift: { body: driftDetail(inSync) } } }),
    call('drift web-01 web-02', { answers: { checkDrift: { body: driftDetail(inSync) } } }),
  ],
  'drift list': [call('drift list')],
  'drift show': [call(`drift show ${ulid(7)}`)],
  'drift latest': [call('drift latest web-01')],
  'drift snoozes': [call('drift snoozes')],
  'drift unsnooze': [call(`drift unsnooze ${ulid(1)}`)],
  state: [call('state web-01'), call('state web-01 web-02')],
  impact: [call(`impact ${site}`)],
  facts: [call('facts web-01')],
  metrics: [call('metrics web-01'), call('metrics web-01 --history'), call('metrics web-01 web-02')],
  top: [call('top')],
  'rollouts list': [call('rollouts')],
  'rollouts show': [call(`rollouts show ${ulid(8)}`)],
  'rollouts pause': [call(`rollouts pause ${ulid(8)}`)],
  'rollouts resume': [call(`rollouts resume ${ulid(8)} --yes`)],
  'rollouts cancel': [call(`rollouts cancel ${ulid(8)}`)],
  'ops list': [call('ops')],
  'ops show': [call(`ops show ${ulid(2)}`)],
  'ops cancel': [call(`ops cancel ${ulid(2)}`)],
  'ops output': [call(`ops output ${ulid(1)}`)],
  'ssh-config': [call('ssh-config web-01')],
  'term list': [call('term list')],
  'term show': [call('term show TERM')],
  'term grep': [call('term grep passwd')],
  'secrets set': [call('secrets set db -', { options: { input: 'secret' } })],
  'secrets list': [call('secrets list')],
  'secrets show': [call('secrets show db')],
  'maintenance start': [call('maintenance start --for 1h --reason disks')],
  'maintenance schedule': [call('maintenance schedule --from 2025-03-02T10:00Z --for 1h --reason disks')],
  'maintenance list': [call('maintenance list')],
  'maintenance show': [call('maintenance show ID')],
  'maintenance end': [call('maintenance end ID', { answers: { getMaintenanceWindow: { body: WINDOW } } })],
  'channels list': [call('channels list')],
  'channels show': [call(`channels show ${CHANNEL}`)],
  'channels add': [call('channels add ops --type webhook --to https://hooks.test/x')],
  'channels update': [call(`channels update ${CHANNEL} --name other`)],
  'channels test': [call(`channels test ${CHANNEL}`)],
  'notifications list': [call('notifications list')],
  'audit list': [call('audit')],
  'audit verify': [call('audit verify')],
  'audit prune': [call('audit prune --before 2025-01-01 --yes')],
  'audit retention show': [call('audit retention show')],
  'audit retention set': [call('audit retention set 90')],
  'audit retention disable': [call('audit retention disable')],
  'rollouts retry': [call(`rollouts retry ${ulid(8)} --yes`)],
  'serve install': [call('serve install', { options: { programs } })],
  'serve uninstall': [call('serve uninstall --yes', { options: { programs } })],
  'serve rotate-secrets-key': [call('serve rotate-secrets-key')],
  'serve accept-clock': [call('serve accept-clock --yes')],
  'serve backup': [call('serve backup /b.orchbackup', { options: { programs } })],
  'serve restore': [call('serve restore /b.orchbackup --yes', { options: { programs } })],
  'serve recover-admin': [call(`serve recover-admin ${KEY} --yes`, { options: { programs } })],
  'store copy': [call('store copy /one /two', { options: { programs } })],
  'agent install': [call(`agent install orch.test --orchestrator-key ${KEY}`, { options: { programs } })],
  'agent uninstall': [call('agent uninstall --yes', { options: { programs } })],
  'agent status': [call('agent status', { options: { programs } })],
  'agent leave': [call('agent leave --yes')],
  'agent config-schema': [call('agent config-schema')],
  api: [call('api GET /agents')],
};

const withJson = Object.entries(COMMAND_JSON).flatMap(([path, shape]) =>
  shape === null || ELSEWHERE[path] !== undefined || NOT_RUN.includes(path) ? [] : [path],
);

it.each(withJson)('orch %s', async (path) => {
  const calls = CALLS[path] ?? [];
  expect(calls, 'no call of it is here').not.toEqual([]);
  for (const { argv, answers = {}, options = {}, status = 0 } of calls) {
    api.answer(answers);
    const ran = await runOrch([...argv, '-o', 'json'], {
      ...options,
      env: { ...home.env, ...loggedIn(api), NO_COLOR: '1', ...options.env },
    });
    expect(ran, ran.stderr).toMatchObject({ status });
    expect(ran.stdout).not.toBe('');
  }
  expect(api.violations).toEqual([]);
});

it.each(Object.entries(ELSEWHERE))('orch %s is run in %s.test.ts', (path, suite) => {
  const source = readFileSync(new URL(`${suite}.test.ts`, import.meta.url), 'utf8');
  expect(source).toContain(path.split(' ').at(-1));
  expect(source).toMatch(/'json'|'--json'/);
});

it('are those of all commands', () => {
  const entries = COMMANDS.filter(({ hidden }) => hidden !== true).map(({ path }) => path);
  expect(Object.keys(COMMAND_JSON).sort()).toEqual([...entries].sort());
});
