/** A real orchestrator and a real agent that lets terminals in, each on ports that stay, and the client's library to reach them. */
import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ApiClient, SuccessBody } from '../../src/client/api-client.js';
import { resolveConnection } from '../../src/client/connection.js';
import { connect } from '../../src/client/http-api-client.js';
import { openSigner } from '../../src/client/login.js';
import { connectTerminal } from '../../src/client/terminal/terminal-connection.js';
import type { LinkState, TerminalEnd, TerminalSession } from '../../src/client/terminal/terminal-session.js';
import type { Agent } from '../../src/contract/agents.js';
import type { TerminalDetail } from '../../src/contract/terminal.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Cable } from './long.js';
import { type Ready, type Running, Sandbox, until } from './orch.js';
import { TEST_SHELL } from './test-shell.js';

export const NODE_NAME = 'web-01';

export interface FleetOptions {
  /** Further arguments of `orch serve`. */
  readonly serve?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Further settings of the agent, as YAML. */
  readonly settings?: string;
}

export const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

export class TerminalFleet {
  readonly sandbox = new Sandbox();
  /** Between the operators and the orchestrator, and between the agent and the orchestrator. */
  readonly operatorCable: Cable;
  readonly agentCable: Cable;
  api: ApiClient;
  readonly nodeId: string;
  server: Running;
  agent: Running;
  private readonly options: FleetOptions;
  private readonly ready: Ready;
  private readonly agentWords: readonly string[];

  private constructor(made: {
    readonly sandbox: Sandbox;
    readonly cables: readonly [Cable, Cable];
    readonly options: FleetOptions;
    readonly server: Running;
    readonly ready: Ready;
    readonly agent: Running;
    readonly agentWords: readonly string[];
    readonly nodeId: string;
  }) {
    this.sandbox = made.sandbox;
    [this.operatorCable, this.agentCable] = made.cables;
    this.options = made.options;
    this.server = made.server;
    this.ready = made.ready;
    this.agent = made.agent;
    this.agentWords = made.agentWords;
    this.nodeId = made.nodeId;
    this.api = this.client();
  }

  static async start(options: FleetOptions = {}): Promise<TerminalFleet> {
    const sandbox = new Sandbox();
    const { serve = [], env, settings: more = '' } = options;
    await run(sandbox, ['operator', 'init']);
    const { server, ready } = await sandbox.serve(serve, env);
    const cables = [await Cable.open(portOf(ready.api_url)), await Cable.open(portOf(ready.agent_address))] as const;
    const url = `https://127.0.0.1:${cables[0].port}`;
    await run(sandbox, ['profile', 'create', 'test', '--url', url, '--tls-fingerprint', ready.tls_fingerprint]);
    await run(sandbox, ['profile', 'use', 'test']);
    const config = sandbox.path('agent.yaml');
    const settings = `remote_terminal:\n  enabled: true\n  shell: ${TEST_SHELL}\n  max_sessions: 100\n${more}`;
    writeFileSync(config, settings, { mode: 0o600 });
    const agentWords = [
      ...['agent', 'connect', `127.0.0.1:${cables[1].port}`, '--orchestrator-key', ready.public_key],
      ...['--data-dir', sandbox.path('agent'), '--config', config],
    ];
    const agent = sandbox.start(agentWords, env);
    let nodeId = '';
    await until(async () => {
      [{ node_id: nodeId } = { node_id: '' }] = await sandbox.json<Agent[]>(['agents', 'list']);
      return nodeId !== '';
    }, 'the agent waits');
    await run(sandbox, ['agents', 'approve', nodeId, '--name', NODE_NAME, '--yes']);
    const fleet = new TerminalFleet({ sandbox, cables, options, server, ready, agent, agentWords, nodeId });
    await fleet.connected();
    return fleet;
  }

  /** Address of the API and the fingerprint of its certificate, for profiles of other operators. */
  get profile(): { readonly url: string; readonly pin: string } {
    return { url: `https://127.0.0.1:${this.operatorCable.port}`, pin: this.ready.tls_fingerprint };
  }

  /** Public key of the orchestrator, for further agents. */
  get orchestratorKey(): string {
    return this.ready.public_key;
  }

  get serverPid(): number {
    return this.server.process.pid as number;
  }

  get agentPid(): number {
    return this.agent.process.pid as number;
  }

  /** The agent's process of terminals; throws when there is none. */
  get hostPid(): number {
    const pid = childrenOf(this.agentPid).find((child) => commandLine(child).includes('terminal-host'));
    if (pid === undefined) throw new Error('the agent has no process of terminals');
    return pid;
  }

  /** Of its own connections. */
  client(): ApiClient {
    const { sandbox, ready } = this;
    const connection = resolveConnection({
      flags: { url: `https://127.0.0.1:${this.operatorCable.port}`, tlsFingerprint: ready.tls_fingerprint },
      env: sandbox.env,
      profiles: { path: '/nowhere', standard: null, byName: {} },
    });
    const signer = async () => openSigner(connection.key);
    return connect({ connection, signer, clock, newId: randomUUID, warn: () => {} });
  }

  /** Closes the connections of the client that there is, and goes on with another. */
  renewClient(): void {
    this.api.close();
    this.api = this.client();
  }

  async connected(): Promise<void> {
    await until(async () => {
      const agents = await this.sandbox.json<Agent[]>(['agents', 'list']);
      return agents.some((one) => one.connected);
    }, 'the agent is connected');
  }

  /** Ends it at once, and starts it again on the same ports. */
  killServer(): Promise<void> {
    return this.restartServer('SIGKILL');
  }

  /** Ends it with a signal, and starts it again on the same ports. */
  async restartServer(signal: NodeJS.Signals): Promise<void> {
    await this.server.stop(signal);
    const { api_url, agent_address } = this.ready;
    const ports = ['--agent-port', `${portOf(agent_address)}`, '--api-port', `${portOf(api_url)}`];
    ({ server: this.server } = await this.sandbox.serve([...(this.options.serve ?? []), ...ports], this.options.env));
  }

  startAgent(): void {
    this.agent = this.sandbox.start(this.agentWords, this.options.env);
  }

  async session(sessionId: string): Promise<TerminalDetail> {
    return await this.api.call('getTerminal', { params: { session_id: sessionId } });
  }

  async dispose(): Promise<void> {
    this.api.close();
    await this.sandbox.dispose();
    this.operatorCable.close();
    this.agentCable.close();
  }
}

async function run(sandbox: Sandbox, args: readonly string[]): Promise<void> {
  const { status, stderr } = await sandbox.orch(args);
  if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}: ${stderr}`);
}

const portOf = (address: string): number => Number(/:(\d+)$/.exec(address)?.[1]);

/** Processes that it has started and not collected, dead ones too. */
export function childrenOf(pid: number): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((other) => parentOf(other) === pid);
}

function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return null;
  }
}

export function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** Output that is kept to be looked through, in bytes. */
const KEPT = 64 * 1024;

export class TerminalClient {
  readonly session: TerminalSession;
  readonly ended: Promise<TerminalEnd>;
  readonly states: LinkState['kind'][] = [];
  /** Snapshots break the stream: a resuming client is never given one unless its place is gone. */
  snapshots = 0;
  /** Bytes so far. */
  received = 0;
  private hash = createHash('sha256');
  private kept = '';
  private waiting: (() => void)[] | null = null;
  private listener: (() => void) | null = null;

  static async shell(fleet: TerminalFleet): Promise<TerminalClient> {
    const params = { node_id: fleet.nodeId };
    const opened = await fleet.api.call('openTerminal', { params, query: { cols: 80, rows: 24 } });
    return new TerminalClient(fleet, opened);
  }

  static async exec(fleet: TerminalFleet, command: readonly string[]): Promise<TerminalClient> {
    const params = { node_id: fleet.nodeId };
    const opened = await fleet.api.call('execOnAgent', { params, body: { command: [...command] } });
    return new TerminalClient(fleet, opened);
  }

  /** A terminal that changes nothing, from the first byte of that command on; its program is not to be typed to at once. */
  static async running(fleet: TerminalFleet, command: string): Promise<TerminalClient> {
    const one = await TerminalClient.raw(fleet, `read -r; ${command}`);
    one.type('\n');
    return one;
  }

  /** A terminal that shows every byte that is typed, once and as it is, from the first one on. */
  static echo(fleet: TerminalFleet): Promise<TerminalClient> {
    return TerminalClient.raw(fleet, 'exec cat');
  }

  private static async raw(fleet: TerminalFleet, command: string): Promise<TerminalClient> {
    const one = await TerminalClient.shell(fleet);
    await one.shows(/[$#] /);
    // Keys that stop and interrupt do.
    one.type(`stty -icanon -icrnl -echo -opost; echo G""O; ${command}\r`);
    await one.shows(/GO\n/);
    one.beginAnew();
    return one;
  }

  private constructor({ api }: TerminalFleet, opened: SuccessBody<'openTerminal'>) {
    let end: (end: TerminalEnd) => void = () => {};
    this.ended = new Promise((resolve) => {
      end = resolve;
    });
    this.session = connectTerminal({
      api,
      sessionId: opened.session_id,
      wsUrl: opened.ws_url,
      mode: 'write',
      clock,
      random: Math.random,
      queueInput: true,
      events: {
        output: (_stream, bytes, done) => this.take(bytes, done),
        snapshot: (_snapshot, done) => {
          this.snapshots += 1;
          done();
        },
        note: () => {},
        state: ({ kind }) => this.states.push(kind),
        drain: () => {},
        inputDropped: () => {},
        ended: end,
      },
    });
  }

  get id(): string {
    return this.session.sessionId;
  }

  /** Of all output so far. */
  get sha256(): string {
    return this.hash.copy().digest('hex');
  }

  /** Output so far does not count. */
  beginAnew(): void {
    this.hash = createHash('sha256');
    this.received = 0;
    this.kept = '';
  }

  /** The newest output. */
  get text(): string {
    return this.kept;
  }

  type(text: string): void {
    this.session.sendInput(Buffer.from(text));
  }

  /** Stops taking output, as a terminal that has stopped. */
  stop(): void {
    this.waiting ??= [];
  }

  goOn(): void {
    const { waiting } = this;
    this.waiting = null;
    for (const done of waiting ?? []) done();
  }

  /** Waits until that was shown, for at most so many milliseconds, and forgets what came before. */
  async shows(pattern: RegExp, patience = 60_000): Promise<void> {
    const deadline = performance.now() + patience;
    while (!pattern.test(this.kept)) {
      if (performance.now() > deadline) {
        throw new Error(`session ${this.id} does not show ${pattern}: ${JSON.stringify(this.kept.slice(-500))}`);
      }
      await this.heard(200);
    }
    this.kept = '';
  }

  /** Types that, and waits for any output: milliseconds. */
  async echo(text: string): Promise<number> {
    const start = performance.now();
    const before = this.received;
    this.type(text);
    while (this.received === before) await this.heard(30_000);
    return performance.now() - start;
  }

  private heard(patience: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, patience);
      this.listener = () => {
        clearTimeout(timer);
        this.listener = null;
        resolve();
      };
    });
  }

  private take(bytes: Buffer, done: () => void): void {
    this.hash.update(bytes);
    this.received += bytes.length;
    this.kept = (this.kept + bytes.toString('latin1')).slice(-KEPT);
    if (this.waiting === null) done();
    else this.waiting.push(done);
    this.listener?.();
  }
}
