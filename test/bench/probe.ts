/** Small requests beside other work, which show how long that work makes everybody wait. */
import { setTimeout as wait } from 'node:timers/promises';
import type { LoadTarget } from './http-load.js';
import type { Orchestrator } from './orchestrator.js';
import type { Program } from './programs.js';

/** Minimum milliseconds of a measurement, so that it has requests. */
const LEAST = 100;

export class Probe {
  private readonly load: Program;
  private readonly targets: readonly LoadTarget[];

  private constructor(load: Program, targets: readonly LoadTarget[]) {
    this.load = load;
    this.targets = targets;
  }

  /** Logs in. The session outlives a restart of the orchestrator. */
  static async prepare(orchestrator: Orchestrator, load: Program): Promise<Probe> {
    const token = await orchestrator.logIn();
    const [agent] = await orchestrator.api.call('listAgents', { query: { limit: 1 } });
    const paths = ['/status', ...(agent === undefined ? [] : [`/agents/${agent.node_id}`]), '/modules'];
    return new Probe(
      load,
      paths.map((path) => orchestrator.get(path, token)),
    );
  }

  /**
   * Returns the milliseconds of every request that was made while `work` ran, for at least `LEAST`.
   * @param fresh makes every fourth request on a new connection
   */
  async during(work: () => Promise<unknown>, fresh = false): Promise<readonly number[]> {
    await this.load.ask({ do: 'probe', targets: this.targets, fresh });
    const end = () => this.load.ask<readonly number[]>({ do: 'endProbe' });
    try {
      await Promise.all([work(), wait(LEAST)]);
    } catch (error) {
      await end();
      throw error;
    }
    return end();
  }
}
