/** Drift with the real programs: its likely cause, snoozes, acceptance, adoption, and the way back to an earlier operation. */
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { DriftSnooze } from '../../src/contract/drift-excuses.js';
import type { OperationDetail } from '../../src/contract/operations.js';
import type { DriftDetail, RunResult } from '../../src/contract/runs.js';
import type { TerminalSession } from '../../src/contract/terminal.js';
import { ORCH, Sandbox, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';
import { TEST_SHELL } from '../support/test-shell.js';

vi.setConfig({ testTimeout: 120_000 });

const sandbox = new Sandbox();
const motd = sandbox.path('motd');
const other = sandbox.path('other');
const MODULE = 'modules/site.orch.yaml';
const moduleFile = sandbox.path(MODULE);

/** Its content has a tab, which a patch has to keep. */
const moduleText = (content: readonly string[]) =>
  [
    '# What every machine greets with.',
    'name: site',
    'supports: [{platform: linux}]',
    'resources:',
    '  - resource:',
    '      file-unix:',
    `        path: ${motd}   # shown at login`,
    '        content: |',
    ...content.map((line) => `          ${line}`),
    '        mode: "0644" # for everyone',
    `  - resource: {file-unix: {path: ${other}, content: "\${{ agent.name }}\\n"}}`,
    '',
  ].join('\n');

const check = () => sandbox.json<DriftDetail>(['drift', 'web-01']);
const applied = () => sandbox.json<RunResult>(['apply', 'web-01', '-f', moduleFile, '--yes']);

beforeAll(async () => {
  expect((await sandbox.orch(['operator', 'init'])).status).toBe(0);
  const { ready } = await sandbox.serve();
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  const config = sandbox.path('agent.yaml');
  writeFileSync(config, `remote_terminal:\n  enabled: true\n  shell: ${TEST_SHELL}\n`, { mode: 0o600 });
  const words = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent'), '--config', config];
  sandbox.start(['agent', 'connect', ready.agent_address, ...words]);
  let agents: Agent[] = [];
  await until(async () => {
    agents = await sandbox.json<Agent[]>(['agents', 'list']);
    return agents.length === 1;
  }, 'the agent waits');
  await sandbox.json(['agents', 'approve', agents[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
  await until(async () => (await sandbox.json<Agent[]>(['agents', 'list']))[0]?.connected === true, 'it is connected');
  execFileSync('git', ['init', '-q', sandbox.root]);
  execFileSync('mkdir', [sandbox.path('modules')]);
  writeFileSync(moduleFile, moduleText(['hello', 'port\t80']));
  await applied();
});

afterAll(async () => {
  await sandbox.dispose();
});

describe('drift of a real machine', () => {
  it('names the terminal session in which a file was changed, and where in its recording', async () => {
    const pty = new Pty([process.execPath, ORCH, 'term', 'web-01'], { env: sandbox.env, cwd: sandbox.root });
    onTestFinished(() => pty.kill());
    await pty.shows(/[$#] $/);
    pty.write(`printf 'bye\\nport\\t8080\\n' > ${motd}; chmod 600 ${motd}; echo do''ne\r`);
    await pty.shows(/done\r\n/);
    const [session] = await sandbox.json<TerminalSession[]>(['term', 'list']);
    const id = session?.session_id ?? '';
    const [changed] = (await check()).resources;
    expect(changed).toMatchObject({ identity: motd, status: 'pending', likely_causes: [{ kind: 'terminal', id }] });
    expect(Math.abs((changed?.changed_at ?? 0) - statSync(motd).ctimeMs / 1000)).toBeLessThan(5);
    pty.write('exit\r');
    await until(async () => (await sandbox.json<unknown[]>(['term', 'list'])).length === 0, 'the session is over');
    const shown = (await sandbox.orch(['drift', 'latest', 'web-01'])).stdout;
    const at = new RegExp(
      `likely cause: terminal session ${id} of \\S+, .* \\(replay: (orch term replay ${id} --at \\S+)\\)`,
    );
    const [, replay = ''] = at.exec(shown) ?? [];
    // The command that it names shows what was typed.
    const player = new Pty([process.execPath, ORCH, ...replay.split(' ').slice(1)], {
      env: sandbox.env,
      cwd: sandbox.root,
    });
    onTestFinished(() => player.kill());
    await player.shows(/8080/);
  });

  it('goes by the time that the system notes, whatever time a file claims', async () => {
    for (const year of [0, 4_000_000_000]) {
      utimesSync(motd, year, year);
      const [found] = (await check()).resources;
      const now = Date.now() / 1000;
      // The time at which the false one was set.
      expect(Math.abs((found?.changed_at ?? 0) - now)).toBeLessThan(60);
    }
  });

  it('prints a patch with which a plan shows no change for the resource', async () => {
    const before = readFileSync(moduleFile, 'utf8');
    writeFileSync(other, 'changed');
    const adopt = ['drift', 'adopt', 'web-01', motd, '-f', MODULE];
    const patch = await sandbox.orch(adopt);
    expect(patch).toMatchObject({ status: 0, stderr: '' });
    execFileSync('git', ['apply'], { cwd: sandbox.root, input: patch.stdout });
    const after = readFileSync(moduleFile, 'utf8');
    expect(after).toBe(moduleText(['bye', 'port\t8080']).replace('"0644"', '"0600"'));
    expect(before).not.toBe(after);
    const plan = await sandbox.json<RunResult>(['plan', 'web-01', '-f', moduleFile]);
    expect(plan.resources.map(({ identity, status }) => [identity, status])).toEqual([
      [motd, 'unchanged'],
      [other, 'pending'],
    ]);
    // The same with patch -p1, from the stored module.
    execFileSync('patch', ['-R', '-p1'], { cwd: sandbox.root, input: patch.stdout });
    expect(readFileSync(moduleFile, 'utf8')).toBe(before);

    const byHand = await sandbox.orch(['drift', 'adopt', 'web-01', other]);
    expect(byHand).toMatchObject({ status: 3, stdout: '' });
    expect(byHand.stderr).toContain(`file-unix ${other} is to be adopted by hand: its content has the expression`);
  });

  it('does not count while it is snoozed, and counts again by itself', async () => {
    const snooze = (time: string) =>
      sandbox.json<DriftSnooze>(['drift', 'snooze', 'web-01', motd, other, '--for', time, '--reason', 'a test']);
    const { snooze_id } = await snooze('1h');
    expect(await check()).toMatchObject({ status: 'in_sync', snoozed: 2, has_changes: false });
    expect((await sandbox.orch(['drift', 'unsnooze', snooze_id])).status).toBe(0);
    expect(await check()).toMatchObject({ status: 'drifted', snoozed: 0 });
    await snooze('2s');
    await until(async () => (await check()).status === 'drifted', 'the snooze has ended');
  });

  it('does not count once it is accepted, and any further change does', async () => {
    const accepted = await sandbox.orch(['drift', 'accept', 'web-01', motd, other, '--reason', 'right so', '--yes']);
    expect(accepted, accepted.stderr).toMatchObject({ status: 0 });
    expect(await check()).toMatchObject({ status: 'in_sync', accepted: 2 });
    const kept = readFileSync(motd);
    writeFileSync(motd, 'something else\n');
    expect(await check()).toMatchObject({ status: 'drifted', accepted: 1 });
    writeFileSync(motd, kept);
    expect(await check()).toMatchObject({ status: 'in_sync', accepted: 2 });
    // Content that is no text: only its time and size tell a further change.
    writeFileSync(motd, Buffer.from([0xff, 0xfe, 1]));
    expect((await sandbox.orch(['drift', 'accept', 'web-01', motd, '--yes'])).status).toBe(0);
    expect(await check()).toMatchObject({ status: 'in_sync', accepted: 2 });
    writeFileSync(motd, Buffer.from([0xff, 0xfe, 2]));
    expect(await check()).toMatchObject({ status: 'drifted', accepted: 1 });
    await applied();
    expect(await check()).toMatchObject({ status: 'in_sync', accepted: 0 });
    expect(readFileSync(motd, 'utf8')).toBe('hello\nport\t80\n');
  });
});

describe('going back', () => {
  it('brings back the content and the resources of an earlier operation', async () => {
    const [first] = (await sandbox.json<{ operations: OperationDetail[] }>(['ops', 'list'])).operations;
    const to = first?.operation_id ?? '';
    writeFileSync(moduleFile, moduleText(['changed']).split('\n').slice(0, -2).join('\n'));
    await sandbox.json(['apply', 'web-01', '-f', moduleFile, '--yes', '--allow-removals', '1']);
    expect(readFileSync(motd, 'utf8')).toBe('changed\n');

    const plan = await sandbox.orch(['plan', 'web-01', '--to', to, '--out', 'back.orchplan']);
    expect(plan.stdout).toContain(`back to the desired state of operation ${to}`);
    expect(await sandbox.orch(['apply', 'back.orchplan', '--yes'])).toMatchObject({ status: 0 });
    expect(readFileSync(motd, 'utf8')).toBe('hello\nport\t80\n');
    expect(readFileSync(other, 'utf8')).toBe('web-01\n');
    const again = await sandbox.json<RunResult>(['apply', 'web-01', '--to', to, '--yes']);
    expect(again).toMatchObject({ restores: to, has_changes: false });
    const shown = await sandbox.orch(['ops', 'show', again.operation_id ?? '']);
    expect(shown.stdout).toContain(`the desired state of operation ${to}`);
    expect(shown.stderr).toContain(`orch apply web-01 --to ${again.operation_id}`);
  });
});
