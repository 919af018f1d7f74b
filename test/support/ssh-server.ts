/** A real sshd on loopback with keys of its own, and the files with which the programs of OpenSSH reach it. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { until } from './until.js';

const ROOT_ONLY = 0o600;

/** True where the tests may run sshd: its private directories need namespaces of mounts. */
export const canServeSsh = (): boolean =>
  process.geteuid?.() === 0 &&
  ['sshd', 'ssh', 'ssh-keygen', 'unshare'].every((name) => spawnSync('which', [name]).status === 0);

/** Runs in namespaces of its own, because sshd wants a user and a directory that a machine without its package has not. */
const IN_NAMESPACE =
  'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && mount --bind "$1" /etc/passwd && exec "$2" -D -e -f "$3"';

export class SshServer {
  readonly port: number;
  /** Private key that may log in as root. */
  readonly key: string;
  private readonly process: ChildProcess;
  private log = '';

  private constructor(port: number, key: string, server: ChildProcess) {
    this.port = port;
    this.key = key;
    this.process = server;
    server.stderr?.on('data', (chunk) => {
      this.log += chunk;
    });
  }

  /** @param directory empty directory for its files */
  static async start(directory: string): Promise<SshServer> {
    mkdirSync(directory, { recursive: true });
    const path = (name: string) => join(directory, name);
    for (const name of ['host', 'client']) {
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path(name)]);
    }
    const users = readFileSync('/etc/passwd', 'utf8');
    const own = /^sshd:/m.test(users) ? '' : 'sshd:x:64999:65534::/run/sshd:/usr/sbin/nologin\n';
    writeFileSync(path('passwd'), users + own);
    writeFileSync(path('authorized'), readFileSync(path('client.pub')), { mode: ROOT_ONLY });
    const port = await freePort();
    const lines = [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${path('host')}`,
      `AuthorizedKeysFile ${path('authorized')}`,
      'PermitRootLogin prohibit-password',
      'StrictModes no',
      'UsePAM no',
      'PidFile none',
      'PrintMotd no',
      'Subsystem sftp internal-sftp',
    ];
    writeFileSync(path('config'), `${lines.join('\n')}\n`);
    chmodSync(path('client'), ROOT_ONLY);
    const sshd = execFileSync('which', ['sshd'], { encoding: 'utf8' }).trim();
    const server = spawn(
      'unshare',
      ['-m', '--propagation', 'private', 'sh', '-c', IN_NAMESPACE, 'sh', path('passwd'), sshd, path('config')],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    const started = new SshServer(port, path('client'), server);
    await until(async () => {
      if (server.exitCode !== null) throw new Error(`sshd ended: ${started.log}`);
      return await accepts(port);
    }, 'sshd listens');
    return started;
  }

  async stop(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await ended;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('there is no free port');
  return address.port;
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
