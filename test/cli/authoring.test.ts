/** Writing modules, and plans that are kept in a file: what a person sees, and what is sent. */
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RECIPE_NAMES, STARTER_KINDS, starterOf } from '../../src/cli/modules/starters.js';
import type { State } from '../../src/contract/operations.js';
import type { LocalMachine } from '../../src/programs/local.js';
import { MODULE_KINDS } from '../../src/resources/catalogue.js';
import { expectGolden, Home, type RunOptions, runOrch, settledText, transcript } from '../support/cli.js';
import {
  applied,
  appliedStream,
  missed,
  module as moduleAnswer,
  planned,
  readings,
  reported,
  runResult,
  state,
  streamed,
  streamOf,
  ulid,
  web1,
  web2,
} from '../support/cli-world.js';
import { type Answers, type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';

let api: FakeApi;
let home: Home;

beforeEach(async () => {
  api = await startFakeApi({ ...readings, listAssignments: { body: [] } });
  home = new Home();
});
afterEach(async () => {
  await api.stop();
  home.dispose();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(argv, { ...options, env: { ...loggedIn(api), ...home.env, NO_COLOR: '1', ...options.env } });

async function golden(name: string, argv: readonly string[], options: RunOptions = {}) {
  const ran = await run(argv, options);
  const shown = argv.map((word) => word.replace(home.path, '~'));
  const text = transcript(shown, ran).replaceAll(home.path, '~').replaceAll(api.url, 'http://orch.test');
  expectGolden(name, settledText(text));
  return ran;
}

const write = (name: string, text: string): string => {
  const path = home.file(name);
  writeFileSync(path, text);
  return path;
};

/** Answers of a fleet in which web-01 has a module on trial. */
function tryingOut(module: string, content: string): Answers {
  const sha256 = 'e'.repeat(64);
  const trial = { operation_id: ulid(3), modules: [{ module, sha256 }], since: 1, by: web1.node_id };
  const onTrial = { ...web1, standing: 'on_trial', trial } as const;
  return {
    listAgents: { body: [onTrial, web2] },
    getTrial: { body: { operation_id: ulid(3), modules: [{ module, sha256, replaces: null, content }] } },
  };
}

const SITE = `name: site
supports:
  - platform: linux
resources:
  - id: conf
    variants:
      - when: {distro: debian}
        resource:
          file-unix: {path: /etc/site.conf, content: "port 80\\n"}
      - when: {distro: debian, tag.role: web}
        resource:
          file-unix: {path: /etc/site.conf, content: "port 8080\\n"}
  - id: dir
    resource:
      directory-unix: {path: /srv/site}
  - name: page
    depends_on: [conf]
    resource:
      file-unix: {path: /srv/site/index.html, content: "\${{ tags.role }} \${{ secrets.KEY }}\\n"}
`;

describe('orch module new', () => {
  it('writes a module that is valid, with the schema beside it, and never over a file', async () => {
    await golden('new', ['module', 'new', 'motd', '--dir', home.path, '--distro', 'debian', '--path', '/etc/motd']);
    const path = home.file('motd.orch.yaml');
    expectGolden('new-file', readFileSync(path, 'utf8'));
    expect(JSON.parse(readFileSync(home.file('orch-module.schema.json'), 'utf8'))).toHaveProperty('title');
    expect((await run(['module', 'validate', path])).status).toBe(0);
    const again = await golden('new-again', ['module', 'new', 'motd', '--dir', home.path]);
    expect(again.status).toBe(64);
    expect((await run(['module', 'new', '-x'])).status).toBe(64);
  });

  it.each([
    ['true', 'directory-unix', '/srv/a: b'],
    ['1e3', 'file-unix', '/srv/#x'],
    ['a.b-c_d', 'file-unix', '/etc/"x"'],
    ['win', 'file-windows', 'C:\\a b'],
    ['windir', 'directory-windows', 'C:\\x'],
  ])('is valid for the name %s, %s at %s', async (name, kind, path) => {
    const argv = ['module', 'new', name, '--dir', home.path, '--kind', kind, '--path', path, '--schema', 'x\ny: z'];
    expect((await run(argv)).status).toBe(0);
    expect(await run(['module', 'validate', home.file(`${name}.orch.yaml`), '-o', 'name'])).toMatchObject({
      status: 0,
      stdout: `${name}\n`,
    });
  });

  it.each(STARTER_KINDS.flatMap((kind) => starterOf(kind).platforms.map((platform) => [kind, platform] as const)))(
    'is valid with a first resource of the kind %s on %s',
    async (kind, platform) => {
      const options = ['--kind', kind, '--platform', platform];
      const made = await run(['module', 'new', 'x', '--dir', home.path, '--schema', 's', ...options]);
      expect(made).toMatchObject({ status: 0, stderr: '' });
      expect(await run(['module', 'validate', home.file('x.orch.yaml'), '-q'])).toMatchObject({ status: 0 });
    },
  );

  it('has a starter for every kind', () => {
    expect([...STARTER_KINDS].sort()).toEqual([...MODULE_KINDS.keys()].sort());
  });

  it.each(RECIPE_NAMES)('is valid with the recipe %s', async (recipe) => {
    const made = await run(['module', 'new', recipe, '--dir', home.path, '--recipe', recipe]);
    expect(made).toMatchObject({ status: 0 });
    const checked = await run(['module', 'validate', home.file(`${recipe}.orch.yaml`), '-o', 'name']);
    expect(checked).toEqual({ status: 0, stdout: `${recipe}\n`, stderr: '' });
  });

  it('refuses options that do not go together', async () => {
    const both = await run(['module', 'new', 'x', '--dir', home.path, '--recipe', 'timer', '--kind', 'script']);
    expect(both).toMatchObject({
      status: 64,
      stderr: expect.stringContaining('--recipe and --kind exclude each other'),
    });
    const path = await run(['module', 'new', 'x', '--dir', home.path, '--kind', 'user-unix', '--path', '/x']);
    expect(path).toMatchObject({ status: 64, stderr: expect.stringContaining('user-unix has no path') });
    expect(existsSync(home.file('x.orch.yaml'))).toBe(false);
  });

  it('writes what fits the platform, and refuses what does not', async () => {
    const made = await run(['module', 'new', 'win', '--dir', home.path, '--platform', 'windows']);
    expect(made.status).toBe(0);
    expect(readFileSync(home.file('win.orch.yaml'), 'utf8')).toContain('file-windows:\n      path: "C:\\\\ProgramData');
    const unfit = await run(['module', 'new', 'x', '--dir', home.path, '--platform', 'windows', '--kind', 'file-unix']);
    expect(unfit).toMatchObject({ status: 64 });
    expect(unfit.stderr).toContain('file-unix is not for windows');
    expect((await run(['module', 'new', 'x', '--dir', home.path, '--path', 'relative'])).status).toBe(1);
    expect(existsSync(home.file('x.orch.yaml'))).toBe(false);
  });

  it('asks on a terminal for what is left open', async () => {
    const ran = await run(['module', 'new', 'motd', '--dir', home.path], {
      columns: 80,
      answers: [
        { at: 'Operating system', type: '\r' },
        { at: 'First resource', type: '\x1b[B\r' },
        { at: 'Distribution', type: 'debian\r' },
        { at: 'Its path', type: '\r' },
      ],
    });
    expect(ran.status).toBe(0);
    const text = readFileSync(home.file('motd.orch.yaml'), 'utf8');
    expect(text).toContain('platform: linux\n    distro: debian');
    expect(text).toContain('directory-unix:\n      path: /etc/motd\n');
  });
});

describe('orch module deps', () => {
  it('shows a tree, and a graph for Graphviz', async () => {
    const path = write('site.orch.yaml', SITE);
    await golden('deps', ['module', 'deps', path]);
    await golden('deps-dot', ['module', 'deps', path, '-o', 'dot']);
    expect((await run(['module', 'list', '-o', 'dot'])).status).toBe(64);
    const json = await run(['module', 'deps', path, '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      name: 'site',
      resources: [{ id: 'conf', after: [] }, { id: 'dir' }, { after: [{ to: 0 }, { to: 1, reasons: ['lies in'] }] }],
    });
  });
});

describe('orch module check', () => {
  const other = 'name: other\nsupports:\n  - platform: linux\nresources:\n';
  const clash = `${other}  - resource:\n      file-unix: {path: /etc/site.conf, content: "x\\n"}\n`;

  it('names conflicts with their places, for the agents of the orchestrator', async () => {
    mkdirSync(home.file('m'));
    write('m/site.orch.yaml', SITE);
    write('m/other.orch.yaml', clash);
    write('m/mac.orch.yaml', 'name: mac\nsupports:\n  - platform: macos\nresources: []\n');
    expect((await golden('check-agents', ['module', 'check', home.file('m')])).status).toBe(1);
  });

  it('needs no orchestrator for an agent that is described', async () => {
    const files = [write('site.orch.yaml', SITE), write('other.orch.yaml', `${other}  []\n`)];
    const facts = ['--attribute', 'platform=linux', '--attribute', 'distro=debian', '--tag', 'role=web'];
    const away = { env: { ORCH_URL: 'http://127.0.0.1:9' } };
    expect((await golden('check-described', ['module', 'check', ...files, ...facts], away)).status).toBe(0);
    const tagless = await golden('check-tagless', ['module', 'check', ...files, ...facts.slice(0, 4)], away);
    expect(tagless.status).toBe(1);
    const unreachable = await run(['module', 'check', ...files], away);
    expect(unreachable.status).toBe(69);
    expect(unreachable.stderr).toContain('--attribute platform=linux');
    expect((await run(['module', 'check', ...files, '--attribute', 'x'], away)).status).toBe(64);
  });
});

describe('orch module diff and revisions', () => {
  it('compares files with what the orchestrator has', async () => {
    const path = write('site.orch.yaml', SITE);
    api.answer({ getModule: { body: { ...moduleAnswer, content: SITE.replace('port 80\\n', 'port 81\\n') } } });
    await golden('diff', ['module', 'diff', path]);
    api.answer({ getModule: { body: { ...moduleAnswer, content: SITE } } });
    await golden('diff-same', ['module', 'diff', path, '--revision', '3']);
    api.answer({ getModule: { problem: 'module_not_found', detail: 'there is no module "site"' } });
    const fresh = JSON.parse((await run(['module', 'diff', path, '--json'])).stdout);
    expect(fresh).toMatchObject({ name: 'site', revision: null, has_changes: true });
    expect((await run(['module', 'diff', path, '--revision', '9'])).status).toBe(1);
  });

  it('shows a text that is all another as one replaced by the other', async () => {
    const long = (word: string) => `${SITE}${Array.from({ length: 6000 }, (_, at) => `# ${word} ${at}\n`).join('')}`;
    api.answer({ getModule: { body: { ...moduleAnswer, content: long('old') } } });
    const { stdout, status } = await run(['module', 'diff', write('site.orch.yaml', long('new'))]);
    expect(status).toBe(0);
    expect(stdout).toContain('-# old 5999');
    expect(stdout).toContain('+# new 0');
  });

  it('lists revisions', async () => {
    const revision = (number: number) => {
      const { name, uploaded_at, uploaded_by, sha256 } = moduleAnswer;
      return { name, uploaded_at, uploaded_by, sha256, revision: number };
    };
    api.answer({ listModuleRevisions: { body: { revisions: [revision(3), revision(2)] } } });
    await golden('revisions', ['module', 'revisions', 'site']);
    expect((await run(['module', 'revisions', 'site', '-o', 'name'])).stdout).toBe('3\n2\n');
  });
});

describe('orch explain', () => {
  const conf = { module: 'site', kind: 'file-unix', identity: '/etc/site.conf', applied_at: 1, operation_id: ulid(1) };
  const believed: State = { ...state, applied: [{ ...conf, origin: 'created' }, ...state.applied] };
  const answers: Answers = {
    getModule: { body: { ...moduleAnswer, content: SITE } },
    getState: { body: believed },
    listAssignments: {
      body: [
        {
          name: 'web-servers',
          modules: ['site'],
          selector: 'tag.role=web',
          description: null,
          created_at: 1,
          created_by: 'ada',
          mode: 'manual',
          stopped_reason: null,
          values: null,
        },
        {
          name: 'dbs',
          modules: ['site'],
          selector: 'tag.role=db',
          description: null,
          created_at: 1,
          created_by: 'ada',
          mode: 'manual',
          stopped_reason: null,
          values: null,
        },
      ],
    },
  };

  it('names module, variant, line, assignment and apply', async () => {
    api.answer(answers);
    await golden('explain', ['explain', 'web-01', 'file-unix', '/etc/site.conf']);
    await golden('explain-gone', ['explain', 'web-01', '/srv']);
    const json = JSON.parse((await run(['explain', 'web-01', 'conf', '--json'])).stdout);
    expect(json.resources[0]).toMatchObject({
      assignments: ['web-servers'],
      declared: [{ module: 'site', revision: 3, variant: { number: 2, of: 2 } }],
      applied: { origin: 'created' },
    });
    expect((await golden('explain-unknown', ['explain', 'web-01', '/etc/none'])).status).toBe(1);
  });

  it('names the text that the agent has on trial, and no revision', async () => {
    const text = `${SITE}  - id: tried\n    resource:\n      file-unix: {path: /etc/tried.conf, content: "x\\n"}\n`;
    api.answer({ ...answers, ...tryingOut('site', text) });
    await golden('explain-trial', ['explain', 'web-01', '/etc/tried.conf']);
    const json = JSON.parse((await run(['explain', 'web-01', 'conf', '--json'])).stdout);
    expect(json.resources[0].declared).toMatchObject([{ module: 'site', revision: null }]);
  });
});

describe('a plan in a file', () => {
  const hash = (letter: string) => `${letter.repeat(64)}.${letter.repeat(64)}`;
  const planOf = (agent: typeof web1, letter: string) =>
    reported(agent, runResult(planned, { plan_hash: hash(letter) }));
  const plan = async (path: string) => {
    api.answer({ planRollout: streamed([planOf(web1, 'c'), planOf(web2, 'd')]) });
    return run(['plan', 'web-01', 'web-02', '-m', 'site', '--out', path]);
  };
  const done = (agent: typeof web1) => reported(agent, runResult(applied, { operation_id: ulid(1), plan_hash: null }));

  it('is applied to its agents, each with its own hash', async () => {
    const path = home.file('next.orchplan');
    const made = await plan(path);
    expect(made.status).toBe(0);
    expect(made.stderr).toContain(`Apply exactly this with: orch apply ${path}`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const sent: unknown[] = [];
    api.answer({
      applyRollout: ({ body }) => {
        sent.push(body);
        return appliedStream([done(web1), done(web2)]);
      },
    });
    expect((await golden('apply-plan-no-terminal', ['apply', path])).status).toBe(64);
    expect((await run(['apply', path, '--yes', '--canary', '1'])).status).toBe(0);
    expect(sent).toEqual([
      {
        selector: null,
        agents: [web1.node_id, web2.node_id],
        modules: ['site'],
        concurrency: null,
        canary: 1,
        max_failures: null,
        progress: false,
        allow_removals: null,
        expect: { [web1.node_id]: hash('c'), [web2.node_id]: hash('d') },
      },
    ]);
    const asked = await run(['apply', path], { columns: 80, answers: [{ at: 'Apply it', type: 'n\r' }] });
    expect(asked.stderr).toContain('/etc/old.conf');
    expect(sent).toHaveLength(1);
  });

  it('of a single agent is applied with its hash', async () => {
    const path = home.file('one.orchplan');
    api.answer({ planAgent: streamOf(runResult(planned, { plan_hash: hash('c') })) });
    expect((await run(['plan', 'web-01', '-m', 'site', '--out', path])).status).toBe(0);
    const sent: unknown[] = [];
    api.answer({
      applyAgent: ({ body }) => {
        sent.push(body);
        return streamOf(runResult(applied, { operation_id: ulid(1), plan_hash: null }));
      },
    });
    expect((await run(['apply', path, '--yes'])).status).toBe(0);
    expect(sent).toEqual([{ modules: ['site'], allow_removals: null, expect: hash('c') }]);
  });

  it('is refused where something has changed since', async () => {
    const path = home.file('next.orchplan');
    await plan(path);
    const stale = (agent: typeof web1) =>
      missed(agent, 'failed', 'plan_stale', 'what is to be applied is no longer what the plan showed');
    api.answer({ applyRollout: appliedStream([stale(web1), stale(web2)]) });
    expect((await golden('apply-plan-stale', ['apply', path, '--yes'])).status).toBe(6);
    api.answer({ applyRollout: appliedStream([done(web1), stale(web2)]) });
    expect((await run(['apply', path, '--yes'])).status).toBe(3);
  });

  it('is refused by another orchestrator, and when it cannot be trusted or read', async () => {
    const path = home.file('next.orchplan');
    await plan(path);
    chmodSync(path, 0o666);
    const open = await run(['apply', path, '--yes']);
    expect(open).toMatchObject({ status: 1 });
    expect(open.stderr).toContain('can be changed by other users');
    chmodSync(path, 0o600);
    api.answer({
      getStatus: {
        body: {
          status: 'ok',
          protocol_version: 1,
          public_key: 'e'.repeat(64),
          version: '0.1.0',
          reasons: [],
        },
      },
    });
    expect((await golden('apply-plan-elsewhere', ['apply', path, '--yes'])).status).toBe(1);
    for (const text of ['', '{}', '{"orchplan": 3}', '[]']) {
      const broken = await run(['apply', write('x.orchplan', text), '--yes']);
      expect(broken).toMatchObject({ status: 1 });
      expect(broken.stderr).toContain('holds no plan');
    }
    const saved = JSON.parse(readFileSync(path, 'utf8'));
    saved.agents[1].modules = ['base'];
    const mixed = await run(['apply', write('mixed.orchplan', JSON.stringify(saved)), '--yes']);
    expect(mixed.stderr).toContain('its agents have different modules');
    expect((await run(['apply', home.file('none.orchplan'), '--yes'])).status).toBe(64);
    expect((await run(['apply', path, 'web-01', '--yes'])).status).toBe(64);
    expect((await run(['apply', path, '-m', 'site', '--yes'])).status).toBe(64);
    expect((await run(['plan', 'web-01', '-m', 'site', '--out', 'plan.json'])).status).toBe(64);
    expect(api.requests.filter((request) => request.includes('/apply'))).toEqual([]);
  });

  it('leaves agents out that could not be planned, and is not written without any', async () => {
    const path = home.file('next.orchplan');
    const offline = (agent: typeof web1) => missed(agent, 'unreachable', 'agent_not_connected', 'it is not connected');
    api.answer({ planRollout: streamed([planOf(web1, 'c'), offline(web2)]) });
    const ran = await run(['plan', 'web-01', 'web-02', '-m', 'site', '--out', path]);
    expect(ran.status).toBe(5);
    expect(ran.stderr).toContain('web-02 could not be planned');
    expect(JSON.parse(readFileSync(path, 'utf8')).agents).toHaveLength(1);
    api.answer({ planRollout: streamed([offline(web1), offline(web2)]) });
    await run(['plan', 'web-01', 'web-02', '-m', 'site', '--out', home.file('none.orchplan')]);
    expect(existsSync(home.file('none.orchplan'))).toBe(false);
  });
});

describe('a directory of files with other endings', () => {
  it('is taken with a flag, which is named when there is nothing else in it', async () => {
    const text = (name: string) => `name: ${name}\nsupports: [{platform: linux}]\nresources: []\n`;
    mkdirSync(home.file('other/deep'), { recursive: true });
    writeFileSync(home.file('other/a.yaml'), text('a'));
    writeFileSync(home.file('other/deep/b.yml'), text('b'));
    const without = await run(['module', 'validate', home.file('other')]);
    expect(without.status).toBe(64);
    expect(without.stderr).toContain('--any-yaml');
    const ran = await run(['module', 'validate', home.file('other'), '--any-yaml', '-o', 'name']);
    expect(ran).toMatchObject({ status: 0, stdout: 'a\nb\n' });
  });
});

describe('--local on a terminal', () => {
  const machine = (dataDir: string, seen: unknown[]): LocalMachine => {
    const outcome = { end: 'succeeded', error: null, results: [] } as const;
    return {
      dataDir,
      hostname: 'laptop',
      attributes: { platform: 'linux', distro: 'debian' },
      facts: { parts: {}, own: {} },
      packageVersions: async () => ({}),
      newId: () => ulid(5),
      openEngine: () => ({
        applies: [],
        loss: null,
        plan: async () => ({
          ...outcome,
          observed: 'f'.repeat(64),
          results: planned.slice(1, 2).map((result, index) => ({ index, result, existed: false })),
        }),
        apply: async (_content, { expect: expected }) => {
          seen.push(expected);
          return { ...outcome, end: 'refused', error: { code: 'plan_stale', message: 'the machine has changed' } };
        },
        drift: async () => outcome,
        acknowledge: () => undefined,
      }),
    };
  };

  it('asks, and applies only what the plan saw', async () => {
    const seen: unknown[] = [];
    const path = write('site.orch.yaml', 'name: site\nsupports:\n  - platform: linux\nresources: []\n');
    const programs = { local: async () => machine(home.file('data'), seen) };
    const argv = ['apply', '--local', '-f', path];
    const no = await run(argv, { programs, columns: 80, answers: [{ at: 'Apply this to laptop', type: 'n\r' }] });
    expect(no.status).toBe(1);
    expect(seen).toEqual([]);
    const yes = await run(argv, { programs, columns: 80, answers: [{ at: 'Apply this to laptop', type: 'y\r' }] });
    expect(yes.status).toBe(6);
    expect(seen).toEqual(['f'.repeat(64)]);
    expect(existsSync(home.file('data', 'state.json'))).toBe(false);
  });
});

describe('orch impact', () => {
  const stored = SITE.replace('port 8080', 'port 80');
  const answers: Answers = {
    getModule: { body: { ...moduleAnswer, content: stored } },
    getState: ({ params }) => ({
      body: params.node_id === web1.node_id || params.node_id === web2.node_id ? state : { ...state, applied: [] },
    }),
  };

  it('tells which agents change, and how', async () => {
    api.answer(answers);
    const path = write('site.orch.yaml', SITE);
    expect((await golden('impact', ['impact', path])).status).toBe(0);
    await golden('impact-markdown', ['impact', path, '--format', 'markdown']);
    const json = await run(['impact', path, '--format', 'json']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      has_changes: true,
      agents: [{ name: 'web-01' }, { name: 'web-02' }],
    });
    await golden('impact-none', ['impact', write('other.orch.yaml', SITE.replace('name: site', 'name: other'))]);
  });

  it('compares an agent on trial with the text of its trial', async () => {
    api.answer({ ...answers, ...tryingOut('site', SITE) });
    const path = write('site.orch.yaml', SITE);
    const { agents } = JSON.parse((await run(['impact', path, '--format', 'json'])).stdout);
    expect(agents).toMatchObject([
      { name: 'web-01', on_trial: true, changes: [] },
      { name: 'web-02', on_trial: false, changes: [{ identity: '/etc/site.conf' }] },
    ]);
    await golden('impact-trial', ['impact', write('other.orch.yaml', SITE.replace('8080', '8081'))]);
  });

  it('ends with 1 when an agent could not be given the files', async () => {
    api.answer(answers);
    const path = write('site.orch.yaml', SITE.replace('tags.role', 'tags.none'));
    expect((await golden('impact-refused', ['impact', path])).status).toBe(1);
  });
});
