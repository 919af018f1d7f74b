/** A real PgBouncer in front of a test's PostgreSQL. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { freePort } from './postgres.js';
import { until } from './until.js';

const PATH = `${process.env.PATH}${delimiter}/usr/sbin`;

/** Why no pooler can be started here, or null. */
export const noPgbouncer: string | null =
  spawnSync('pgbouncer', ['--version'], { env: { PATH } }).status === 0 ? null : 'pgbouncer is not installed';

export class TestPgbouncer {
  readonly port: number;
  private readonly child: ChildProcess;
  private readonly directory: string;

  private constructor(port: number, child: ChildProcess, directory: string) {
    this.port = port;
    this.child = child;
    this.directory = directory;
  }

  static async start(target: number, mode: 'session' | 'transaction'): Promise<TestPgbouncer> {
    const directory = mkdtempSync(join(tmpdir(), 'orch-pgbouncer-'));
    chmodSync(directory, 0o755);
    const port = await freePort();
    const file = join(directory, 'pgbouncer.ini');
    const users = join(directory, 'users');
    writeFileSync(users, '"orch" ""\n');
    writeFileSync(
      file,
      [
        '[databases]',
        `* = host=127.0.0.1 port=${target}`,
        '[pgbouncer]',
        'listen_addr = 127.0.0.1',
        `listen_port = ${port}`,
        'auth_type = trust',
        `auth_file = ${users}`,
        `pool_mode = ${mode}`,
        'default_pool_size = 20',
        'unix_socket_dir =',
        '',
      ].join('\n'),
    );
    // It refuses to run as root.
    const isRoot = process.geteuid?.() === 0;
    const child = spawn('pgbouncer', ['-q', ...(isRoot ? ['-u', 'nobody'] : []), file], {
      stdio: 'ignore',
      env: { PATH },
    });
    const pooler = new TestPgbouncer(port, child, directory);
    await until(() => answers(port), 'pgbouncer listens');
    return pooler;
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    if (this.child.exitCode === null) this.child.kill('SIGKILL');
    await ended;
    rmSync(this.directory, { recursive: true, force: true });
  }
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
