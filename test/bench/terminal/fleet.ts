/** A real orchestrator and a real agent that lets terminals in, each a process of its own, joined by TLS on the loopback. */
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ApiClient } from '../../../src/client/api-client.js';
import { resolveConnection } from '../../../src/client/connection.js';
import { connect } from '../../../src/client/http-api-client.js';
import { openSigner } from '../../../src/client/login.js';
import type { Agent } from '../../../src/contract/agents.js';
import type { Clock } from '../../../src/kernel/clock.js';
import { Sandbox, until } from '../../support/orch.js';

const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));
const NAME = 'bench-01';

export interface Fleet {
  readonly env: NodeJS.ProcessEnv;
  /** `orch` with these arguments. */
  orch(...args: readonly string[]): readonly string[];
  readonly name: string;
  readonly nodeId: string;
  /** For `--data-dir` of local runs; empty at first. */
  readonly dataDirectory: string;
  readonly api: ApiClient;
  /** Of the orchestrator's TLS certificate. */
  readonly fingerprint: string;
  readonly clock: Clock;
  readonly orchestratorPid: number;
  readonly agentPid: number;
  /** Resident memory of the orchestrator, in bytes. */
  orchestratorMemory(): number;
  agentMemory(): number;
  stop(): Promise<void>;
}

/** @param more further settings of the agent */
export async function startFleet(more: object = {}): Promise<Fleet> {
  const sandbox = new Sandbox();
  const run = async (...args: readonly string[]) => {
    const { status, stderr } = await sandbox.orch(args);
    if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}: ${stderr}`);
  };
  try {
    await run('operator', 'init');
    const { server, ready } = await sandbox.serve(['--terminal-per-operator', '2000']);
    await run('profile', 'create', 'bench', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint);
    await run('profile', 'use', 'bench');
    const config = sandbox.path('agent.yaml');
    const settings = { remote_terminal: { enabled: true, max_sessions: 1000 }, ...more };
    writeFileSync(config, JSON.stringify(settings), { mode: 0o600 });
    const words = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent'), '--config', config];
    const agent = sandbox.start(['agent', 'connect', ready.agent_address, ...words]);
    let agents: readonly Agent[] = [];
    await until(async () => {
      agents = await sandbox.json<Agent[]>(['agents', 'list']);
      return agents.length === 1;
    }, 'the agent waits');
    const nodeId = (agents[0] as Agent).node_id;
    await run('agents', 'approve', nodeId, '--name', NAME, '--yes');
    await until(async () => {
      const [listed] = await sandbox.json<Agent[]>(['agents', 'list']);
      return listed?.connected === true;
    }, 'the agent is connected');

    const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };
    const connection = {
      ...resolveConnection({
        flags: { url: ready.api_url, tlsFingerprint: ready.tls_fingerprint },
        env: sandbox.env,
        profiles: { path: '/nowhere', standard: null, byName: {} },
      }),
    };
    const signer = async () => openSigner(connection.key);
    const api = connect({ connection, signer, clock, newId: randomUUID, warn: () => {} });
    return {
      env: sandbox.env,
      orch: (...args) => [process.execPath, ORCH, ...args],
      name: NAME,
      nodeId,
      dataDirectory: sandbox.path('local'),
      api,
      fingerprint: ready.tls_fingerprint,
      clock,
      orchestratorPid: server.process.pid as number,
      agentPid: agent.process.pid as number,
      orchestratorMemory: () => residentMemory(server.process.pid as number),
      agentMemory: () => residentMemory(agent.process.pid as number),
      stop: async () => {
        api.close();
        await sandbox.dispose();
      },
    };
  } catch (error) {
    await sandbox.dispose();
    throw error;
  }
}

/** In bytes. */
export function residentMemory(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}
