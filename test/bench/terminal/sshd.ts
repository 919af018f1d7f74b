/** An OpenSSH server of its own on the loopback, with keys of its own: the peer of remote terminals. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const SSHD = '/usr/sbin/sshd';
/** Where the server leaves its privileges; distributions make it when the service starts. */
const PRIVILEGES = '/run/sshd';

export interface Sshd {
  /** `ssh -tt`, and the same over a jump host. */
  readonly direct: readonly string[];
  readonly jump: readonly string[];
  readonly port: number;
  /** The direct one over another port of the loopback, which leads to it. */
  over(port: number): readonly string[];
  stop(): Promise<void>;
}

/** Resolves to null when there is none, or it refuses the key; `missing` gets the reason. */
export async function startSshd(missing: (reason: string) => void): Promise<Sshd | null> {
  if (!existsSync(SSHD) || process.getuid?.() !== 0) {
    missing('its server is not installed, or this is not root; apt-get install openssh-server');
    return null;
  }
  const directory = mkdtempSync(join(tmpdir(), 'orch-bench-ssh-'));
  const madePrivileges = !existsSync(PRIVILEGES);
  mkdirSync(PRIVILEGES, { recursive: true });
  const port = await freePort();
  const server = spawn(SSHD, ['-D', '-e', '-f', writeConfigs(directory, port)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  server.stderr.on('data', (text) => {
    log += text;
  });
  const stop = async () => {
    await end(server);
    rmSync(directory, { recursive: true, force: true });
    if (madePrivileges) rmSync(PRIVILEGES, { recursive: true, force: true });
  };
  const ssh = ['/usr/bin/ssh', '-F', join(directory, 'client')];
  for (let round = 0; round < 50; round += 1) {
    if (spawnSync(ssh[0] as string, [...ssh.slice(1), 'bench', 'true']).status === 0) {
      return {
        direct: [...ssh, '-tt', 'bench'],
        jump: [...ssh, '-tt', '-J', 'jump', 'bench'],
        port,
        over: (other) => [...ssh, '-p', String(other), '-tt', 'bench'],
        stop,
      };
    }
    await wait(100);
  }
  await stop();
  missing(log.trim().split('\n').at(-1) ?? '');
  return null;
}

function writeConfigs(directory: string, port: number): string {
  for (const name of ['host', 'user']) {
    spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(directory, name)]);
  }
  writeFileSync(join(directory, 'authorized'), readFileSync(join(directory, 'user.pub')));
  const server = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(directory, 'host')}`,
    `AuthorizedKeysFile ${join(directory, 'authorized')}`,
    'PidFile none',
    'StrictModes no',
    'UsePAM no',
    'PermitRootLogin yes',
    'PrintMotd no',
    'PrintLastLog no',
  ];
  const client = [
    'Host bench jump',
    '  HostName 127.0.0.1',
    `  Port ${port}`,
    `  User ${userInfo().username}`,
    `  IdentityFile ${join(directory, 'user')}`,
    '  IdentitiesOnly yes',
    `  UserKnownHostsFile ${join(directory, 'known')}`,
    '  StrictHostKeyChecking accept-new',
    '  LogLevel ERROR',
  ];
  writeFileSync(join(directory, 'server'), `${server.join('\n')}\n`);
  writeFileSync(join(directory, 'client'), `${client.join('\n')}\n`);
  return join(directory, 'server');
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('there is no free port');
  return address.port;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill();
  await ended;
}
