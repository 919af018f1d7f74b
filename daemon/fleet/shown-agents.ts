/**
 * What the API shows of agents, kept between requests until the fleet writes to the store. The benchmark rows of agents
 * miss their goals when each request reads its agents, because SQLite then takes half of the time.
 */
import type { UnitOfWork } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';
import { type AgentPage, findShownAgent, listShownAgents, type ShownAgent } from './agent-store.js';

/** Maximum agents kept, about 700 bytes each. */
const MOST = 2_000;

export class ShownAgents {
  private readonly db: Queryable;
  private keeps = new Kept();
  /** Writes whose work is done and whose commit may not be. */
  private ending = 0;

  constructor(db: Queryable) {
    this.db = db;
  }

  /**
   * Returns a unit of work that forgets every agent. Everything that changes agents or tags must use it. Nothing is kept
   * until the write has ended, because other sessions of PostgreSQL read what was there before until the commit.
   */
  forgottenBy(uow: UnitOfWork): UnitOfWork {
    return {
      write: async (work) => {
        let isEnding = false;
        try {
          return await uow.write(async (tx, emit) => {
            try {
              return await work(tx, emit);
            } finally {
              this.keeps = new Kept();
              // A transaction may be tried again.
              if (!isEnding) this.ending += 1;
              isEnding = true;
            }
          });
        } finally {
          if (isEnding) this.ending -= 1;
          this.keeps = new Kept();
        }
      },
    };
  }

  /** Returns an agent that is kept, or null. Reads nothing. */
  kept(nodeId: string): ShownAgent | null {
    return this.keeps.pages.get(nodeId)?.[0] ?? null;
  }

  /** Returns an agent, or null. */
  async find(nodeId: string): Promise<ShownAgent | null> {
    const read = async () => {
      const agent = await findShownAgent(this.db, nodeId);
      return agent === null ? [] : [agent];
    };
    return (await this.keep(nodeId, read))[0] ?? null;
  }

  /** Returns a page of agents, as `listShownAgents` does. */
  async list(page: AgentPage): Promise<readonly ShownAgent[]> {
    const { status, name, after, limit } = page;
    const key = JSON.stringify([status, name, after?.name, after?.node_id, limit]);
    return this.keep(key, () => listShownAgents(this.db, page));
  }

  private async keep(key: string, read: () => Promise<readonly ShownAgent[]>): Promise<readonly ShownAgent[]> {
    // Agents that were read before a change go into the object that the change has dropped.
    const kept = this.keeps;
    const known = kept.pages.get(key);
    if (known !== undefined) return known;
    const agents = await read();
    if (this.ending === 0 && agents.length > 0 && kept.count + agents.length <= MOST) {
      kept.count += agents.length;
      kept.pages.set(key, agents);
    }
    return agents;
  }
}

class Kept {
  /** Pages by their query, single agents by their node ID. */
  readonly pages = new Map<string, readonly ShownAgent[]>();
  /** Number of agents in all pages. */
  count = 0;
}
