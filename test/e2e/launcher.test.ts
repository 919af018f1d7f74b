/** The command on a Node that is too old, and what people see of a log at their terminal. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { transform } from 'esbuild';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ORCH, Sandbox } from '../support/orch.js';
import { Pty } from '../support/pty.js';
import { until } from '../support/until.js';

vi.setConfig({ testTimeout: 60_000 });

const sandbox = new Sandbox();
afterAll(() => sandbox.dispose());

/** Runs the command on this Node, which calls itself another version. */
function runAs(version: string) {
  const file = sandbox.path('version.cjs');
  writeFileSync(
    file,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });\n`,
  );
  return spawnSync(process.execPath, ['--require', file, ORCH, '--version'], { encoding: 'utf8', env: sandbox.env });
}

describe('a Node that is too old', () => {
  it.each(['0.10.48', '12.22.12', '18.20.4', '20.18.3'])('is refused in a sentence: %s', (version) => {
    const ran = runAs(version);
    expect(ran).toMatchObject({ status: 1, stdout: '' });
    expect(ran.stderr).toContain(
      `orch: this is Node.js ${version} (${process.execPath}), and orch needs 20.19 or newer\n`,
    );
    expect(ran.stderr).toContain('  hint: ');
  });

  it.each(['20.19.0', '22.1.0', '100.0.0'])('is not: %s', (version) => {
    expect(runAs(version)).toMatchObject({ status: 0, stdout: expect.stringMatching(/^orch \d/) });
  });

  it('can parse the command', async () => {
    const [first, ...rest] = readFileSync(ORCH, 'utf8').split('\n');
    expect(first).toBe('#!/usr/bin/env node');
    // It refuses what the language of 2009 did not have and it cannot express in it, and would rewrite what it can.
    const { code } = await transform(rest.join('\n'), { target: 'es5' });
    expect(code).not.toMatch(/=>|\bconst\b|\blet\b|`/);
    expect(rest.join('\n')).not.toMatch(/=>|\bconst\b|\blet\b|`|\?\./);
  });
});

describe('a closed window', () => {
  const start = (...words: readonly string[]) => {
    const pty = new Pty([process.execPath, ORCH, ...words], { env: sandbox.env, cwd: sandbox.root });
    onTestFinished(() => pty.kill());
    return pty;
  };

  it('ends a command with 129, and not by an abort of Node', async () => {
    // A command that waits, so that it cannot have ended before its window does.
    const pty = start('operator', 'init', '--passphrase');
    await pty.shows(/passphrase/);
    pty.hangUp();
    expect(await pty.endedForShell()).toBe(129);
  });

  it('ends neither orch serve nor its stop', async () => {
    await sandbox.orch(['operator', 'init']);
    const data = sandbox.path('hung-up');
    const pty = start(
      'serve',
      '--agent-port',
      '0',
      '--api-port',
      '0',
      '--data-dir',
      data,
      '--ready-file',
      `${data}.json`,
    );
    await until(() => existsSync(`${data}.json`), 'the orchestrator is ready');
    pty.hangUp();
    const ask = ['serve', 'accept-clock', '--data-dir', data];
    expect(await sandbox.orch(ask)).toMatchObject({ status: 0 });
    process.kill(pty.pid, 'SIGTERM');
    expect(await pty.endedForShell()).toBe(0);
  });
});

describe('orch serve', () => {
  it('logs for people on a terminal, and names an address that other machines reach', async () => {
    await sandbox.orch(['operator', 'init']);
    const ports = ['--agent-port', '0', '--api-port', '0', '--data-dir', sandbox.path('serve')];
    const pty = new Pty([process.execPath, ORCH, 'serve', ...ports], {
      env: sandbox.env,
      cwd: sandbox.root,
      cols: 400,
    });
    onTestFinished(() => pty.kill());
    const [, address] = await pty.shows(/agent_address=(\S+):\d+/);
    expect(pty.output).not.toMatch(/^\{"level"/m);
    const outward = Object.values(networkInterfaces()).some((all) => all?.some(({ internal }) => !internal));
    if (outward) expect(address).not.toBe('127.0.0.1');
    pty.write('\x03');
    expect(await pty.ended()).toBe(0);
  });
});
