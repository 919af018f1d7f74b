/** `orch sync`: what a person sees, and what is sent in which order. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { digestOf } from '../../src/cli/modules/reach.js';
import { readSync } from '../../src/cli/sync/sync-files.js';
import type { Assignment } from '../../src/contract/assignments.js';
import { expectGolden, Home, type RunOptions, runOrch, settledText, transcript } from '../support/cli.js';
import { readings, web1 } from '../support/cli-world.js';
import { type Answers, type FakeApi, loggedIn, type Reply, startFakeApi } from '../support/fake-api.js';

let api: FakeApi;
let home: Home;
let site: string;

beforeEach(async () => {
  api = await startFakeApi(readings);
  home = new Home();
  site = home.file('site');
  mkdirSync(site);
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
  const text = transcript(argv, ran).replaceAll(home.path, '~').replaceAll(api.url, 'http://orch.test');
  expectGolden(`sync-${name}`, settledText(text));
  return ran;
}

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(site, name)), { recursive: true });
    writeFileSync(join(site, name), text);
  }
}

const module = (name: string, content: string, path = `/etc/${name}`): string =>
  `name: ${name}\nsupports:\n  - platform: linux\nresources:\n  - resource:\n      file-unix: {path: ${path}, content: "${content}"}\n`;

const assignment = (name: string, selector: string, modules: readonly string[], description = ''): Assignment => ({
  name,
  modules: [...modules],
  selector,
  description: description || null,
  created_at: 0,
  created_by: 'aaaa',
  mode: 'manual',
  stopped_reason: null,
  values: null,
});

const entry = (name: string) => ({ name, uploaded_at: 1_740_000_000, uploaded_by: 'aaaa' });

/** An orchestrator with modules and assignments, which keeps what it is sent. */
function having(modules: Readonly<Record<string, string>>, assignments: readonly Assignment[]) {
  const texts = new Map(Object.entries(modules));
  const assigned = new Map(assignments.map((one) => [one.name, one]));
  const answers: Answers = {
    listModules: () => ({ body: [...texts.keys()].map(entry) }),
    getModule: ({ params: { name = '' } }) => {
      const details = { revision: 3, sha256: digestOf(texts.get(name) ?? ''), definition: {} };
      return { body: { ...entry(name), ...details, content: texts.get(name) ?? '' } };
    },
    getModuleReach: ({ params: { name = '' } }) => ({
      body: { name, sha256: digestOf(texts.get(name) ?? ''), assignments: [], agents: [] },
    }),
    uploadModule: ({ body }) => {
      const { name, content } = body as { name: string; content: string };
      const changed = texts.get(name) !== content;
      texts.set(name, content);
      return { body: { ...entry(name), revision: 4, sha256: digestOf(content), changed, warnings: [] } };
    },
    removeModule: ({ params: { name = '' } }): Reply => {
      texts.delete(name);
      return { status: 204, body: undefined };
    },
    listAssignments: () => ({ body: [...assigned.values()] }),
    getAssignment: ({ params: { name = '' } }) => ({ body: { ...assigned.get(name), agents: [] } }),
    createAssignment: ({ body }) => {
      const { name, selector, modules: names, description } = body as Assignment;
      assigned.set(name, assignment(name, selector, names, description ?? ''));
      return { body: assigned.get(name) };
    },
    updateAssignment: ({ params: { name = '' }, body }) => {
      const { selector, modules: names, description } = body as Assignment;
      assigned.set(name, assignment(name, selector, names, description ?? ''));
      return { body: assigned.get(name) };
    },
    removeAssignment: ({ params: { name = '' } }): Reply => {
      assigned.delete(name);
      return { status: 204, body: undefined };
    },
  };
  api.answer(answers);
  return { texts, assigned };
}

const writes = () => api.requests.filter((request) => !request.startsWith('GET'));

/** Something of everything. */
function world() {
  const stored = having({ same: module('same', 'x'), site: module('site', 'old'), legacy: module('legacy', 'x') }, [
    assignment('base', 'platform=linux', ['same'], 'all of them'),
    assignment('web', 'role=www', ['site']),
    assignment('old', 'role=web', ['legacy']),
  ]);
  write({
    'same.orch.yaml': module('same', 'x'),
    'web/site.orch.yaml': module('site', 'new'),
    'web/nginx.orch.yaml': module('nginx', 'x'),
    'assignments.yaml': `assignments:
  - {name: base, modules: [same], selector: platform=linux, description: all of them}
  - {name: web, modules: [nginx, site], selector: role=web}
`,
    'db/db.assignments.yaml':
      'assignments:\n  - {name: db, modules: [same], selector: role=db, description: the rest}\n',
    'README.md': 'not read',
    '.git/x.orch.yaml': 'not read',
  });
  return stored;
}

describe('orch sync', () => {
  it('shows what it would do, and does nothing', async () => {
    world();
    await golden('plan', ['sync', site, '--plan']);
    await golden('plan-prune', ['sync', site, '--plan', '--prune', '--verbose']);
    expect((await run(['sync', site, '--plan', '--detailed-exitcode'])).status).toBe(2);
    expect(writes()).toEqual([]);
  });

  it('uploads, assigns and deletes in an order in which each finds what it needs', async () => {
    const { texts, assigned } = world();
    await golden('done', ['sync', site, '--prune', '--yes']);
    expect(writes()).toEqual([
      'POST /modules',
      'POST /modules',
      'PUT /assignments/web',
      'POST /assignments',
      'DELETE /assignments/old',
      'DELETE /modules/legacy',
    ]);
    expect([...texts.keys()].sort()).toEqual(['nginx', 'same', 'site']);
    expect([...assigned.keys()].sort()).toEqual(['base', 'db', 'web']);
    await golden('nothing', ['sync', site, '--prune']);
    expect((await run(['sync', site, '--detailed-exitcode'])).status).toBe(0);
    expect(writes()).toHaveLength(6);
  });

  it('takes a description away that is in no file', async () => {
    const { assigned } = having({ same: module('same', 'x') }, [assignment('base', 'a=b', ['same'], 'gone')]);
    write({
      'same.orch.yaml': module('same', 'x'),
      'assignments.yaml': 'assignments: [{name: base, modules: [same], selector: a=b}]\n',
    });
    expect((await run(['sync', site])).status).toBe(0);
    expect(assigned.get('base')?.description).toBeNull();
  });

  it('tells programs each action', async () => {
    world();
    const { stdout } = await run(['sync', site, '--plan', '-o', 'json']);
    const body = JSON.parse(stdout) as { actions: readonly object[] };
    expect(body).toMatchObject({
      has_changes: true,
      extra: [
        { kind: 'assignment', name: 'old' },
        { kind: 'module', name: 'legacy' },
      ],
    });
    const path = join(site, 'web/nginx.orch.yaml');
    expect(body.actions[0]).toEqual({ kind: 'module', action: 'create', name: 'nginx', path, status: 'planned' });
    const done = JSON.parse((await run(['sync', site, '--prune', '--yes', '-o', 'json'])).stdout);
    expect(done.actions.map(({ status }: { status: string }) => status)).toEqual(Array(6).fill('done'));
  });

  it('asks before it deletes, naming everything, and never waits without a terminal', async () => {
    world();
    const refused = await golden('prune-no-terminal', ['sync', site, '--prune']);
    expect(refused.status).toBe(64);
    const no = await run(['sync', site, '--prune'], {
      columns: 80,
      answers: [{ at: 'Sync, with 2 deletions?', type: 'n\r' }],
    });
    expect(no.status).toBe(1);
    expect(no.stderr).toContain('assignment old, which matches 2 agents now');
    expect(writes()).toEqual([]);
  });

  it('changes no assignment that was changed since it was planned', async () => {
    const { assigned } = world();
    const changed = { ...assigned.get('web'), selector: 'role=shop', agents: [] };
    api.answer({ getAssignment: { body: changed } });
    const { status, stderr } = await run(['sync', site, '--yes']);
    expect(status).toBe(6);
    expect(stderr).toContain(
      'assignment web could not be updated: it was changed since this sync was planned: selector from role=www to role=shop',
    );
    expect(stderr).toContain('look at the plan again: orch sync DIR --plan');
    expect(assigned.get('web')?.selector).toBe('role=www');
  });

  it('says how far it came when something fails, and goes on from there', async () => {
    world();
    api.answer({ createAssignment: { problem: 'store_unavailable', detail: 'the disk is full' } });
    const failed = await golden('failed', ['sync', site, '--prune', '--yes']);
    expect(failed.status).toBe(6);
    expect(writes()).toHaveLength(4);
    const told = await run(['sync', site, '--prune', '--yes', '-o', 'json']);
    expect(JSON.parse(told.stdout || told.stderr)).toMatchObject({
      code: 'store_unavailable',
      actions: [
        { name: 'db', status: 'failed' },
        { name: 'old', status: 'not_done' },
        { name: 'legacy', status: 'not_done' },
      ],
    });
  });
});

describe('what orch sync refuses before it does anything', () => {
  afterEach(() => expect(writes()).toEqual([]));

  it('every mistake of every file at once', async () => {
    write({
      'a.orch.yaml': module('one', 'x'),
      'b.orch.yaml': module('one', 'y'),
      'c.orch.yaml': 'name: c\nsupports: {}\n',
      'assignments.yaml': 'assignments:\n  - {name: web, modules: [], selector: "role=(a)"}\n',
      'x.assignments.yaml': 'assignments:\n  - {name: db, modules: [one], selector: role=db}\n',
      'y.assignments.yaml': 'assignments:\n  - {name: db, modules: [one], selector: role=db}\n',
    });
    expect((await golden('bad', ['sync', site])).status).toBe(1);
    expect(api.requests).toEqual([]);
  });

  it.each([['site.orch.yml'], ['assignment.yaml'], ['web.assignments.yml'], ['assignments.yml']])(
    'a file named %s, which would be left out',
    async (name) => {
      write({ [name]: '', 'a.orch.yaml': module('a', 'x') });
      const ran = await run(['sync', site]);
      expect(ran.status).toBe(64);
      expect(ran.stderr).toContain(`${name} would be left out because of its name`);
    },
  );

  it('a link to a directory, whose modules --prune would delete', async () => {
    having({ behind: module('behind', 'x') }, []);
    mkdirSync(home.file('elsewhere'));
    writeFileSync(home.file('elsewhere', 'behind.orch.yaml'), module('behind', 'x'));
    write({ 'a.orch.yaml': module('a', 'x') });
    symlinkSync(home.file('elsewhere'), join(site, 'linked'));
    for (const argv of [
      ['sync', site, '--prune', '--yes'],
      ['module', 'validate', site],
    ]) {
      const ran = await run(argv);
      expect(ran.status).toBe(64);
      expect(ran.stderr).toContain('linked is a link to a directory, and what lies behind it would be left out');
    }
    rmSync(home.file('elsewhere'), { recursive: true });
    expect((await run(['sync', site, '--prune', '--yes'])).stderr).toContain('linked is a link to nothing');
  });

  it('what is no regular file, while a link to one is taken', async () => {
    writeFileSync(home.file('real'), module('linked', 'x'));
    symlinkSync(home.file('real'), join(site, 'linked.orch.yaml'));
    expect((await run(['module', 'validate', site])).status).toBe(0);
    execFileSync('mkfifo', [join(site, 'pipe.orch.yaml')]);
    const writer = spawn('sh', ['-c', 'cat "$0" >"$1"', home.file('real'), join(site, 'pipe.orch.yaml')]);
    onTestFinished(() => void writer.kill());
    for (const argv of [
      ['sync', site],
      ['module', 'validate', site],
    ]) {
      const ran = await run(argv);
      expect(ran.status).toBe(64);
      expect(ran.stderr).toContain('pipe.orch.yaml cannot be read: it is a pipe or a device, not a file');
    }
  });

  it('a directory without anything, a file, and what is not there', async () => {
    write({ 'README.md': '' });
    expect((await run(['sync', site, '--prune', '--yes'])).stderr).toContain('holds no file that ends in .orch.yaml');
    expect((await run(['sync', join(site, 'README.md')])).stderr).toContain('a sync takes a directory');
    expect((await run(['sync', join(site, 'none')])).status).toBe(64);
  });

  it('assignments of modules that they will not find', async () => {
    having({ other: module('other', 'x') }, []);
    write({
      'a.orch.yaml': module('a', 'x'),
      'assignments.yaml': 'assignments:\n  - name: web\n    modules: [a, nginx, other]\n    selector: role=web\n',
    });
    expect((await golden('missing', ['sync', site])).status).toBe(1);
    expect((await golden('missing-prune', ['sync', site, '--prune'])).status).toBe(1);
  });

  it('modules that do not go together on an agent', async () => {
    having({ other: module('other', 'x', '/etc/shared') }, [assignment('base', 'platform=linux', ['other'])]);
    write({
      'a.orch.yaml': module('a', 'y', '/etc/shared'),
      'assignments.yaml': 'assignments:\n  - {name: web, modules: [a], selector: role=web}\n',
    });
    expect((await golden('conflict', ['sync', site])).status).toBe(1);
    // The assignment of the other one goes with --prune.
    expect((await run(['sync', site, '--plan', '--prune'])).status).toBe(0);
    // No agent has both now.
    api.answer({ listAgents: { body: [{ ...web1, tags: {} }] } });
    expect((await run(['sync', site, '--plan'])).status).toBe(0);
  });

  it('not what a tag may bring later', async () => {
    having({}, []);
    write({
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the module language
      'a.orch.yaml': module('a', '${{ tags.env }}'),
      'assignments.yaml': 'assignments:\n  - {name: web, modules: [a], selector: role=web}\n',
    });
    const ran = await run(['sync', site, '--plan']);
    expect(ran.status).toBe(0);
    expect(ran.stderr).toContain('the agent has no tag "env" (on web-01, web-02)');
  });
});

describe('the example', () => {
  it('is a directory that can be synced', () => {
    const { modules, assignments } = readSync(fileURLToPath(new URL('../../examples/site', import.meta.url)));
    expect(modules.map(({ name }) => name)).toEqual(['motd', 'web']);
    expect(assignments.map(({ name }) => name)).toEqual(['base', 'web']);
  });
});
