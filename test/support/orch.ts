/** The built `orch` as real processes, in a home of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { refuseRuntimeWarnings } from './runtime-warnings.js';
import { releaseStore, urlOf } from './store-urls.js';
import { until } from './until.js';

export { until } from './until.js';

export const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));

export interface Finished {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly process: ChildProcess;
  /** Everything it has printed so far, both streams. */
  output(): string;
  /** Sends a signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface Ready {
  readonly api_url: string;
  readonly agent_address: string;
  readonly tls_fingerprint: string;
  readonly public_key: string;
  readonly pid: number;
}

/** A user with an empty home, and the programs that they start. */
export class Sandbox {
  readonly root = mkdtempSync(join(tmpdir(), 'orch-test-'));
  readonly env: NodeJS.ProcessEnv;
  /** The built command: this one, or that of another release, which may take its place. */
  program: string;
  private readonly running: Running[] = [];
  /** Paths that stores on PostgreSQL would have. */
  private readonly stores = new Set<string>();

  constructor(program: string = ORCH) {
    this.program = program;
    const inherited = Object.entries(process.env).filter(([name]) => !/^(ORCH_|XDG_|npm_|NODE_|VITEST)/.test(name));
    this.env = {
      ...Object.fromEntries(inherited),
      HOME: this.root,
      XDG_CONFIG_HOME: join(this.root, 'config'),
      XDG_STATE_HOME: join(this.root, 'state'),
      NO_COLOR: '1',
    };
  }

  path(...parts: readonly string[]): string {
    return join(this.root, ...parts);
  }

  /** Returns the variable that names the database of a data directory to `orch serve`; none for tests on SQLite. */
  storeOf(args: readonly string[]): NodeJS.ProcessEnv {
    const directory = args[args.indexOf('--data-dir') + 1];
    if (args[0] !== 'serve' || directory === undefined || !args.includes('--data-dir')) return {};
    const file = join(directory, 'orch.db');
    const url = urlOf(file);
    if (url === null) return {};
    this.stores.add(file);
    return { ORCH_SERVE_STORE: url };
  }

  /** Runs `orch` to its end, without a terminal; one that is killed has the status null. Throws when the runtime printed a warning. */
  async orch(
    args: readonly string[],
    options: { readonly input?: string; readonly env?: NodeJS.ProcessEnv; readonly killAfterMs?: number } = {},
  ): Promise<Finished> {
    const child = spawn(process.execPath, [this.program, ...args], {
      env: { ...this.env, ...this.storeOf(args), ...options.env },
      cwd: this.root,
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input ?? '');
    const timer =
      options.killAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), options.killAfterMs);
    const status = await new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)));
    clearTimeout(timer);
    refuseRuntimeWarnings(stderr);
    return { status, stdout, stderr };
  }

  /** Runs `orch` with `-o json` and parses what it prints; throws with its messages when it fails. */
  async json<T>(args: readonly string[]): Promise<T> {
    const { status, stdout, stderr } = await this.orch([...args, '-o', 'json']);
    if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}:\n${stderr}${stdout}`);
    return JSON.parse(stdout) as T;
  }

  /** Starts a long-running program; `dispose` throws when the runtime printed a warning in it. */
  start(args: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
    const child = spawn(process.execPath, [this.program, ...args], {
      env: { ...this.env, ...this.storeOf(args), ...env },
      cwd: this.root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const collect = (chunk: Buffer) => {
      output += chunk;
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    const ended = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)));
    const running: Running = {
      process: child,
      output: () => output,
      stop: async (signal = 'SIGTERM') => {
        if (child.exitCode === null && child.signalCode === null) child.kill(signal);
        return ended;
      },
    };
    this.running.push(running);
    return running;
  }

  /** Starts `orch serve` on free ports and waits until it accepts connections. */
  async serve(args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<{ server: Running; ready: Ready }> {
    const file = this.path(`ready-${this.running.length}.json`);
    const server = this.start(
      [
        'serve',
        '--agent-port',
        '0',
        '--api-port',
        '0',
        '--agent-host',
        '127.0.0.1',
        '--data-dir',
        this.path('serve'),
        '--ready-file',
        file,
        ...args,
      ],
      env,
    );
    await until(() => existsSync(file) || server.process.exitCode !== null, 'orch serve is ready');
    if (!existsSync(file)) throw new Error(`orch serve ended early:\n${server.output()}`);
    return { server, ready: JSON.parse(readFileSync(file, 'utf8')) as Ready };
  }

  async dispose(): Promise<void> {
    await Promise.all(this.running.map((running) => running.stop('SIGKILL')));
    for (const store of this.stores) releaseStore(store);
    rmSync(this.root, { recursive: true, force: true });
    for (const running of this.running) refuseRuntimeWarnings(running.output());
  }
}
