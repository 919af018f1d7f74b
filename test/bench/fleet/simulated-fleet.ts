/** An orchestrator with simulated agents, which grows while it is measured. */
import type { PublicKeyHex } from '../../../src/kernel/ids.js';
import { Orchestrator } from '../orchestrator.js';
import { cpuTime, residentMemory } from '../process-figures.js';
import { Program } from '../programs.js';
import type { PendingAgent, SimulatorCounts, SimulatorQuestion } from './simulated-agents.js';

/** Agents of one process. */
const SHARE = 1_000;
/** Agents that dial at a time while the fleet grows, and approvals in flight. */
const DIALS = 32;
const APPROVALS = 8;
/** Milliseconds without a new connection after which a fleet counts as stuck. Backed-off agents pause for up to a minute. */
const STUCK = 120_000;
/** Maximum milliseconds of a growth. */
const PATIENCE = 900_000;

export interface Growth {
  readonly agents: number;
  readonly ms: number;
  /** CPU time of the orchestrator in milliseconds. */
  readonly cpu: number;
}

export class SimulatedFleet {
  readonly orchestrator: Orchestrator;
  /** Every growth so far, in order. */
  readonly growths: Growth[] = [];
  private readonly simulators: Program[] = [];
  private readonly approvals: PendingAgent[] = [];
  private approving = 0;
  private failure: unknown = null;
  private agents = 0;
  /** Resident memory of the orchestrator before the first agent, in bytes. */
  private empty = 0;

  private constructor(orchestrator: Orchestrator) {
    this.orchestrator = orchestrator;
  }

  static async start(flags: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<SimulatedFleet> {
    return new SimulatedFleet(await Orchestrator.start(['--limits-operations', '100000', ...flags], env));
  }

  get size(): number {
    return this.agents;
  }

  /** Enrols agents with tokens and approves them through the API, until there are `size`, and waits until all are connected. */
  async growTo(size: number): Promise<void> {
    const more = size - this.agents;
    if (more <= 0) return this.allConnected();
    const { agentPort, ready, api, pid } = this.orchestrator;
    if (this.agents === 0) this.empty = residentMemory(pid);
    const names = Array.from({ length: more }, (_, index) => `sim-${String(this.agents + index).padStart(5, '0')}`);
    const shares = Array.from({ length: Math.ceil(more / SHARE) }, (_, index) =>
      names.slice(index * SHARE, (index + 1) * SHARE),
    );
    const address = { host: '127.0.0.1', port: agentPort, orchestratorKey: ready.public_key as PublicKeyHex };
    const starts = [];
    for (const share of shares) {
      const { token } = await api.call('createEnrolmentToken', { body: { uses: share.length, ttl_secs: 3600 } });
      const simulator = new Program('simulated-agents', (news) => this.approve(news as PendingAgent));
      this.simulators.push(simulator);
      const atOnce = Math.ceil(DIALS / shares.length);
      starts.push(() => this.ask(simulator, { do: 'start', address, names: share, token, atOnce }));
    }
    const before = { at: performance.now(), cpu: cpuTime(pid) };
    this.agents = size;
    await Promise.all([...starts.map((start) => start()), this.allConnected()]);
    this.growths.push({ agents: more, ms: performance.now() - before.at, cpu: cpuTime(pid) - before.cpu });
  }

  /** Waits until every agent is connected and approved. */
  async allConnected(): Promise<void> {
    let most = 0;
    let since = performance.now();
    for (;;) {
      if (this.failure !== null) throw this.failure;
      const { connected } = await this.counts();
      if (connected >= this.agents) return;
      if (connected > most) since = performance.now();
      most = Math.max(most, connected);
      if (performance.now() - since > STUCK)
        throw new Error(`only ${connected} of ${this.agents} agents are connected`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Resident memory of the orchestrator for each agent, in bytes. */
  memoryEach(): number {
    return (residentMemory(this.orchestrator.pid) - this.empty) / this.agents;
  }

  /** Counts of all simulators together. */
  async counts(): Promise<SimulatorCounts> {
    const all = await Promise.all(this.simulators.map((one) => this.ask<SimulatorCounts>(one, { do: 'count' })));
    const sum = (of: (counts: SimulatorCounts) => number) => all.reduce((total, counts) => total + of(counts), 0);
    return {
      connected: sum(({ connected }) => connected),
      arrivals: all.flatMap(({ arrivals }) => arrivals),
      failedDials: sum(({ failedDials }) => failedDials),
      runs: {
        plan: sum(({ runs }) => runs.plan),
        apply: sum(({ runs }) => runs.apply),
        drift: sum(({ runs }) => runs.drift),
        verify: sum(({ runs }) => runs.verify),
      },
    };
  }

  /** Begins the counts anew. */
  async reset(): Promise<void> {
    await Promise.all(this.simulators.map((one) => this.ask(one, { do: 'reset' })));
  }

  async stop(): Promise<void> {
    await Promise.all(this.simulators.map((simulator) => simulator.stop()));
    await this.orchestrator.stop();
  }

  private ask<T = null>(simulator: Program, question: SimulatorQuestion): Promise<T> {
    return simulator.ask<T>(question, PATIENCE);
  }

  private approve(agent: PendingAgent): void {
    this.approvals.push(agent);
    if (this.approving < APPROVALS) void this.approveWaiting();
  }

  private async approveWaiting(): Promise<void> {
    this.approving += 1;
    try {
      for (let next = this.approvals.shift(); next !== undefined; next = this.approvals.shift()) {
        const { nodeId, name } = next;
        await this.orchestrator.api.call('setAgentStatus', {
          params: { node_id: nodeId },
          body: { status: 'approved', name },
        });
      }
    } catch (error) {
      this.failure = error;
    }
    this.approving -= 1;
  }
}
