/** An orchestrator and three agents as real processes, each on a disk and with a clock of its own, that can be killed and started. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { World } from '../api/world.js';
import { type Finished, type Running, until } from '../support/orch.js';
import { TEST_SHELL } from '../support/test-shell.js';
import { compileFaults, Disk } from './disk.js';
import { enforce } from './enforced.js';
import { moduleOf, SECRET, SECRET_VALUE, SHARED, sharedModule } from './load.js';
import { AGENTS, type AgentName, MACHINES, type MachineName, type Side } from './machines.js';
import { Receiver } from './receiver.js';

const SIDES: readonly Side[] = ['serve', ...MACHINES];

/** The library of Debian's package `faketime`; null where it is not installed. */
export const fakeTime: string | null = ((): string | null => {
  for (const architecture of readdirSync('/usr/lib').filter((name) => name.includes('linux'))) {
    const library = `/usr/lib/${architecture}/faketime/libfaketime.so.1`;
    try {
      readFileSync(library);
      return library;
    } catch {
      // It is looked for in the next directory.
    }
  }
  return null;
})();

const SETTINGS = [
  // A command that ended well was recorded whole; the disks of this fleet are smaller than what is usually kept free.
  ...['--terminal-record', 'required', '--terminal-disk-floor-bytes', '65536'],
  // Machines are looked at often, and repaired as often as they need it.
  ...['--drift-interval', '2', '--drift-skip-recently-applied', '0', '--enforce-max-repairs', '1000'],
  ...['--notifications-allow-networks', '127.0.0.0/8', '--notifications-allow-http'],
];

/** Milliseconds. Commands follow outages for a minute and more by themselves. */
const LONGEST_COMMAND = 150_000;

export class Fleet {
  readonly world = new World();
  readonly disks: Readonly<Record<Side, Disk>>;
  readonly receiver = new Receiver();
  readonly nodes: Record<MachineName, string> = { a1: '', a2: '', a3: '' };
  private readonly agents: Partial<Record<MachineName, Running>> = {};
  private address = '';
  private publicKey = '';
  private ports: readonly string[] = [];
  private keepsImages = false;

  constructor() {
    const library = compileFaults(this.path());
    const disk = (side: Side) => new Disk(this.path(side), library, 512);
    this.disks = { serve: disk('serve'), a1: disk('a1'), a2: disk('a2'), a3: disk('a3') };
    for (const side of SIDES) this.setClock(side, 0);
    writeFileSync(this.path('agent.yaml'), `remote_terminal: {enabled: true, shell: ${TEST_SHELL}}\n`);
    for (const name of MACHINES) mkdirSync(this.path('witness', name), { recursive: true });
  }

  path(...parts: readonly string[]): string {
    return this.world.sandbox.path(...parts);
  }

  /** Directory that the agent manages. */
  site(name: MachineName): string {
    return this.path(name, 'site');
  }

  /** Directory that scripts append to; no fault reaches it. */
  witness(name: MachineName): string {
    return this.path('witness', name);
  }

  /** Runs a command of the operator's. One that goes on long after everything is back is ended, and has the status null. */
  cli(args: readonly string[]): Promise<Finished> {
    const { api_url, tls_fingerprint } = this.world.ready;
    const key = this.world.people.admin.key.export({ type: 'pkcs8', format: 'pem' }).toString();
    const env = { ORCH_URL: api_url, ORCH_TLS_FINGERPRINT: tls_fingerprint, ORCH_KEY: key };
    return this.world.sandbox.orch(args, { env, killAfterMs: LONGEST_COMMAND });
  }

  /** Starts everything for the first time and approves the agents. */
  async begin(): Promise<void> {
    await this.startServe();
    await this.receiver.begin(this.world);
    for (const name of MACHINES) {
      const { nodeId, agent } = await this.world.startAgent(`${name}/data`, this.env(name));
      this.nodes[name] = nodeId;
      this.agents[name] = agent;
      const call = { params: { node_id: nodeId }, body: { status: 'approved', name } };
      await this.world.gives('setAgentStatus', call, 200);
    }
    await this.allConnected();
    await this.assign();
  }

  /** Makes the modules that operators apply by name, and assigns those of rollouts and of the enforced machine. */
  private async assign(): Promise<void> {
    await this.world.gives('createSecret', { body: { name: SECRET, value: SECRET_VALUE } }, 201);
    const upload = (name: string, content: string) =>
      this.world.gives('uploadModule', { body: { name, content } }, 201);
    const assign = (name: string, selector: string) =>
      this.world.gives('createAssignment', { body: { name, selector, modules: [name] } }, 201);
    await upload(SHARED, sharedModule(this, 'begin'));
    await assign(SHARED, `load in (${AGENTS.join(',')})`);
    for (const name of AGENTS) {
      const tag = { params: { node_id: this.nodes[name], key: 'load' }, body: { value: name } };
      await this.world.gives('setTag', tag, 204);
      await upload(`load-${name}`, moduleOf(this, name, 'begin'));
    }
    await enforce(this);
  }

  async startServe(more: readonly string[] = []): Promise<void> {
    await this.world.start(
      [...this.ports, '--agent-port', this.portOf(this.address), ...SETTINGS, ...more],
      this.env('serve'),
    );
    const { agent_address, public_key, api_url } = this.world.ready;
    this.address = agent_address;
    this.publicKey = public_key;
    this.ports = ['--api-port', this.portOf(api_url)];
  }

  /** Starts the orchestrator where it may refuse to; returns what it says, or null when it runs and complains of no damage. */
  async startComplaining(more: readonly string[] = []): Promise<string | null> {
    const before = this.world.server;
    try {
      await this.startServe(more);
    } catch (error) {
      if (this.world.server === before) return String(error);
      // It found the damage while it served the first requests.
      await until(() => !this.isRunning('serve'), 'the orchestrator that does not answer has ended');
      return `${error}\n${this.world.server.output()}`;
    }
    let reasons: readonly { readonly code: string }[];
    try {
      reasons = (await this.world.gives('getStatus', {}, 200)).reasons ?? [];
    } catch (error) {
      // It found the damage while it served the request.
      await until(() => !this.isRunning('serve'), 'the orchestrator that does not answer has ended');
      return `${error}\n${this.world.server.output()}`;
    }
    const damage = reasons.filter(({ code }) => code === 'store_check_failed');
    return damage.length === 0 ? null : JSON.stringify(damage);
  }

  /** Waits for the check of the store that follows a start; returns the complaint, or null when the store is whole. */
  async checkedStore(): Promise<string | null> {
    let complaint: string | null = null;
    await until(() => {
      const said = this.world.server.output();
      if (said.includes('the store is damaged') || !this.isRunning('serve')) complaint = said;
      return complaint !== null || said.includes('the store was checked and is whole');
    }, 'the store was checked');
    return complaint;
  }

  /** The ID of a session of a command that has ended and is recorded. */
  async recordedSession(): Promise<string> {
    const agent = AGENTS[0];
    const { status, stderr } = await this.cli(['exec', agent, '--', 'echo', 'recorded']);
    if (status === null) throw new Error(`a command on ${agent} does not end: ${stderr}`);
    let id: string | undefined;
    await until(async () => {
      const sessions = await this.world.gives('listTerminals', { query: { status: 'closed' } }, 200);
      id = sessions.find(({ recording }: { recording: string }) => recording === 'complete')?.session_id;
      return id !== undefined;
    }, 'a recording is complete');
    return id ?? '';
  }

  startAgent(name: MachineName): void {
    const key = ['--orchestrator-key', this.publicKey, '--data-dir', this.path(name, 'data')];
    this.agents[name] = this.world.sandbox.start(['agent', 'connect', this.address, ...key], this.env(name));
  }

  async start(side: Side): Promise<void> {
    if (side === 'serve') await this.startServe();
    else this.startAgent(side);
  }

  async end(side: Side, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.running(side)?.stop(signal);
  }

  running(side: Side): Running | undefined {
    return side === 'serve' ? this.world.server : this.agents[side];
  }

  isRunning(side: Side): boolean {
    const child = this.running(side)?.process;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** Process IDs of the terminal hosts of an agent: its children that run `orch`. */
  terminalHosts(name: AgentName): readonly number[] {
    const parent = this.agents[name]?.process.pid ?? 0;
    const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ').filter(Boolean);
    return children.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('orch')).map(Number);
  }

  /** Starts programs that ended by themselves, as a service manager does, until `work` has settled. */
  async keepUp(work: Promise<unknown>): Promise<void> {
    let isSettled = false;
    const settled = work.finally(() => {
      isSettled = true;
    });
    while (!isSettled) {
      for (const side of SIDES) if (!this.isRunning(side)) await this.start(side).catch(() => undefined);
      await Promise.race([settled, new Promise((resolve) => setTimeout(resolve, 200))]);
    }
    await settled;
  }

  /** Starts what does not run, and waits until all agents are connected. */
  async allBack(): Promise<void> {
    for (const side of SIDES) {
      this.disks[side].heal();
      this.setClock(side, 0);
    }
    for (const side of SIDES) if (!this.isRunning(side)) await this.start(side);
    await this.world.logIn();
    await this.allConnected();
  }

  async allConnected(): Promise<void> {
    await until(async () => {
      const agents = await this.world.gives('listAgents', {}, 200);
      const connected = agents.filter((agent: { connected: boolean }) => agent.connected);
      return connected.length === MACHINES.length;
    }, 'all agents are connected');
  }

  /** Moves the clock of a side by seconds; the monotonic clock goes on. */
  setClock(side: Side, seconds: number): void {
    const sign = seconds < 0 ? '-' : '+';
    writeFileSync(this.clock(side), `${sign}${Math.abs(seconds)}\n`);
  }

  /** From now on each start keeps an image of each synced file, which a power cut leaves behind. */
  async keepImages(side: Side): Promise<void> {
    await this.end(side, 'SIGTERM');
    this.disks[side].keepAll();
    this.keepsImages = true;
    await this.start(side);
    this.keepsImages = false;
  }

  async dispose(): Promise<void> {
    await this.end('serve');
    for (const name of MACHINES) await this.end(name);
    this.receiver.dispose();
    for (const disk of Object.values(this.disks)) disk.dispose();
    await this.world.sandbox.dispose();
  }

  /** Copies a directory of a program that does not run, modes and times included, in place of what is at `to`. */
  copy(from: string, to: string): void {
    rmSync(to, { recursive: true, force: true });
    execFileSync('cp', ['-a', from, to]);
  }

  private env(side: Side): NodeJS.ProcessEnv {
    const env: NodeJS.ProcessEnv = {
      ...this.disks[side].env({ keepsImages: this.keepsImages }),
      ORCH_AGENT_CONFIG: this.path('agent.yaml'),
      // A warning of the runtime then names its place.
      NODE_OPTIONS: '--trace-warnings',
    };
    if (fakeTime === null) return env;
    return {
      ...env,
      LD_PRELOAD: `${env.LD_PRELOAD}:${fakeTime}`,
      FAKETIME_TIMESTAMP_FILE: this.clock(side),
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  private clock(side: Side): string {
    return join(this.path(), `clock-${side}`);
  }

  private portOf(address: string): string {
    return /:(\d+)$/.exec(address)?.[1] ?? '0';
  }
}
