/** A secret from the operator's terminal to a file on a machine, with real processes: it is there, and nowhere else. */
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { DriftDetail, RunResult } from '../../src/contract/runs.js';
import type { Secret } from '../../src/contract/secrets.js';
import { type Finished, type Ready, type Running, Sandbox, until } from '../support/orch.js';
import { describeOnSqlite } from '../support/store.js';
import { StoreLab } from '../support/store-lab.js';

const VALUE = 'Tr0ub4dor&3/ünï"$&';
const NEXT = 'c0rrect-H0rse+batt3ry';
const sandbox = new Sandbox();
const site = sandbox.path('site');
const file = join(site, 'app.conf');
let server: Running;
let agent: Running;
let ready: Ready;
let node: string;
/** Everything that any command has printed. */
let printed = '';

const moduleText = (withSecret: boolean) => `name: app
supports:
  - platform: linux
resources:
  - id: dir
    resource:
      directory-unix: {path: ${site}}
${
  withSecret
    ? `  - depends_on: [dir]
    resource:
      file-unix:
        path: ${file}
        content: "user=app\\npassword=\${{ secrets.DB_PASSWORD }}\\n"
`
    : ''
}`;

async function orch(args: readonly string[], input?: string): Promise<Finished> {
  const finished = await sandbox.orch(args, input === undefined ? {} : { input });
  printed += finished.stdout + finished.stderr;
  return finished;
}

async function json<T>(args: readonly string[]): Promise<T> {
  const { status, stdout, stderr } = await orch([...args, '-o', 'json']);
  if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}:\n${stderr}${stdout}`);
  return JSON.parse(stdout);
}

/** Every file below a directory with its bytes as text. */
const filesBelow = (directory: string): readonly (readonly [string, string])[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => [join(entry.parentPath, entry.name), readFileSync(join(entry.parentPath, entry.name), 'latin1')]);

/** Raw, as JSON, base64 at each of its three places, hex, and as in a URL. */
function formsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value);
  const shifted = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    return text.slice(Math.ceil((shift * 8) / 6), -1);
  });
  const plain = [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value), bytes.toString('hex')];
  return [...plain.map((form) => Buffer.from(form).toString('latin1')), ...shifted];
}

function expectNowhere(value: string): void {
  const places = [
    ...filesBelow(sandbox.path('serve')),
    ...filesBelow(sandbox.path('agent')),
    ['the store', new StoreLab(sandbox.path('serve', 'orch.db')).bytes()] as const,
    ['what was printed', Buffer.from(printed).toString('latin1')] as const,
    ['the log of the orchestrator', Buffer.from(server.output()).toString('latin1')] as const,
    ['the log of the agent', Buffer.from(agent.output()).toString('latin1')] as const,
  ];
  expect(places.length).toBeGreaterThan(5);
  for (const form of formsOf(value)) {
    expect(places.filter(([, text]) => text.includes(form)).map(([place]) => place)).toEqual([]);
  }
}

const connected = async () => (await json<Agent[]>(['agents', 'list'])).some((one) => one.connected);

async function setUp(): Promise<void> {
  expect((await orch(['operator', 'init'])).status).toBe(0);
  ({ server, ready } = await sandbox.serve(['--log-level', 'debug']));
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await orch(create)).toMatchObject({ status: 0 });
  expect(await orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  agent = sandbox.start([
    'agent',
    'connect',
    ready.agent_address,
    '--orchestrator-key',
    ready.public_key,
    '--data-dir',
    sandbox.path('agent'),
  ]);
  await until(async () => (await json<Agent[]>(['agents', 'list'])).length === 1, 'the agent waits');
  node = ((await json<Agent[]>(['agents', 'list']))[0] as Agent).node_id;
  await json(['agents', 'approve', node, '--name', 'web-01', '--yes']);
  await until(connected, 'the agent is connected');
  writeFileSync(sandbox.path('app.orch.yaml'), moduleText(true));
}

beforeAll(setUp);

afterAll(async () => {
  await sandbox.dispose();
});

describe('a secret', () => {
  it('that does not exist fails the plan with its name', async () => {
    const plan = await orch(['plan', 'web-01', '-f', sandbox.path('app.orch.yaml')]);
    expect(plan.status).toBe(1);
    expect(plan.stderr).toContain('the secret "DB_PASSWORD" does not exist');
  });

  it('is set from standard input and shown without its value', async () => {
    expect(
      await orch(['secrets', 'set', 'DB_PASSWORD', '-', '--description', 'of the shop'], `${VALUE}\n`),
    ).toMatchObject({
      status: 0,
    });
    const secrets = await json<Secret[]>(['secrets']);
    expect(secrets).toMatchObject([{ name: 'DB_PASSWORD', description: 'of the shop', expires_at: null }]);
    expect((await orch(['secrets', 'show', 'DB_PASSWORD'])).stdout).toContain('every approved agent');
  });

  it.each([
    [['DB_PASSWORD'], 64, 'there is no terminal to ask on'],
    [['DB_PASSWORD', '--value', 'x', '--file', 'y'], 64, 'give the value only once'],
    [['DB_PASSWORD', 'x'], 64, 'a value is not given as a word of its own'],
    [['DB_PASSWORD', '-', '--expires', '2020-01-01'], 64, '--expires 2020-01-01 is over already'],
    [['DB_PASSWORD', '--expires', 'soon'], 64, '--expires takes a time, not "soon"'],
    [['DB_PASSWORD', '--expires', '1d', '--clear-expires'], 64, 'exclude each other'],
    [['DB_PASSWORD', '--file', 'missing'], 64, 'missing does not exist'],
    [['DB PASSWORD', '--value', 'anything'], 1, '"DB PASSWORD" cannot be the name of a secret'],
    [['DB_PASSWORD', '--restrict-nodes', 'nobody'], 1, 'there is no agent "nobody"'],
    [['DB_PASSWORD', '-'], 1, '/value is empty'],
  ])('is not set with %j', async (args, status, message) => {
    const refused = await orch(['secrets', 'set', ...args]);
    expect(refused).toMatchObject({ status });
    expect(refused.stderr).toContain(message);
  });

  it('is masked in the plan, and private on the machine', async () => {
    expect(await orch(['module', 'publish', sandbox.path('app.orch.yaml')])).toMatchObject({ status: 0 });
    const plan = await orch(['plan', 'web-01', '-m', 'app', '-v']);
    expect(plan.stdout).toMatch(/\+password=‹secret DB_PASSWORD #[0-9a-f]{4}›/);
    expect(await orch(['apply', 'web-01', '-m', 'app', '--yes'])).toMatchObject({ status: 0 });
    expect(readFileSync(file, 'utf8')).toBe(`user=app\npassword=${VALUE}\n`);
    expect(statSync(file).mode & 0o7777).toBe(0o600);
    expect((await json<RunResult>(['plan', 'web-01', '-m', 'app'])).has_changes).toBe(false);
    expect((await json<DriftDetail>(['drift', 'web-01'])).status).toBe('in_sync');
    expectNowhere(VALUE);
  });

  it('stays masked where the file was changed by hand', async () => {
    appendFileSync(file, 'debug=1\n');
    const drift = await orch(['drift', 'web-01', '--detailed-exitcode', '-v']);
    expect(drift.status).toBe(2);
    expect(drift.stdout).toMatch(/ password=‹secret DB_PASSWORD #[0-9a-f]{4}›/);
    expect(drift.stdout).toContain('-‹masked line›');
    writeFileSync(file, 'user=app\npassword=an older one\n');
    expect((await orch(['drift', 'web-01', '-v'])).stdout).toContain('-password=‹masked›');
    expect(printed).not.toContain('an older one');
    expect(await orch(['apply', 'web-01', '-m', 'app', '--yes'])).toMatchObject({ status: 0 });
  });

  it('that was changed makes a difference that shows both tags and no value', async () => {
    writeFileSync(sandbox.path('value'), NEXT);
    expect(await orch(['secrets', 'set', 'DB_PASSWORD', '--file', sandbox.path('value')])).toMatchObject({ status: 0 });
    rmSync(sandbox.path('value'));
    const plan = await orch(['plan', 'web-01', '-m', 'app', '-v']);
    const [, old, now] =
      /secret DB_PASSWORD changed since \(#([0-9a-f]{4}), now #([0-9a-f]{4})\)/.exec(plan.stdout) ?? [];
    expect(old).toBeDefined();
    expect(old).not.toBe(now);
    expect(plan.stdout).toContain(`+password=‹secret DB_PASSWORD #${now}›`);
    expect(plan.stdout).toContain('-password=‹masked›');
    const drift = await orch(['drift', 'web-01', '--detailed-exitcode']);
    expect(drift.status).toBe(2);
    expect(drift.stdout).toContain('secret DB_PASSWORD changed since');
    expect((await orch(['secrets', 'show', 'DB_PASSWORD'])).stdout).toContain('web-01 (older value)');
    expect(await orch(['apply', 'web-01', '-m', 'app', '--yes'])).toMatchObject({ status: 0 });
    expect(readFileSync(file, 'utf8')).toBe(`user=app\npassword=${NEXT}\n`);
    expect((await orch(['secrets', 'show', 'DB_PASSWORD'])).stdout).not.toContain('older value');
    expectNowhere(VALUE);
    expectNowhere(NEXT);
  });

  it('that is restricted away is refused before anything is sent', async () => {
    expect(await orch(['secrets', 'set', 'DB_PASSWORD', '--restrict-tags', 'role=db'])).toMatchObject({ status: 0 });
    const apply = await orch(['apply', 'web-01', '-m', 'app', '--yes']);
    expect(apply.status).toBe(1);
    expect(apply.stderr + apply.stdout).toContain(
      'may not be given to agent "web-01": it is restricted to agents whose tags match "role=db"',
    );
    const refused = await orch(['secrets', 'set', 'DB_PASSWORD', '--restrict-tags', 'platform=linux']);
    expect(refused.stderr).toContain('"platform" is what an agent says of itself');
    await json(['agents', 'tag', 'web-01', 'role=db']);
    expect((await json<RunResult>(['plan', 'web-01', '-m', 'app'])).has_changes).toBe(false);
    await json(['secrets', 'set', 'DB_PASSWORD', '--restrict-nodes', 'web-01', '--expires', '30d']);
    expect((await json<Secret[]>(['secrets']))[0]?.restriction).toEqual({ node_ids: [node], tags: 'role=db' });
  });

  it('is in the audit log by name, each time that it was given away', async () => {
    const { events } = await json<{ events: { event_type: string; summary: string; target: { name: string } }[] }>([
      'audit',
      'list',
      '--category',
      'secret',
      '--all',
    ]);
    const used = events.filter(({ event_type }) => event_type === 'secret.used');
    expect(used.length).toBeGreaterThan(8);
    expect(new Set(used.map(({ target }) => target.name))).toEqual(new Set(['DB_PASSWORD']));
    expect(events.at(-1)).toMatchObject({ event_type: 'secret.created' });
  });

  it('changes its key beside the running orchestrator', async () => {
    const keyFile = sandbox.path('serve', 'secrets.key');
    const before = readFileSync(keyFile, 'utf8');
    const rotated = await orch(['serve', 'rotate-secrets-key', '--data-dir', sandbox.path('serve')]);
    expect(rotated).toMatchObject({ status: 0 });
    expect(rotated.stdout).toContain('1 secret');
    expect(readFileSync(keyFile, 'utf8')).not.toBe(before);
    expect(statSync(keyFile).mode & 0o7777).toBe(0o600);
    expect(statSync(sandbox.path('serve', 'control.sock')).mode & 0o7777).toBe(0o600);
    expect((await json<RunResult>(['plan', 'web-01', '-m', 'app'])).has_changes).toBe(false);
    expect((await json<DriftDetail>(['drift', 'web-01'])).status).toBe('in_sync');
  });

  it('survives a restart, whose log says nothing of it', async () => {
    await server.stop();
    const output = server.output();
    expect(existsSync(sandbox.path('serve', 'control.sock'))).toBe(false);
    ({ server, ready } = await sandbox.serve([
      '--log-level',
      'debug',
      '--api-port',
      new URL(ready.api_url).port,
      '--agent-port',
      ready.agent_address.split(':').at(-1) ?? '',
    ]));
    await until(connected, 'the agent is back');
    expect((await json<RunResult>(['plan', 'web-01', '-m', 'app'])).has_changes).toBe(false);
    for (const form of [...formsOf(VALUE), ...formsOf(NEXT)]) expect(output).not.toContain(form);
    expectNowhere(VALUE);
    expectNowhere(NEXT);
  });

  it('does not keep its file from being removed, not even when it is gone', async () => {
    expect(await orch(['secrets', 'remove', 'DB_PASSWORD', '--yes'])).toMatchObject({ status: 0 });
    const checked = await orch(['drift', 'web-01', '-o', 'json']);
    expect(checked.status).toBe(3);
    const drift: DriftDetail = JSON.parse(checked.stdout);
    expect(drift.resources.find(({ identity }) => identity === file)?.error).toMatchObject({
      code: 'secret_unavailable',
    });
    writeFileSync(sandbox.path('app.orch.yaml'), moduleText(false));
    expect(await orch(['apply', 'web-01', '-f', sandbox.path('app.orch.yaml'), '--yes'])).toMatchObject({ status: 0 });
    expect(existsSync(file)).toBe(false);
    expectNowhere(VALUE);
    expectNowhere(NEXT);
  });

  it('without its key keeps the orchestrator from starting', async () => {
    expect(await orch(['secrets', 'set', 'OTHER', '--value', 'anything-else'])).toMatchObject({ status: 0 });
    await server.stop();
    mkdirSync(sandbox.path('safe'));
    const [key, safe] = [sandbox.path('serve', 'secrets.key'), sandbox.path('safe', 'secrets.key')];
    expect(spawnSync('mv', [key, safe]).status).toBe(0);
    await expect(sandbox.serve()).rejects.toThrow(
      /the store holds secrets, and .*secrets\.key with their keys is missing/,
    );
    expect(spawnSync('mv', [safe, key]).status).toBe(0);
    ({ server, ready } = await sandbox.serve());
  });
});

describeOnSqlite('a backup from before a rotation', () => {
  it('is restored with the key that was kept, and refused without it by the name of the key', async () => {
    const own = new Sandbox();
    try {
      const done = async (args: readonly string[], input = '') => {
        const finished = await own.orch(args, { input });
        expect(finished.status, finished.stderr).toBe(0);
        return finished.stdout;
      };
      await done(['operator', 'init']);
      const { server: first, ready: info } = await own.serve();
      await done(['profile', 'create', 'own', '--url', info.api_url, '--tls-fingerprint', info.tls_fingerprint]);
      await done(['profile', 'use', 'own']);
      await done(['secrets', 'set', 'DB_PASSWORD', '-'], 'before');
      const here = ['--data-dir', own.path('serve')];
      await done(['serve', 'backup', own.path('old.db'), ...here]);
      const [key, kept] = [own.path('serve', 'secrets.key'), own.path('serve', 'secrets.key.1')];
      const keyIds = (file: string) => readFileSync(file, 'utf8').match(/(?<=^key )\S+/gm);
      const [formerId] = keyIds(key) ?? [];
      expect(await done(['serve', 'rotate-secrets-key', ...here])).toContain(`The old key is kept as ${kept}`);
      expect(statSync(kept).mode & 0o7777).toBe(0o600);
      expect(keyIds(kept)).toEqual([formerId]);
      const currentIds = keyIds(key);
      expect(await first.stop()).toBe(0);

      renameSync(kept, own.path('away'));
      const refused = await own.orch(['serve', 'restore', own.path('old.db'), '--yes', ...here]);
      expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining(`hold the key ${formerId}`)]);
      expect(refused.stderr).toContain(`there as ${kept}`);
      renameSync(own.path('away'), kept);
      const restored = await done(['serve', 'restore', own.path('old.db'), '--yes', ...here]);
      expect(restored).toContain(`opened with ${kept}`);

      const again = await own.serve(['--api-port', new URL(info.api_url).port]);
      await until(() => keyIds(key)?.length === 1, 'the rotation ends by itself');
      expect(keyIds(key)).toEqual(currentIds);
      expect(await done(['secrets', 'list'])).toContain('DB_PASSWORD');
      expect(existsSync(own.path('serve', 'secrets.key.2'))).toBe(false);
      expect(await again.server.stop()).toBe(0);
    } finally {
      await own.dispose();
    }
  });
});
