/** The lines that a client reads about a rollout: what has happened so far, and then what happens. */
import type { Rollout, RolloutEvent, RolloutRecord } from '../../../src/contract/rollouts.js';
import { isFault } from '../../../src/kernel/fault.js';
import { WakeSignal } from '../../core/event-bus.js';
import type { OperationReader } from '../operations/operation-reader.js';
import type { RolloutMember } from './rollout-agents.js';
import type { RunWatcher } from './rollout-progress.js';
import type { RolloutRun } from './rollout-run.js';

type Write = (line: RolloutEvent) => Promise<void>;

interface StreamOptions {
  readonly write: Write;
  readonly operations: OperationReader;
  /** True adds a line for each resource. */
  readonly showsResources: boolean;
  /** Aborted when the client goes away or the orchestrator stops. */
  readonly signal: AbortSignal;
}

/** Number of resource lines that wait for a slow client; further ones are left out. */
const MOST_WAITING = 256;
/** Milliseconds after which a wait looks again whether its signal is aborted. */
const LOOK_AGAIN = 1000;

type News = { readonly agent: RolloutMember } | { readonly rollout: RolloutRecord };

/** Collects the news of a rollout, and writes them at the pace of the client. */
export class RolloutStream implements RunWatcher {
  private readonly options: StreamOptions;
  private readonly news: News[] = [];
  private readonly resources = new Map<string, Promise<void>>();
  private readonly wake = new WakeSignal();
  private written: Promise<void> = Promise.resolve();
  private waiting = 0;
  private isSettled = false;

  constructor(options: StreamOptions) {
    this.options = options;
  }

  readonly onBegun = (agent: RolloutMember, operationId: string): void => {
    if (this.options.showsResources) this.resources.set(operationId, this.follow(agent, operationId));
  };

  readonly onAgent = (agent: RolloutMember): void => this.add({ agent });

  readonly onRollout = (rollout: RolloutRecord): void => this.add({ rollout });

  readonly onSettled = (): void => {
    this.isSettled = true;
    this.wake.set();
  };

  /** Writes everything until the rollout has settled or the signal is aborted; the last line is the result. */
  async run(run: RolloutRun): Promise<Rollout> {
    const { signal } = this.options;
    const leave = run.watch(this);
    const wake = () => this.wake.set();
    // At once, so that the reason for which the answer ends still reaches the client.
    signal.addEventListener('abort', wake, { once: true });
    try {
      await this.write({ event: 'started', rollout_id: run.id, agents: run.agents.all.length });
      await this.write({ event: 'rollout', rollout: run.record() });
      while (!signal.aborted) {
        const next = this.news.shift();
        if (next !== undefined) await this.tell(run, next);
        else if (this.isSettled || run.isSettled) break;
        else await this.wake.wait(LOOK_AGAIN);
      }
      signal.throwIfAborted();
      // For this client, agents that have not begun when the rollout halts are left out.
      for (const agent of run.agents.inStates('waiting')) await this.tell(run, { agent });
      const result = run.result();
      await this.write({ event: 'result', result });
      return result;
    } finally {
      leave();
      signal.removeEventListener('abort', wake);
    }
  }

  /** Adds what has happened before: the ends of agents, and the applies in flight. */
  replay(run: RolloutRun): this {
    for (const agent of run.agents.all) {
      const { state, operation_id } = agent.row;
      if (state === 'running' && operation_id !== null) this.onBegun(agent, operation_id);
      else if (state !== 'waiting') this.onAgent(agent);
    }
    return this;
  }

  private add(news: News): void {
    this.news.push(news);
    this.wake.set();
  }

  private async tell(run: RolloutRun, news: News): Promise<void> {
    if ('rollout' in news) return this.write({ event: 'rollout', rollout: news.rollout });
    const { row } = news.agent;
    const kept = run.resultOf(row);
    // A retry has made it wait again.
    if (kept === null) return;
    const { operation_id: id } = row;
    if (id !== null) await this.resources.get(id);
    await this.write({ event: 'agent', agent: { ...kept, result: id === null ? null : await this.resultOf(run, id) } });
  }

  /** Returns the complete result; null when the operation was deleted for its age. */
  private async resultOf(run: RolloutRun, operationId: string) {
    try {
      const { operations, signal } = this.options;
      return await operations.result(operationId, {
        remarks: { warnings: run.warnings.get(operationId) ?? [] },
        signal,
      });
    } catch (error) {
      if (!isFault(error, 'operation_not_found')) throw error;
      return null;
    }
  }

  /** Writes the resources of an apply as they end. Never rejects. */
  private async follow({ row: { node_id, name } }: RolloutMember, operationId: string): Promise<void> {
    const { operations, signal } = this.options;
    try {
      for await (const result of operations.follow(operationId, { signal, ignoresSilence: true })) {
        if (this.waiting >= MOST_WAITING) continue;
        const { module, kind, identity, action, status } = result;
        void this.write({ event: 'resource', node_id, name, resource: { module, kind, identity, action, status } });
      }
    } catch (error) {
      if (!isFault(error)) throw error;
    }
  }

  private write(line: RolloutEvent): Promise<void> {
    this.waiting += 1;
    this.written = this.written
      .then(() => this.options.write(line))
      .then(() => {
        this.waiting -= 1;
      });
    return this.written;
  }
}
