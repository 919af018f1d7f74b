/** Forwards and ssh-proxy between real processes: real programs of OpenSSH, rsync, TCP and Unix sockets, cut links, refusals. */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import {
  auditEvents,
  closed,
  dial,
  echo,
  echoed,
  forward as forwardOn,
  readAll,
  Targets,
} from '../support/forwarding.js';
import { type Finished, ORCH, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';
import { canServeSsh, SshServer } from '../support/ssh-server.js';
import { NODE_NAME, TerminalFleet } from '../support/terminal-fleet.js';

const MEBIBYTE = 1024 * 1024;
let fleet: TerminalFleet;
const targets = new Targets();
const serve = targets.serve.bind(targets);
const forward = (...specs: readonly string[]) => forwardOn(fleet, ...specs);
const events = (type: string) => auditEvents(fleet.sandbox, type);

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

let echoPort = 0;

beforeAll(async () => {
  fleet = await TerminalFleet.start();
  echoPort = await serve(echo);
  configure({
    forward: ['127.0.0.1:*', 'localhost:*', fleet.sandbox.path('echo.sock'), fleet.sandbox.path('link.sock')],
  });
  await serve(echo, fleet.sandbox.path('echo.sock'));
  mkdirSync(fleet.sandbox.path('bin'));
  const script = `#!/bin/sh\nexec ${process.execPath} ${ORCH} "$@"\n`;
  writeFileSync(fleet.sandbox.path('bin', 'orch'), script, { mode: 0o755 });
  await until(async () => (await probe(echoPort)).status === 200, 'the agent has read its settings');
});

afterAll(async () => {
  targets.close();
  await fleet.dispose();
});

function configure(targets: { readonly forward?: readonly string[]; readonly ssh?: readonly string[] }): void {
  const { forward: permitted = [], ssh = [] } = targets;
  const lines = ['remote_terminal:', '  enabled: true', 'forward:', `  targets: ${JSON.stringify(permitted)}`];
  writeFileSync(
    fleet.sandbox.path('agent.yaml'),
    `${[...lines, 'ssh_proxy:', `  targets: ${JSON.stringify(ssh)}`].join('\n')}\n`,
  );
}

/** Opens a forward over the API, which ends by itself because nothing attaches. */
async function probe(port: number): Promise<{ status: number }> {
  try {
    const body = { targets: [{ host: '127.0.0.1', port }] };
    await fleet.api.call('openForward', { params: { node_id: fleet.nodeId }, body });
    return { status: 200 };
  } catch {
    return { status: 409 };
  }
}

it('shows with the agent what the settings of its machine permit', async () => {
  const attributes = async () =>
    (await fleet.sandbox.json<Agent>(['agents', 'show', NODE_NAME])).attributes as Readonly<Record<string, string>>;
  expect(await attributes()).toMatchObject({ permits_terminal: 'yes', permits_ssh_proxy: 'no' });
  await fleet.agent.stop();
  fleet.startAgent();
  await until(
    async () => (await attributes()).permits_forward?.startsWith('127.0.0.1:* localhost:* ') === true,
    'it reports them',
  );
  await until(async () => (await probe(echoPort)).status === 200, 'the agent is back');
});

describe('orch forward', () => {
  it('carries bytes both ways, and the half-closed ends of both sides', async () => {
    const asked: string[] = [];
    // Answers when the question has ended, as nc -N and many protocols do.
    const port = await serve((socket) => {
      void readAll(socket).then((bytes) => {
        asked.push(bytes.toString());
        socket.end(`you said ${bytes.length}`);
      });
    });
    const speaker = await serve((socket) => {
      socket.end('bye');
      void readAll(socket).then((bytes) => asked.push(`late ${bytes}`));
    });
    const { running, ports } = await forward(`0:127.0.0.1:${port}`, `0:localhost:${speaker}`);
    const [first = 0, second = 0] = ports;
    const socket = dial(first);
    socket.end('hello');
    expect((await readAll(socket)).toString()).toBe('you said 5');
    const listener = dial(second);
    expect((await readAll(listener)).toString()).toBe('bye');
    listener.end('still here');
    await until(() => asked.length === 2, 'both servers have read to the end');
    expect(asked).toEqual(['hello', 'late still here']);
    await running.stop('SIGINT');
  });

  it('carries many connections at the same time, exactly', async () => {
    const { running, port } = await forward(`0:127.0.0.1:${echoPort}`);
    const sums = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const data = randomBytes(200_000);
        const socket = dial(port);
        socket.end(data);
        return sha256(await readAll(socket)) === sha256(data);
      }),
    );
    expect(sums).toEqual(Array.from({ length: 60 }, () => true));
    await running.stop('SIGINT');
  });

  it('lets a slow reader hold back the sender, while other connections go on', async () => {
    let sent = 0;
    const flood = Buffer.alloc(64 * 1024, 'x');
    const port = await serve((socket) => {
      const more = () => {
        do sent += flood.length;
        while (socket.write(flood));
      };
      socket.on('drain', more);
      more();
    });
    const { running, ports } = await forward(`0:127.0.0.1:${port}`, `0:127.0.0.1:${echoPort}`);
    const [local = 0, echoed = 0] = ports;
    const stuck = dial(local);
    stuck.pause();
    let before = -1;
    await until(() => {
      const isStill = sent === before && sent > 0;
      before = sent;
      return isStill;
    }, 'the sender is held back');
    // Buffers of three kernel sockets, two links and one window.
    expect(sent).toBeLessThan(40 * MEBIBYTE);
    const other = dial(echoed);
    other.end('through');
    expect((await readAll(other)).toString()).toBe('through');
    stuck.destroy();
    await running.stop('SIGINT');
  });

  it('connects Unix sockets on either side, to which only their user may connect', async () => {
    const path = fleet.sandbox.path('local.sock');
    const { running } = await forward(`${path}:${fleet.sandbox.path('echo.sock')}`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const socket = dial(path);
    socket.end('over sockets');
    expect((await readAll(socket)).toString()).toBe('over sockets');
    await running.stop('SIGINT');
    expect(() => statSync(path)).toThrow();
  });

  it('refuses a permitted path that has become a link', async () => {
    const link = fleet.sandbox.path('link.sock');
    symlinkSync(fleet.sandbox.path('echo.sock'), link);
    const { running, port } = await forward(`0:${link}`);
    const socket = dial(port);
    await readAll(socket).catch(() => undefined);
    await until(() => running.output().includes('it is a link'), 'the refusal is shown');
    rmSync(link);
    await running.stop('SIGINT');
  });

  it('says when nothing listens, and goes on', async () => {
    const { running, port } = await forward('0:127.0.0.1:1', `0:127.0.0.1:${echoPort}`);
    await readAll(dial(port)).catch(() => undefined);
    await until(() => running.output().includes('cannot connect to 127.0.0.1:1: nothing listens there'), 'it says so');
    expect(running.process.exitCode).toBeNull();
    await running.stop('SIGINT');
  });

  it('ends open connections with a message when a link is cut, and connects anew', async () => {
    for (const cable of [fleet.agentCable, fleet.operatorCable]) {
      const { running, port } = await forward(`0:127.0.0.1:${echoPort}`);
      const open = dial(port);
      open.write('ping');
      await once(open, 'data');
      const ended = closed(open);
      cable.cut();
      await ended;
      await until(() => running.output().includes('the next one connects anew'), 'it tells the loss');
      await until(async () => {
        const again = dial(port);
        again.end('again');
        return (await readAll(again).catch(() => Buffer.alloc(0))).toString() === 'again';
      }, 'a new connection works');
      await running.stop('SIGINT');
    }
  });

  it('is recorded in the audit log with targets, bytes and duration, without content', async () => {
    const { running, port } = await forward(`0:127.0.0.1:${echoPort}`);
    const socket = dial(port);
    socket.end('a secret line');
    await readAll(socket);
    await running.stop('SIGINT');
    await until(async () => {
      const [closed] = await events('forward.closed');
      return closed?.metadata.bytes_sent === 13;
    }, 'the end is recorded');
    const [closed] = await events('forward.closed');
    expect(closed?.metadata).toMatchObject({
      kind: 'forward',
      reason: 'closed',
      connections: 1,
      bytes_sent: 13,
      bytes_received: 13,
      transfers: [{ target: `127.0.0.1:${echoPort}`, connections: 1, bytes_sent: 13, bytes_received: 13 }],
    });
    expect(closed?.metadata.duration_secs).toEqual(expect.any(Number));
    expect(JSON.stringify(await events('forward.opened'))).not.toContain('a secret line');
    expect(JSON.stringify(closed)).not.toContain('a secret line');
  });

  it('refuses what the agent does not permit, before it listens', async () => {
    const { status, stdout, stderr } = await fleet.sandbox.orch(['forward', NODE_NAME, '0:example.com:443']);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain('this agent permits no connections to example.com:443 of orch forward');
    expect(stderr).toContain('/etc/orch/agent.yaml');
    const [refused] = await events('forward.refused');
    expect(refused?.metadata).toMatchObject({ reason: 'forward_refused', targets: ['example.com:443'] });
  });

  it('ends a forward whose target is no longer permitted', async () => {
    const { running, port } = await forward(`0:127.0.0.1:${echoPort}`);
    const open = dial(port);
    open.write('ping');
    await once(open, 'data');
    const ended = closed(open);
    configure({ forward: [`127.0.0.1:${echoPort + 1}`] });
    await ended;
    await running.stop('SIGINT');
    configure({ forward: ['127.0.0.1:*', 'localhost:*'] });
    await until(async () => (await probe(echoPort)).status === 200, 'it is permitted again');
  });

  it('refuses viewers', async () => {
    const { sandbox } = fleet;
    const env = { XDG_CONFIG_HOME: sandbox.path('viewer') };
    const as = (...args: readonly string[]) => sandbox.orch(args, { env });
    const { public_key: key } = JSON.parse((await as('operator', 'init', '-o', 'json')).stdout) as {
      public_key: string;
    };
    await sandbox.orch(['operator', 'add', key, '--username', 'vera', '--role', 'viewer']);
    const { url, pin } = fleet.profile;
    await as('profile', 'create', 'test', '--url', url, '--tls-fingerprint', pin);
    await as('profile', 'use', 'test');
    expect(await as('forward', NODE_NAME, '0:127.0.0.1:1')).toMatchObject({ status: 4, stdout: '' });
    expect(await as('ssh-proxy', NODE_NAME)).toMatchObject({ status: 255, stdout: '' });
  });
});

describe('orch term -L', () => {
  const term = (...args: readonly string[]) => {
    const pty = new Pty([process.execPath, ORCH, 'term', NODE_NAME, ...args], {
      env: fleet.sandbox.env,
      cwd: fleet.sandbox.root,
    });
    onTestFinished(() => pty.kill());
    return pty;
  };

  it('forwards while the shell is open, and shows problems in it', async () => {
    const pty = term('-L', `0:127.0.0.1:${echoPort}`, '-L', '0:127.0.0.1:1');
    const [, good, bad] = (await pty.shows(/:(\d+) -> [\s\S]*:(\d+) -> \S+ 127\.0\.0\.1:1\s/)).map(Number);
    pty.write("echo re''ady\r");
    await pty.shows(/ready/);
    const open = await echoed(good ?? 0);
    dial(bad ?? 0).resume();
    await pty.shows(/orch: 127\.0\.0\.1:1: cannot connect to 127\.0\.0\.1:1: nothing listens there/);
    const ended = closed(open);
    pty.write('exit 3\r');
    await ended;
    expect(await pty.ended()).toBe(3);
    await expect(echoed(good ?? 0)).rejects.toThrow('was closed');
  });

  it('opens no shell when a forward is refused or wrong', async () => {
    const { sandbox } = fleet;
    const refused = await sandbox.orch(['term', NODE_NAME, '-L', '0:example.com:443']);
    expect(refused).toMatchObject({ status: 255, stdout: '' });
    expect(refused.stderr).toContain('permits no connections to example.com:443 of orch forward');
    const wrong = await sandbox.orch(['term', NODE_NAME, '-L', '8080']);
    expect(wrong).toMatchObject({ status: 64, stdout: '' });
    expect(wrong.stderr).toContain('"8080" is no forward');
    expect(await sandbox.json<unknown[]>(['term', 'list'])).toEqual([]);
  });
});

describe.skipIf(!canServeSsh())('through the sshd of the machine', () => {
  let sshd: SshServer;
  let ssh: readonly string[];

  function run(program: string, args: readonly string[], input = ''): Promise<Finished> {
    const path = `${fleet.sandbox.path('bin')}${delimiter}${dirname(process.execPath)}${delimiter}${process.env.PATH}`;
    const child = spawn(program, args, { env: { ...fleet.sandbox.env, PATH: path }, cwd: fleet.sandbox.root });
    const out = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => {
      out.stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      out.stderr += chunk;
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    return new Promise((resolve) => child.on('close', (status) => resolve({ status, ...out })));
  }

  beforeAll(async () => {
    sshd = await SshServer.start(fleet.sandbox.path('sshd'));
    configure({ forward: ['127.0.0.1:*'], ssh: [`localhost:${sshd.port}`] });
    const { stdout } = await fleet.sandbox.orch(['ssh-config']);
    const common = `Host *\n  Port ${sshd.port}\n  User root\n  IdentityFile ${sshd.key}\n  IdentitiesOnly yes\n  BatchMode yes\n`;
    const known = `  UserKnownHostsFile ${fleet.sandbox.path('known')}\n  StrictHostKeyChecking accept-new\n  LogLevel ERROR\n`;
    writeFileSync(fleet.sandbox.path('ssh.conf'), `${stdout}${common}${known}`);
    ssh = ['-F', fleet.sandbox.path('ssh.conf')];
    await until(async () => (await run('ssh', [...ssh, NODE_NAME, 'true'])).status === 0, 'ssh works');
  });

  afterAll(() => sshd?.stop());

  it('runs commands with their status, input and output', async () => {
    const found = await run('ssh', [...ssh, NODE_NAME, 'cat; echo problem >&2; exit 7'], 'typed\n');
    expect(found).toEqual({ status: 7, stdout: 'typed\n', stderr: 'problem\n' });
  });

  it('copies with scp and rsync', async () => {
    const data = randomBytes(5 * MEBIBYTE);
    writeFileSync(fleet.sandbox.path('data'), data);
    const to = (name: string) => `${NODE_NAME}:${fleet.sandbox.path(name)}`;
    expect(await run('scp', [...ssh, fleet.sandbox.path('data'), to('by-scp')])).toMatchObject({ status: 0 });
    expect(sha256(readFileSync(fleet.sandbox.path('by-scp')))).toBe(sha256(data));
    const shell = ['-e', `ssh ${ssh.join(' ')}`];
    expect(await run('rsync', [...shell, fleet.sandbox.path('data'), to('by-rsync')])).toMatchObject({ status: 0 });
    expect(sha256(readFileSync(fleet.sandbox.path('by-rsync')))).toBe(sha256(data));
  });

  it('is audited as an SSH connection, and a refused port ends with 255', async () => {
    const [closed] = await events('forward.closed');
    expect(closed?.metadata).toMatchObject({ kind: 'ssh-proxy', targets: [`localhost:${sshd.port}`], connections: 1 });
    const refused = await fleet.sandbox.orch(['ssh-proxy', NODE_NAME, '23']);
    expect(refused.status).toBe(255);
    expect(refused.stderr).toContain('permits no connections to localhost:23 of orch ssh-proxy');
  });
});

describe('rsync -e "orch exec"', () => {
  it('copies both ways, with spaces in names', async () => {
    const { sandbox } = fleet;
    mkdirSync(sandbox.path('from'));
    writeFileSync(sandbox.path('from', 'two words'), 'content');
    const env = { ...sandbox.env, PATH: `${sandbox.path('bin')}${delimiter}${process.env.PATH}` };
    const rsync = async (...args: readonly string[]) => {
      const child = spawn('rsync', ['-a', '-e', 'orch exec', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
      const [errors] = await Promise.all([readAll(child.stderr), once(child, 'close')]);
      return { status: child.exitCode, errors: errors.toString() };
    };
    const there = await rsync(`${sandbox.path('from')}/`, `${NODE_NAME}:${sandbox.path('to there')}/`);
    expect(there).toEqual({ status: 0, errors: '' });
    expect(await rsync(`${NODE_NAME}:${sandbox.path('to there', 'two words')}`, sandbox.path('back'))).toEqual({
      status: 0,
      errors: '',
    });
    expect(readFileSync(sandbox.path('back'), 'utf8')).toBe('content');
    expect((await rsync(`ada@${NODE_NAME}:/tmp/x`, sandbox.path('back'))).errors).toContain('does not choose a user');
  });
});
