/** Kills the agent or the orchestrator at random moments of applies: every operation ends, and tells the truth. */
import { randomInt } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { OperationDetail } from '../../src/contract/operations.js';
import type { DriftDetail, RunResult } from '../../src/contract/runs.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';

const ROUNDS = Number(process.env.ORCH_LONG_ROUNDS ?? 40);
const FILES = 400;
const sandbox = new Sandbox();
const site = sandbox.path('site');
let server: Running;
let agent: Running;
let ready: Ready;
let node: string;

const portOf = (address: string) => String(/:(\d+)$/.exec(address)?.[1]);

const serve = async (args: readonly string[] = []) => {
  ({ server, ready } = await sandbox.serve(args));
};
const connect = () => {
  agent = sandbox.start([
    'agent',
    'connect',
    ready.agent_address,
    '--orchestrator-key',
    ready.public_key,
    '--data-dir',
    sandbox.path('agent'),
  ]);
};
const isConnected = async () => (await sandbox.json<Agent[]>(['agents', 'list'])).some((one) => one.connected);

/** Every file with the round in it, so that each apply changes all of them. */
const moduleOf = (round: number) => {
  const files = Array.from(
    { length: FILES },
    (_, n) => `  - resource: {file-unix: {path: ${site}/f${n}, content: "${round}\\n"}}`,
  );
  return `name: many\nsupports: [{platform: linux}]\nresources:\n  - resource: {directory-unix: {path: ${site}}}\n${files.join('\n')}\n`;
};

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  await serve();
  await sandbox.orch(['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint]);
  connect();
  await until(async () => (await sandbox.json<Agent[]>(['agents', 'list'])).length === 1, 'the agent waits');
  node = (await sandbox.json<Agent[]>(['agents', 'list']))[0]?.node_id as string;
  await sandbox.json(['agents', 'approve', node, '--name', 'web-01', '--yes']);
});

afterAll(() => sandbox.dispose());

it(`ends ${ROUNDS} applies truthfully`, async () => {
  const ends: string[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    writeFileSync(sandbox.path('many.orch.yaml'), moduleOf(round));
    await until(isConnected, 'the agent is connected');
    await sandbox.json(['module', 'publish', sandbox.path('many.orch.yaml')]);
    const body = JSON.stringify({ modules: ['many'], wait: false });
    const { operation_id: id } = await sandbox.json<RunResult>([
      'api',
      'POST',
      `/agents/${node}/apply`,
      '--data',
      body,
    ]);
    await new Promise((resolve) => setTimeout(resolve, randomInt(0, 400)));
    if (round % 3 !== 0) {
      await agent.stop('SIGKILL');
    }
    if (round % 3 !== 1) {
      await server.stop('SIGKILL');
      await serve(['--api-port', portOf(ready.api_url), '--agent-port', portOf(ready.agent_address)]);
    }
    if (round % 3 !== 0) connect();
    const operation = await ended(id as string);
    ends.push(operation.status);
    for (const { identity, status, kind } of operation.resources) {
      if (kind !== 'file-unix' || (status !== 'changed' && status !== 'unchanged')) continue;
      expect(readFileSync(identity, 'utf8'), `round ${round}: ${identity} is ${status}`).toBe(`${round}\n`);
    }
    if (operation.status === 'succeeded') {
      expect(await sandbox.json<DriftDetail>(['drift', 'web-01'])).toMatchObject({ status: 'in_sync' });
    }
  }
  process.stderr.write(`ends: ${JSON.stringify(ends)}\n`);
  expect(existsSync(site)).toBe(true);
  expect(ends.every((end) => end === 'succeeded' || end === 'interrupted' || end === 'failed')).toBe(true);
});

async function ended(id: string): Promise<OperationDetail> {
  let operation: OperationDetail | undefined;
  await until(async () => {
    operation = await sandbox.json<OperationDetail>(['ops', 'show', id]);
    return operation.finished_at !== null && (await isConnected());
  }, `operation ${id} has ended`);
  return operation as OperationDetail;
}
