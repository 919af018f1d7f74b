/** The agent over a long time: its memory and descriptors stay flat over applies, reconnects, and while it waits for approval. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent as Connections, request } from 'node:https';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { RunResult } from '../../src/contract/runs.js';
import { type Ready, Sandbox, until } from '../support/orch.js';

const APPLIES = Number(process.env.ORCH_SOAK_APPLIES ?? 10_000);
const RECONNECTS = Number(process.env.ORCH_SOAK_RECONNECTS ?? 1_000);
const FILES = 20;
const MEBIBYTE = 1024 * 1024;
/** More than what a collector leaves lying about, less than what any leak of a kilobyte a round makes. */
const SLACK = 16 * MEBIBYTE;

const sandbox = new Sandbox();
const https = new Connections({ keepAlive: true, rejectUnauthorized: false });
let ready: Ready;
let agent: ChildProcess;
let cable: Cable;
let token: string;

/** Carries the agent's connection, and cuts it. */
class Cable {
  readonly server: Server;
  private readonly sockets = new Set<Socket>();
  connections = 0;

  constructor(port: number) {
    this.server = createServer((socket) => {
      this.connections += 1;
      const far = connect(port, '127.0.0.1');
      for (const end of [socket, far]) {
        this.sockets.add(end);
        end.on('error', () => undefined);
        end.on('close', () => {
          this.sockets.delete(end);
          socket.destroy();
          far.destroy();
        });
      }
      socket.pipe(far);
      far.pipe(socket);
    });
  }

  async open(): Promise<number> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('the cable has no port');
    return address.port;
  }

  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }
}

function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = { authorization: `Bearer ${token}`, ...(text ? { 'content-type': 'application/json' } : {}) };
  return new Promise((resolve, reject) => {
    const outgoing = request(`${ready.api_url}/api/v1${path}`, { method, headers, agent: https }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString()) as T));
    });
    outgoing.on('error', reject);
    outgoing.end(text);
  });
}

const portOf = (address: string) => Number(/:(\d+)$/.exec(address)?.[1]);
const agents = () => call<Agent[]>('GET', '/agents');
const isConnected = async () => (await agents()).some(({ connected }) => connected);

interface Sample {
  readonly resident: number;
  readonly descriptors: number;
  readonly threads: number;
}

function sample(): Sample {
  const status = readFileSync(`/proc/${agent.pid}/status`, 'utf8');
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  return {
    resident: field('VmRSS') * 1024,
    descriptors: readdirSync(`/proc/${agent.pid}/fd`).length,
    threads: field('Threads'),
  };
}

const shown = ({ resident, descriptors, threads }: Sample) =>
  `${(resident / MEBIBYTE).toFixed(1)} MiB, ${descriptors} descriptors, ${threads} threads`;

function expectFlat(what: string, before: Sample, after: Sample): void {
  process.stderr.write(`${what}: ${shown(before)} -> ${shown(after)}\n`);
  expect(after.resident).toBeLessThan(before.resident + SLACK);
  expect(after.descriptors).toBeLessThanOrEqual(before.descriptors + 2);
  expect(after.threads).toBeLessThanOrEqual(before.threads + 1);
}

/** Cuts the connection again and again, each time when it is up. */
async function reconnect(times: number): Promise<void> {
  for (let round = 0; round < times; round += 1) {
    await until(isConnected, 'the agent is connected');
    const { connections } = cable;
    cable.cut();
    await until(() => cable.connections > connections, 'the agent dials again');
  }
  await until(isConnected, 'the agent is connected');
}

describe.skipIf(process.platform !== 'linux')('the agent over a long time (needs Linux)', () => {
  beforeAll(async () => {
    await sandbox.orch(['operator', 'init']);
    ({ ready } = await sandbox.serve());
    await sandbox.orch(['profile', 'create', 't', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint]);
    await sandbox.json(['login']);
    const tokens = sandbox.path('state', 'orch', 'tokens');
    const [file = ''] = readdirSync(tokens);
    token = (JSON.parse(readFileSync(`${tokens}/${file}`, 'utf8')) as { token: string }).token;
    cable = new Cable(portOf(ready.agent_address));
    const port = await cable.open();
    const program = fileURLToPath(new URL('programs/agent.mjs', import.meta.url));
    const dataDir = sandbox.path('agent');
    agent = spawn(process.execPath, [program, `127.0.0.1:${port}`, ready.public_key, dataDir], { stdio: 'inherit' });
  });

  afterAll(async () => {
    agent?.kill('SIGKILL');
    cable?.cut();
    cable?.server.close();
    https.destroy();
    await sandbox.dispose();
  });

  it('is bounded while it waits for approval', async () => {
    await reconnect(Math.ceil(RECONNECTS / 10));
    const before = sample();
    await reconnect(Math.ceil(RECONNECTS / 10));
    expectFlat('pending', before, sample());
  });

  it(`is flat over ${APPLIES} applies that change nothing`, async () => {
    const [one] = await agents();
    if (!one) throw new Error('the agent is not there');
    await call('POST', `/agents/${one.node_id}`, { status: 'approved', name: 'soak' });
    const files = Array.from(
      { length: FILES },
      (_, n) => `  - resource: {file-unix: {path: ${sandbox.path(`f${n}`)}, content: "${'x'.repeat(200)}\\n"}}`,
    );
    writeFileSync(
      sandbox.path('m.orch.yaml'),
      `name: soak\nsupports: [{platform: linux}]\nresources:\n${files.join('\n')}\n`,
    );
    await sandbox.json(['module', 'publish', sandbox.path('m.orch.yaml')]);
    let before: Sample | null = null;
    for (let round = 0; round < APPLIES; round += 1) {
      const { status, error } = await call<RunResult>('POST', `/agents/${one.node_id}/apply`, { modules: ['soak'] });
      expect({ status, error }).toEqual({ status: 'succeeded', error: null });
      if (round === Math.floor(APPLIES / 5)) before = sample();
    }
    if (before === null) throw new Error('nothing was measured');
    expectFlat('applies', before, sample());
  });

  it(`is flat over ${RECONNECTS} reconnects`, async () => {
    await reconnect(Math.ceil(RECONNECTS / 10));
    const before = sample();
    await reconnect(RECONNECTS);
    expectFlat('reconnects', before, sample());
  });
});
