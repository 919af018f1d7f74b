/** The example configurations of nginx and Caddy, with the real programs on loopback in front of a real orchestrator. */
import { spawn } from 'node:child_process';
import { createHash, createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:net';
import { describe, expect, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import type { Agent } from '../../src/contract/agents.js';
import { selfSignedP256 } from '../../src/identity/certificate.js';
import { freePort } from '../support/free-port.js';
import { itNeeding } from '../support/needing.js';
import { Sandbox, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';
import { TEST_SHELL } from '../support/test-shell.js';

const example = (name: string) => readFileSync(new URL(`../../examples/proxies/${name}`, import.meta.url), 'utf8');

interface Ports {
  readonly proxy: number;
  readonly api: number;
}

/** Writes the configuration of a proxy for these ports below a directory. Returns the command that runs it in the foreground. */
type Proxy = (directory: string, ports: Ports) => readonly string[];

/** Replaces a part of an example. Throws when the example does not have it, because the test would then test something else. */
function replaced(text: string, part: string, by: string): string {
  if (!text.includes(part)) throw new Error(`the example has no "${part}"`);
  return text.replaceAll(part, by);
}

function nginx(directory: string, { proxy, api }: Ports, changed = (site: string) => site): readonly string[] {
  let site = replaced(example('nginx.conf'), 'listen 443 ssl;', `listen 127.0.0.1:${proxy} ssl;`);
  site = replaced(site, '    listen [::]:443 ssl;\n', '');
  site = replaced(site, 'orch.example.org', 'localhost');
  site = replaced(site, '/etc/nginx/tls', directory);
  site = changed(replaced(site, '127.0.0.1:4748', `127.0.0.1:${api}`));
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${directory}/${name};`,
  );
  const base = `daemon off;\nmaster_process off;\npid ${directory}/nginx.pid;\nerror_log stderr;\nevents {}`;
  const file = `${directory}/nginx.conf`;
  writeFileSync(file, `${base}\nhttp {\naccess_log off;\n${places.join('\n')}\n${site}}\n`);
  return ['nginx', '-e', 'stderr', '-p', directory, '-c', file];
}

function caddy(directory: string, { proxy, api }: Ports): readonly string[] {
  let site = replaced(example('Caddyfile'), 'orch.example.org {', `localhost:${proxy} {\n\tbind 127.0.0.1`);
  site = replaced(site, '/etc/caddy/tls', directory);
  site = replaced(site, '127.0.0.1:4748', `127.0.0.1:${api}`);
  const file = `${directory}/Caddyfile`;
  writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system ${directory}\n}\n${site}`);
  return ['caddy', 'run', '--adapter', 'caddyfile', '--config', file];
}

/** Moves a site below a path, as the guide describes it. */
const belowPath = (site: string): string =>
  replaced(site, 'location / {', 'location /orch/ {').replace(/(proxy_pass [^;]+);/, '$1/;');

const PROXIES: readonly {
  readonly name: string;
  readonly program: string;
  readonly path: string;
  readonly proxy: Proxy;
}[] = [
  { name: 'nginx', program: 'nginx', path: '', proxy: nginx },
  {
    name: 'nginx, below a path',
    program: 'nginx',
    path: '/orch',
    proxy: (directory, ports) => nginx(directory, ports, belowPath),
  },
  { name: 'Caddy', program: 'caddy', path: '', proxy: caddy },
];

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });

/** An orchestrator with the example settings behind a proxy, and an agent that allows terminals. */
async function world({
  proxy,
  path,
}: Pick<(typeof PROXIES)[number], 'proxy' | 'path'>): Promise<{ readonly sandbox: Sandbox; readonly url: string }> {
  const sandbox = new Sandbox();
  onTestFinished(() => sandbox.dispose());
  const directory = sandbox.path('proxy');
  mkdirSync(directory);
  const ports = { proxy: await freePort(), api: await freePort() };
  const spki = writeCertificate(directory);

  const [program = '', ...args] = proxy(directory, ports);
  const child = spawn(program, args, { env: { ...sandbox.env, XDG_DATA_HOME: directory }, cwd: directory });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const ended = new Promise((resolve) => child.on('close', resolve));
  onTestFinished(async () => {
    child.kill('SIGTERM');
    await ended;
  });

  const settings = parse(example('orchestrator.yaml')) as Record<string, unknown>;
  const config = sandbox.path('orchestrator.yaml');
  writeFileSync(config, JSON.stringify({ ...settings, api_port: ports.api, api_spki: spki }));
  expect((await sandbox.orch(['operator', 'init'])).status).toBe(0);
  // The sandbox chooses a port itself; the last flag counts.
  const { ready } = await sandbox.serve(['--config', config, '--api-port', String(ports.api)]);
  await until(async () => child.exitCode !== null || (await isListening(ports.proxy)), 'the proxy listens');
  if (child.exitCode !== null) throw new Error(`${program} ended early:\n${output}`);

  const url = `https://localhost:${ports.proxy}${path}`;
  await sandbox.json(['profile', 'create', 'proxied', '--url', url, '--tls-fingerprint', spki]);
  const agentConfig = sandbox.path('agent.yaml');
  writeFileSync(agentConfig, `remote_terminal:\n  enabled: true\n  shell: ${TEST_SHELL}\n`, { mode: 0o600 });
  const words = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent'), '--config', agentConfig];
  sandbox.start(['agent', 'connect', ready.agent_address, ...words]);
  let agents: Agent[] = [];
  await until(async () => {
    agents = await sandbox.json<Agent[]>(['agents', 'list']);
    return agents.length === 1;
  }, 'the agent waits');
  await sandbox.json(['agents', 'approve', agents[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
  await until(async () => (await sandbox.json<Agent[]>(['agents', 'list']))[0]?.connected === true, 'it is connected');
  return { sandbox, url };
}

/** An apply as its stream tells of it. */
interface StreamedApply {
  text: string;
  isOver: boolean;
}

/** Begins an apply of the module `stream` with the session of the command, and collects the lines of its stream. */
function streamedApply(sandbox: Sandbox, url: string, node: string): StreamedApply {
  const state = readFileSync(sandbox.path('state/orch/tokens/profile-proxied.json'), 'utf8');
  const { token } = JSON.parse(state) as { token: string };
  const headers = {
    authorization: `Bearer ${token}`,
    accept: 'application/x-ndjson',
    'content-type': 'application/json',
  };
  const apply: StreamedApply = { text: '', isOver: false };
  const sent = request(`${url}/api/v1/agents/${node}/apply`, { method: 'POST', headers, rejectUnauthorized: false });
  sent.on('error', (error) => Object.assign(apply, { text: `${apply.text}${error.message}`, isOver: true }));
  sent.on('response', (response) => {
    response.on('data', (chunk) => (apply.text += chunk));
    response.on('close', () => (apply.isOver = true));
  });
  sent.end('{"modules": ["stream"]}');
  return apply;
}

/** Writes a certificate and its key, as the examples name them. Returns the fingerprint that clients pin. */
function writeCertificate(directory: string): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const cert = selfSignedP256({ privateKey: createPrivateKey(pem), dnsNames: ['localhost'], addresses: ['127.0.0.1'] });
  writeFileSync(`${directory}/orch.key`, pem, { mode: 0o600 });
  writeFileSync(`${directory}/orch.crt`, cert);
  const spki = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('hex');
}

/** Seconds after which the proxy cuts a silent connection: above the 15 s between two heartbeats, and far below a minute. */
const CUT_SECS = 20;
/** Seconds without anything to say. */
const QUIET_SECS = 26;

describe('behind a proxy that cuts silent connections', () => {
  itNeeding('nginx')('an apply and a command without output end as they do without it', async () => {
    const cutting = (site: string) => site.replaceAll(/(proxy_(?:read|send)_timeout) [^;]+;/g, `$1 ${CUT_SECS}s;`);
    const changed = (site: string) => {
      expect(cutting(site)).toContain(`proxy_read_timeout ${CUT_SECS}s;`);
      return cutting(site);
    };
    const proxy: Proxy = (directory, ports) => nginx(directory, ports, changed);
    const { sandbox } = await world({ proxy, path: '' });
    const file = sandbox.path('quiet.orch.yaml');
    const resource = { script: { program: 'sh', manages: 'quiet', apply: `sleep ${QUIET_SECS}` } };
    writeFileSync(
      file,
      JSON.stringify({ name: 'quiet', supports: [{ platform: 'linux' }], resources: [{ resource }] }),
    );
    const command = ['sh', '-c', `sleep ${QUIET_SECS}; echo done`];
    const [applied, ran] = await Promise.all([
      sandbox.orch(['apply', 'web-01', '-f', file, '--yes']),
      sandbox.orch(['exec', 'web-01', '--', ...command]),
    ]);
    expect(applied).toMatchObject({ status: 0, stdout: expect.stringContaining('Applied') });
    // A cut would not fail the apply, because the client follows it again.
    expect(applied.stderr).not.toContain('The connection broke');
    expect(ran).toMatchObject({ status: 0, stdout: 'done\n' });
  });
});

describe.each(PROXIES)('behind $name', ({ program, proxy, path }) => {
  itNeeding(program)('status, an apply line by line, the audit feed, a command and a terminal work', async () => {
    const { sandbox, url } = await world({ proxy, path });
    expect((await sandbox.orch(['status'])).stdout).toMatch(/Status +ok/);

    // The second script ends only when the line about the first one has arrived here: a proxy that buffers would hang.
    const seen = sandbox.path('seen');
    const first = sandbox.path('first');
    const waits = `for i in $(seq 600); do [ -e ${seen} ] && exit 0; sleep 0.1; done; exit 1`;
    const file = sandbox.path('stream.orch.yaml');
    writeFileSync(
      file,
      JSON.stringify({
        name: 'stream',
        supports: [{ platform: 'linux' }],
        resources: [
          { resource: { 'file-unix': { path: first, content: 'x\n' } } },
          { resource: { script: { program: 'sh', manages: 'wait', apply: waits } } },
        ],
      }),
    );
    await sandbox.json(['module', 'publish', file]);
    const [agent] = await sandbox.json<Agent[]>(['agents', 'list']);
    const apply = streamedApply(sandbox, url, agent?.node_id ?? '');
    await until(() => apply.text.includes(first) || apply.isOver, 'the first line arrives');
    expect(apply).toMatchObject({ isOver: false });
    writeFileSync(seen, '');
    await until(() => apply.isOver, 'the apply ends');
    expect(apply.text.trim().split('\n').at(-1)).toContain('"status":"succeeded"');
    expect(existsSync(first)).toBe(true);

    const tail = sandbox.start(['audit', 'tail', '--after', '1h ago', '-o', 'json']);
    await until(() => tail.output().includes('agent.approved'), 'the feed has begun');
    await sandbox.json(['secrets', 'set', 'PROXIED', '--value', 'x']);
    await until(() => tail.output().includes('secret.created'), 'the feed goes on');
    await tail.stop();

    expect(await sandbox.orch(['exec', 'web-01', '--', 'echo', 'across'])).toMatchObject({
      status: 0,
      stdout: 'across\n',
    });

    const pty = new Pty([process.execPath, sandbox.program, 'term', 'web-01'], { env: sandbox.env, cwd: sandbox.root });
    onTestFinished(() => pty.kill());
    await pty.shows(/[$#] $/);
    pty.write('echo $((6 * 7)); exit\r');
    await pty.shows(/42/);
  });
});
