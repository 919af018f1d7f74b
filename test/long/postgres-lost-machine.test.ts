/** The server frees the lock of the store when the machine of its orchestrator loses the network. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, cpSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type CableSpec, layCable, removeCable, setCable } from '../hosts/cable.js';
import { mustRun } from '../hosts/command.js';
import { isRoot } from '../support/agent.js';
import { ORCH, Sandbox, until } from '../support/orch.js';
import { noPostgres, TestPostgres } from '../support/postgres.js';

const SERVER = '10.213.77.1';
const BRIDGE = 'orch-lost';

const why = noPostgres ?? (isRoot ? null : 'a network of its own needs root');
const NAME = `a store whose orchestrator lost its network${why === null ? '' : ` (skipped: ${why})`}`;

describe.skipIf(why !== null)(NAME, () => {
  const sandbox = new Sandbox();
  const cable: CableSpec = {
    bridge: BRIDGE,
    port: 'orch-lost-1',
    address: '10.213.77.2',
    namespace: sandbox.path('network'),
  };
  let postgres: TestPostgres;
  let url: string;

  beforeAll(async () => {
    await mustRun(['ip', 'link', 'add', BRIDGE, 'type', 'bridge']);
    await mustRun(['ip', 'address', 'add', `${SERVER}/24`, 'dev', BRIDGE]);
    await mustRun(['ip', 'link', 'set', BRIDGE, 'up']);
    await layCable(cable);
    postgres = await TestPostgres.start({
      conf: [`listen_addresses = '${SERVER}'`],
      hba: ['local all all trust', `host all all ${SERVER}/24 trust`],
    });
    await postgres.createDatabase('store');
    url = `postgres://orch@${SERVER}:${postgres.port}/store?sslrootcert=${await giveCertificate()}`;
  });

  /** Gives the server a certificate for its address, and returns the file to verify it with. */
  async function giveCertificate(): Promise<string> {
    const [key, certificate] = [join(postgres.data, 'server.key'), join(postgres.data, 'server.crt')];
    const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
    const name = ['-subj', '/CN=store', '-addext', `subjectAltName=IP:${SERVER}`];
    await mustRun(['openssl', 'req', ...kind, ...name, '-keyout', key, '-out', certificate]);
    const { uid, gid } = statSync(postgres.data);
    for (const file of [key, certificate]) chownSync(file, uid, gid);
    chmodSync(key, 0o600);
    postgres.configure(['ssl = on']);
    await postgres.reload();
    const ca = sandbox.path('ca.pem');
    copyFileSync(certificate, ca);
    return ca;
  }

  afterAll(async () => {
    await postgres?.remove();
    await removeCable(cable);
    await mustRun(['ip', 'link', 'delete', BRIDGE]);
    await sandbox.dispose();
  });

  /** Starts an orchestrator in the other network, and waits until it is ready. */
  async function serveThere(): Promise<ChildProcess> {
    const ready = sandbox.path('there.json');
    const ports = ['--api-port', '0', '--agent-port', '0', '--agent-host', '127.0.0.1'];
    const args = ['serve', ...ports, '--data-dir', sandbox.path('serve'), '--ready-file', ready, '--store', url];
    const child = spawn('nsenter', [`--net=${cable.namespace}`, process.execPath, ORCH, ...args], {
      env: sandbox.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    onTestFinished(() => void child.kill('SIGKILL'));
    await until(() => existsSync(ready) || child.exitCode !== null, 'the orchestrator there is ready');
    if (!existsSync(ready)) throw new Error(`orch serve ended early:\n${output}`);
    return child;
  }

  it('lets another orchestrator begin, and the lost one ends when it is back', async () => {
    await sandbox.orch(['operator', 'init']);
    const lost = await serveThere();
    const data = sandbox.path('standby');
    cpSync(sandbox.path('serve'), data, {
      recursive: true,
      filter: (path) => path === sandbox.path('serve') || path.endsWith('.key'),
    });
    const refused = await sandbox.serve(['--data-dir', data, '--store', url]).catch((error: Error) => error.message);
    expect(refused).toContain('is in use by another orchestrator');
    await setCable(cable, 'down');
    // The start waits for the lock longer than the server waits for keepalives.
    const { server } = await sandbox.serve(['--data-dir', data, '--store', url]);
    await setCable(cable, 'up');
    expect(server.process.exitCode).toBeNull();
    expect(await server.stop()).toBe(0);
    // The lost orchestrator takes the lock again and finds another writer.
    await until(() => lost.exitCode !== null, 'the lost orchestrator has ended');
    expect(lost.exitCode).not.toBe(0);
  });
});
