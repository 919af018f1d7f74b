/** The output of scripts, from a real agent to the operator, with the secrets in it and in a restore. */
import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { RunResult } from '../../src/contract/runs.js';
import { type Ready, Sandbox, until } from '../support/orch.js';

const VALUE = 'Tr0ub4dor&3/x$&';
const sandbox = new Sandbox();
let ready: Ready;

const script = (id: string, members: Readonly<Record<string, string>>): string =>
  `  - id: ${id}\n    resource:\n      script:\n        program: sh\n${Object.entries(members)
    .map(([key, text]) => `        ${key}: ${JSON.stringify(text)}\n`)
    .join('')}`;

function module(name: string, ...resources: readonly string[]): string {
  const path = sandbox.path(`${name}.orch.yaml`);
  const list = resources.length === 0 ? ' []\n' : `\n${resources.join('')}`;
  writeFileSync(path, `name: ${name}\nsupports:\n  - platform: linux\nresources:${list}`);
  return path;
}

const left = sandbox.path('left');
const LEAKY = `echo "the ""token is"; TOKEN='\${{ secrets.TOKEN }}'; echo "$TOKEN"; printf %s "$TOKEN" | base64`;
const UNDO = `printf %s '\${{ secrets.TOKEN }}' > ${left}`;

/** Every byte that the orchestrator and the agent keep, but for the keys. */
const kept = (): string =>
  ['serve', 'agent']
    .flatMap((name) => readdirSync(sandbox.path(name), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  ({ ready } = await sandbox.serve());
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  const key = ['--orchestrator-key', ready.public_key];
  sandbox.start(['agent', 'connect', ready.agent_address, ...key, '--data-dir', sandbox.path('agent')]);
  let agents: readonly Agent[] = [];
  await until(async () => {
    agents = await sandbox.json<Agent[]>(['agents', 'list']);
    return agents.length === 1;
  }, 'the agent waits');
  await sandbox.json(['agents', 'approve', agents[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
  await until(async () => (await sandbox.json<Agent[]>(['agents', 'list']))[0]?.connected === true, 'it is connected');
  await sandbox.orch(['secrets', 'set', 'TOKEN', '--value', VALUE]);
});
afterAll(() => sandbox.dispose());

describe('the output of scripts', () => {
  it('is shown with its streams and its exit status, harmlessly', async () => {
    const path = module(
      'noisy',
      script('loud', { apply: `printf 'one\\n\\033[31mtwo\\n'; echo oops >&2` }),
      script('bad', { apply: 'echo before; exit 7' }),
    );
    const run = await sandbox.orch(['apply', 'web-01', '-f', path, '--yes', '-o', 'json']);
    expect(run.status).toBe(3);
    const id: string = JSON.parse(run.stdout).operation_id;
    const { output } = await sandbox.json<{ output: object }>(['ops', 'output', id]);
    expect(output).toEqual({
      'noisy/loud': { stdout: 'one\n\u001b[31mtwo\n', stderr: 'oops\n', exit_code: 0, truncated: false },
      'noisy/bad': { stdout: 'before\n', stderr: '', exit_code: 7, truncated: false },
    });
    const shown = (await sandbox.orch(['ops', 'output', id])).stdout;
    expect(shown).toContain('stderr| oops');
    expect(shown).toContain('exit status 7');
    expect(shown).not.toContain('\u001b');
  });

  it('is cut where it is too long', async () => {
    const path = module('long', script('flood', { apply: `head -c 2000000 /dev/zero; echo the-end` }));
    const { operation_id } = await sandbox.json<RunResult>(['apply', 'web-01', '-f', path, '--yes']);
    const { output } = await sandbox.json<{ output: Record<string, { stdout: string; truncated: boolean }> }>([
      'ops',
      'output',
      operation_id ?? '',
    ]);
    expect(output['long/flood']?.truncated).toBe(true);
    expect(output['long/flood']?.stdout).toMatch(/the-end\n$/);
    expect((await sandbox.orch(['ops', 'output', operation_id ?? ''])).stdout).toContain('(cut:');
  });

  it('of a script with a secret is masked, sealed, and survives a new key', async () => {
    const path = module('leaky', script('leak', { apply: LEAKY }));
    const { operation_id } = await sandbox.json<RunResult>(['apply', 'web-01', '-f', path, '--yes']);
    const read = async () => (await sandbox.orch(['ops', 'output', operation_id ?? ''])).stdout;
    const shown = await read();
    expect(shown).toMatch(/the token is\n‹secret TOKEN #[0-9a-f]{4}›\n‹secret TOKEN #[0-9a-f]{4}›/);
    const bytes = kept();
    for (const form of [VALUE, Buffer.from(VALUE).toString('base64')]) {
      expect(shown).not.toContain(form);
      expect(bytes).not.toContain(form);
    }
    expect(bytes).not.toContain('the token is');
    const rotated = await sandbox.orch(['serve', 'rotate-secrets-key', '--data-dir', sandbox.path('serve')]);
    expect(rotated.stdout).toContain('1 secret and 1 output of scripts re-encrypted');
    expect(await read()).toBe(shown);
  });
});

describe('a failure with a secret', () => {
  const REVERSED = [...VALUE].reverse().join('');
  const REVERSE = `printf %s '\${{ secrets.TOKEN }}' | rev`;
  /** Fills the kept head and tail of an output, so that the value stands across both ends of the gap. */
  const torn = (value: string) => {
    const filled = (bytes: number) => `head -c ${bytes} /dev/zero | tr '\\0' x`;
    const half = 128 * 1024;
    return `${filled(half - 7)}; ${value}; ${filled(2 * half)}; ${value}; ${filled(half - 8)}; exit 1`;
  };

  it('says how it ended and where the output is, and shows or keeps nothing that was printed', async () => {
    const secret = sandbox.path('secret');
    const path = module(
      'failing',
      script('backwards', { apply: `${REVERSE}; exit 1` }),
      script('checked', { apply: 'true', check: `${REVERSE}; exit 1` }),
      script('gone', { apply: 'true', check: `${REVERSE}; kill -9 $$` }),
      script('halves', { apply: torn(`printf %s '\${{ secrets.TOKEN }}'`) }),
      `  - id: file\n    resource:\n      file-unix: {path: ${secret}, content: "\${{ secrets.TOKEN }}"}\n`,
      script('reader', { apply: torn(`cat ${secret}`) }),
    );
    appendFileSync(
      path,
      `verify:\n  - name: ready\n    within: 1s\n    script: {program: sh, run: ${JSON.stringify(`${REVERSE}; exit 1`)}}\n`,
    );
    const run = await sandbox.orch(['apply', 'web-01', '-f', path, '--yes', '-o', 'json']);
    const { operation_id, resources } = JSON.parse(run.stdout) as RunResult;
    const messages = Object.fromEntries(resources.map(({ identity, error }) => [identity, error?.message ?? null]));
    expect(messages).toMatchObject({
      backwards: `apply ended with status 1; its output may hold secrets, so only this shows it: orch ops output ${operation_id}`,
      checked:
        'checked still differs after the change: its check ended with status 1; its output may hold secrets, so it is not shown',
      gone: 'check was ended by SIGKILL; its output may hold secrets, so it is not shown',
      halves: expect.stringContaining('apply ended with status 1; its output may hold secrets'),
      [secret]: null,
      reader: 'apply ended with status 1',
    });
    expect((await sandbox.orch(['ops', 'output', operation_id ?? ''])).stdout).toContain(REVERSED);
    await sandbox.orch([
      'apply',
      'web-01',
      '-f',
      module('sound', script('fine', { apply: 'true' })),
      '--yes',
      '--allow-removals',
      '9',
    ]);
    const pieces = [REVERSED, VALUE.slice(0, 7), VALUE.slice(-8)];
    const viewed = await viewerSees(operation_id ?? '');
    expect(viewed).toContain('apply ended with status 1');
    for (const piece of pieces) {
      expect(viewed).not.toContain(piece);
      expect(kept()).not.toContain(piece);
    }
  });
});

/** All that a viewer reads about an operation and its agent. */
async function viewerSees(operation: string): Promise<string> {
  const env = { XDG_CONFIG_HOME: sandbox.path('viewer') };
  const as = async (...args: readonly string[]) => (await sandbox.orch(args, { env })).stdout;
  const { public_key: key } = JSON.parse(await as('operator', 'init', '-o', 'json')) as { public_key: string };
  await sandbox.orch(['operator', 'add', key, '--username', 'vera', '--role', 'viewer']);
  await as('profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint);
  await as('profile', 'use', 'test');
  const seen = [
    await as('ops', 'show', operation, '-o', 'json'),
    await as('ops', 'show', operation),
    await as('state', 'web-01', '-o', 'json'),
    await as('log', '-o', 'json'),
    await as('notifications', '-o', 'json'),
  ];
  expect(await sandbox.orch(['ops', 'output', operation], { env })).toMatchObject({ stdout: '', status: 4 });
  return seen.join('\n');
}

describe('an undo with a secret', () => {
  const apply = (path: string, ...more: readonly string[]) =>
    sandbox.orch(['apply', 'web-01', '-f', path, '--yes', ...more, '-o', 'json']);

  it('runs with the value of then, or not at all', async () => {
    await apply(module('leaving', script('leave', { apply: 'true', undo: UNDO })));
    await sandbox.orch(['secrets', 'remove', 'TOKEN', '--yes']);
    const failed = await apply(module('leaving'), '--allow-removals', '9');
    expect(failed.status).toBe(3);
    const { resources } = JSON.parse(failed.stdout) as RunResult;
    expect(resources.find(({ identity }) => identity === 'leave')).toMatchObject({
      status: 'failed',
      error: { code: 'secret_unavailable' },
    });
    expect(existsSync(left)).toBe(false);
    await sandbox.orch(['secrets', 'set', 'TOKEN', '--value', 'another value']);
    expect(await apply(module('leaving'), '--allow-removals', '9')).toMatchObject({ status: 0 });
    expect(readFileSync(left, 'utf8')).toBe('another value');
  });

  it('needs the secret again with --local, and without an undo no consent', async () => {
    const gone = sandbox.path('gone');
    const secret = sandbox.path('secret');
    writeFileSync(secret, 'from a file');
    const local = (path: string, ...more: readonly string[]) =>
      sandbox.orch(['apply', '--local', '--data-dir', sandbox.path('local'), '-f', path, '--yes', ...more]);
    const undo = `printf %s '\${{ secrets.TOKEN }}' > ${gone}`;
    const whole = module('here', script('in', { apply: 'true', undo }), script('free', { apply: 'true' }));
    expect(await local(whole, '--secret-file', `TOKEN=${secret}`)).toMatchObject({ status: 0 });
    const failed = await local(module('here'), '--allow-removals', '1');
    expect(failed.status).toBe(3);
    expect(failed.stdout).toContain('the secret "TOKEN" is not given with --secret-file');
    expect(existsSync(gone)).toBe(false);
    const with_ = ['--secret-file', `TOKEN=${secret}`, '--allow-removals', '1'];
    expect(await local(module('here'), ...with_)).toMatchObject({ status: 0 });
    expect(readFileSync(gone, 'utf8')).toBe('from a file');
    const free = module('here', script('free', { apply: 'true' }));
    await local(free);
    expect(await local(module('here'))).toMatchObject({ status: 0 });
  });
});
