/** A real PostgreSQL of Debian's packages in a temporary directory, never a service of the machine. */
import { execFile, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from './until.js';

const run = promisify(execFile);

/** Directory of the newest installed server's programs, or null. */
export const postgresPrograms: string | null = (() => {
  const root = '/usr/lib/postgresql';
  const releases = existsSync(root)
    ? readdirSync(root)
        .map(Number)
        .filter((release) => release >= 14)
    : [];
  const newest = releases
    .sort((a, b) => b - a)
    .find((release) => existsSync(join(root, String(release), 'bin/initdb')));
  return newest === undefined ? null : join(root, String(newest), 'bin');
})();

/** Why no server can be started here, or null. */
export const noPostgres: string | null = (() => {
  if (postgresPrograms === null) return 'PostgreSQL is not installed (Debian: postgresql)';
  if (process.geteuid?.() !== 0 || account() !== null) return null;
  return 'PostgreSQL refuses to run as root, and there is no user postgres';
})();

/** User and group that the server runs as when the tests run as root. */
function account(): { readonly uid: number; readonly gid: number } | null {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((one) => one.startsWith('postgres:'));
  const [, , uid, gid] = line?.split(':') ?? [];
  return uid === undefined || gid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
}

const asServer = () => (process.geteuid?.() === 0 ? (account() ?? {}) : {});

export interface PostgresOptions {
  /** Lines of postgresql.conf. */
  readonly conf?: readonly string[];
  /** Parent of the data directory [default: memory where there is some]. */
  readonly parent?: string;
  /** Lines of pg_hba.conf [default: trust everyone on this machine]. */
  readonly hba?: readonly string[];
}

export class TestPostgres {
  readonly directory: string;
  readonly port: number;

  private constructor(directory: string, port: number) {
    this.directory = directory;
    this.port = port;
  }

  /** Makes and starts a server with the superuser `orch`. Its data are in memory, so that durable commits are quick. */
  static async start(options: PostgresOptions = {}): Promise<TestPostgres> {
    const server = new TestPostgres(makeDirectory(options.parent), await freePort());
    const { data } = server;
    const hba = ['local all all trust', 'host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'];
    try {
      await server.program('initdb', [
        '-D',
        data,
        '-U',
        'orch',
        '-A',
        'trust',
        '-E',
        'UTF8',
        '--locale=C',
        '--no-sync',
      ]);
      server.configure([...DEFAULTS, ...(options.conf ?? [])]);
      writeFileSync(join(data, 'pg_hba.conf'), `${(options.hba ?? hba).join('\n')}\n`);
      await server.boot();
      return server;
    } catch (error) {
      await server.remove();
      throw error;
    }
  }

  /** A standby of this server, which follows it as `name`. */
  async standby(name: string): Promise<TestPostgres> {
    const other = new TestPostgres(makeDirectory(), await freePort());
    const source = `host=127.0.0.1 port=${this.port} user=orch application_name=${name}`;
    await this.program('pg_basebackup', [
      '-D',
      other.data,
      '-d',
      source,
      '-R',
      '-X',
      'stream',
      '-c',
      'fast',
      '--no-sync',
    ]);
    other.configure([`port = ${other.port}`, `unix_socket_directories = '${other.directory}'`]);
    await other.boot();
    return other;
  }

  get data(): string {
    return join(this.directory, 'data');
  }

  url(database = 'postgres'): string {
    return `postgres://orch@127.0.0.1:${this.port}/${database}`;
  }

  configure(lines: readonly string[]): void {
    const file = join(this.data, 'postgresql.auto.conf');
    const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
    const own = [`port = ${this.port}`, `unix_socket_directories = '${this.directory}'`];
    writeFileSync(file, `${before}\n${[...own, ...lines].join('\n')}\n`);
  }

  async boot(): Promise<void> {
    // Not through pipes: the server would keep them open.
    await this.program('pg_ctl', ['-D', this.data, '-l', join(this.directory, 'log'), '-w', '-t', '120', 'start']);
  }

  /** Ends the server as a crash of its machine does: all of its processes at once. */
  async kill(): Promise<void> {
    const { pid } = this;
    const children = await run('pgrep', ['-P', String(pid)]).then(
      ({ stdout }) => stdout.split('\n').filter(Boolean).map(Number),
      () => [],
    );
    const processes = [pid, ...children];
    for (const one of processes) endAtOnce(one);
    // Its memory belongs to its processes until the last one is gone.
    await until(() => processes.every((one) => !existsSync(`/proc/${one}/exe`)), 'the server has ended');
    // Whatever adopts its processes may take a while to forget them.
    const locks = [join(this.data, 'postmaster.pid'), join(this.directory, `.s.PGSQL.${this.port}.lock`)];
    for (const lock of locks) rmSync(lock, { force: true });
  }

  /** Process ID of the server's first process. */
  get pid(): number {
    return Number(readFileSync(join(this.data, 'postmaster.pid'), 'utf8').split('\n')[0]);
  }

  async stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    await this.program('pg_ctl', ['-D', this.data, '-m', mode, '-w', 'stop']);
  }

  async promote(): Promise<void> {
    await this.program('pg_ctl', ['-D', this.data, '-w', 'promote']);
  }

  async reload(): Promise<void> {
    await this.program('pg_ctl', ['-D', this.data, 'reload']);
  }

  /** Runs SQL and returns what psql prints, without decoration. */
  async sql(text: string, database = 'postgres'): Promise<string> {
    const args = [
      '-X',
      '-q',
      '-A',
      '-t',
      '-v',
      'ON_ERROR_STOP=1',
      '-h',
      this.directory,
      '-p',
      String(this.port),
      '-U',
      'orch',
    ];
    const { stdout } = await run(join(postgresPrograms ?? '', 'psql'), [...args, '-d', database, '-c', text]);
    return stdout.trim();
  }

  /** Creates a database, as a copy of another one if one is named. */
  async createDatabase(name: string, template = 'template1'): Promise<string> {
    await this.sql(`create database "${name}" template "${template}"`);
    return this.url(name);
  }

  async remove(): Promise<void> {
    if (existsSync(join(this.data, 'postmaster.pid'))) await this.stop('immediate').catch(() => this.kill());
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** End of the server's log. */
  log(): string {
    const file = join(this.directory, 'log');
    return existsSync(file) ? readFileSync(file, 'utf8').slice(-2000) : '';
  }

  private program(name: string, args: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = spawn(join(postgresPrograms ?? '', name), [...args], {
        ...asServer(),
        cwd: '/',
        stdio: ['ignore', 'ignore', name === 'pg_ctl' ? 'ignore' : 'pipe'],
        env: { PATH: process.env.PATH, LANG: 'C.UTF-8' },
      });
      let text = '';
      child.stderr?.on('data', (part) => {
        text += part;
      });
      child.once('error', reject);
      child.once('exit', (code) =>
        code === 0 ? resolve() : reject(new Error(`${name} ended with ${code}: ${text || this.log()}`)),
      );
    });
  }
}

function endAtOnce(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}

const DEFAULTS = [
  "listen_addresses = '127.0.0.1'",
  'max_connections = 300',
  'shared_buffers = 64MB',
  'max_wal_size = 256MB',
  'min_wal_size = 32MB',
  'autovacuum = off',
  'log_min_messages = warning',
];

function makeDirectory(parent = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()): string {
  const directory = mkdtempSync(join(parent, 'orch-postgres-'));
  const { uid, gid } = asServer() as { readonly uid?: number; readonly gid?: number };
  chmodSync(directory, 0o755);
  mkdirSync(join(directory, 'data'), { mode: 0o700 });
  if (uid !== undefined && gid !== undefined) {
    for (const path of [directory, join(directory, 'data')]) chownSync(path, uid, gid);
  }
  return directory;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
