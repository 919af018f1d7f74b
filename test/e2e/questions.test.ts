/** Questions in a real terminal: keys that were pressed before a question appeared are never its answer. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import { ORCH, type Ready, Sandbox, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';

vi.setConfig({ testTimeout: 60_000 });

const sandbox = new Sandbox();
let ready: Ready;

const agents = () => sandbox.json<Agent[]>(['agents', 'list']);
const pending = async () => (await agents()).filter(({ status }) => status === 'pending');

/** Starts an agent with that hostname, and waits until it is pending. */
async function startAgent(hostname: string): Promise<Agent> {
  const words = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path(hostname), '--hostname', hostname];
  sandbox.start(['agent', 'connect', ready.agent_address, ...words]);
  let found: Agent | undefined;
  await until(async () => {
    found = (await pending()).find(({ initial_hostname }) => initial_hostname === hostname);
    return found !== undefined;
  }, `${hostname} is pending`);
  return found as Agent;
}

/** Starts `orch` in a terminal of its own with keys that are pressed before it can ask anything. */
function typedAhead(args: readonly string[], typed: string, env: NodeJS.ProcessEnv = {}): Pty {
  const pty = new Pty([process.execPath, ORCH, ...args], { env: { ...sandbox.env, ...env }, cwd: sandbox.root });
  onTestFinished(() => pty.kill());
  pty.write(typed);
  return pty;
}

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  ({ ready } = await sandbox.serve());
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  await sandbox.orch(['profile', 'use', 'test']);
});

afterAll(async () => {
  await sandbox.dispose();
});

describe('a question', () => {
  it('is not answered by the line that was typed behind the command', async () => {
    const { node_id } = await startAgent('one');
    const pty = new Pty(['/bin/bash', '--norc'], { env: { ...sandbox.env, PS1: 'ready> ' }, cwd: sandbox.root });
    onTestFinished(() => pty.kill());
    await pty.shows(/ready> $/);
    pty.write(`${process.execPath} ${ORCH} agents reject ${node_id.slice(0, 12)}; echo "STATUS=$?="\ry\r`);
    await pty.shows(/Reject \(one\)[^?]*\? \(y\/N\)/);
    pty.write('n\r');
    await pty.shows(/not confirmed, nothing was changed/);
    await pty.shows(/STATUS=1=/);
    expect((await pending()).map((agent) => agent.node_id)).toEqual([node_id]);
  });

  it('is not answered by a Ctrl-C that was pressed before it, which interrupts', async () => {
    const [agent] = await pending();
    const pty = typedAhead(['agents', 'reject', agent?.node_id ?? ''], '\x16\x03y\r');
    expect(await pty.ended()).toBe(130);
    expect(await pending()).toHaveLength(1);
  });

  it('about the next of several agents is not answered by what was typed for the one before', async () => {
    await startAgent('two');
    const pty = typedAhead(['agents', 'approve', '--all-pending'], 'y\ry\ry\r');
    await pty.shows(/Approve it as \w+\? \(y\/N\)/);
    expect(await pending()).toHaveLength(2);
    pty.write('y\ry\ry');
    await pty.shows(/Approve it as \w+\?(?: Yes|[\s\S]*?Yes)[\s\S]*Approve it as \w+\? \(y\/N\)/);
    pty.write('n\r');
    await pty.shows(/Approved 1 of 2 pending agents/);
    expect(await pty.ended()).toBe(0);
    const [left] = await pending();
    await sandbox.json(['agents', 'approve', left?.node_id ?? '', '--name', left?.initial_hostname ?? '', '--yes']);
  });

  it('of an apply is not answered while the apply is planned, nor is the one about removals', async () => {
    await until(async () => (await agents()).every(({ connected }) => connected), 'both are connected');
    const file = sandbox.path('site.orch.yaml');
    const path = sandbox.path('managed', 'file');
    mkdirSync(sandbox.path('managed'));
    const resources = (lines: string) =>
      writeFileSync(file, `name: site\nsupports:\n  - platform: linux\nresources: ${lines}`);
    resources(`\n  - resource:\n      file-unix: {path: "${path}", content: "x\\n"}\n`);
    const apply = typedAhead(['apply', 'one', '-f', file], 'y\r');
    await apply.shows(/Apply this to one\? \(y\/N\)/);
    apply.write('y\r');
    await apply.shows(/1 created/);
    expect(await apply.ended()).toBe(0);
    resources('[]\n');
    const removal = typedAhead(['apply', 'one', '-f', file, '--allow-removals', '1'], 'y\r');
    await removal.shows(/Apply it, with 1 removal\? \(y\/N\)/);
    removal.write('n\r');
    await removal.shows(/not confirmed/);
    expect(await removal.ended()).toBe(1);
  });

  it('for a passphrase or a secret takes nothing that was typed before it', async () => {
    const env = { XDG_CONFIG_HOME: sandbox.path('another') };
    const init = typedAhead(['operator', 'init', '--passphrase'], 'early-words\rearly-words\r', env);
    await init.shows(/New passphrase:/);
    init.write('right-words\r');
    await init.shows(/Once more:/);
    init.write('right-words\r');
    expect(await init.ended()).toBe(0);
    const connect = ['--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
    const whoami = typedAhead(['operator', 'whoami', ...connect], 'early-words\r', env);
    await whoami.shows(/Passphrase of [^:]*:/);
    whoami.write('right-words\r');
    expect(await whoami.ended()).toBe(4);
    expect(whoami.output).not.toMatch(/that is not its passphrase/);
    const secret = typedAhead(['secrets', 'set', 'db'], 'early\r');
    await secret.shows(/Value of db:/);
    secret.write('\x03');
    expect(await secret.ended()).toBe(130);
    expect(await sandbox.json(['secrets', 'list'])).toEqual([]);
  });

  it("about a certificate or an orchestrator's key is not answered before it is shown", async () => {
    const env = { XDG_CONFIG_HOME: sandbox.path('stranger') };
    const status = typedAhead(['status', '--url', ready.api_url], 'y\r', env);
    await status.shows(/Is it the right one\? \(y\/N\)/);
    status.write('n\r');
    await status.shows(/was not accepted,\s+so\s+nothing\s+was\s+sent/);
    expect(await status.ended()).toBe(64);
    const agent = typedAhead(['agent', 'connect', ready.agent_address, '--data-dir', sandbox.path('third')], 'y\r');
    await agent.shows(/\? \(y\/N\)/);
    agent.write('n\r');
    expect(await agent.ended()).not.toBe(0);
    expect(await agents()).toHaveLength(2);
  });
});
