/** The agents of a rollout in memory: which of them wait, where, and how many are in each state. */
import { EMPTY_TALLY, type WaveTally } from '../../../src/kernel/walk.js';
import type { RolloutAgentRow, RolloutAgentState, RolloutCounts } from './rollout-store.js';

/** Where a waiting agent is: ready to start, offline, or at work for another operation. */
type Place = 'ready' | 'awaited' | 'away' | 'busy';

/** An agent of a rollout. `RolloutAgents` changes it and counts it. */
export interface RolloutMember {
  readonly position: number;
  /** Replaced by each change, so that a stored row can be compared with the current one. */
  readonly row: RolloutAgentRow;
  readonly place: Place;
  /** True between the decision to start it and the moment at which its operation is stored. */
  readonly isStarting: boolean;
  /** True for an agent that was rejected or removed: its start says so, although it is offline. */
  readonly isRevoked: boolean;
  /** True once it has been found offline: it must not start when the time for its return is over. */
  readonly wasAbsent: boolean;
  /** Number of ticks for which it was busy with another operation. */
  readonly busyTicks: number;
}

type MemberChange = Partial<Pick<RolloutMember, 'row' | 'place' | 'isStarting' | 'isRevoked' | 'busyTicks'>>;

type Counted<T> = { -readonly [K in keyof T]: T[K] };

export class RolloutAgents {
  readonly all: readonly RolloutMember[];
  private readonly byNode: ReadonlyMap<string, RolloutMember>;
  private readonly tallies: Counted<WaveTally>[];
  /** Positions of ready agents by wave. An agent that is no longer ready is passed over. */
  private readonly queues: number[][];
  private readonly heads: number[];
  private readonly offline = new Set<RolloutMember>();
  private readonly occupied = new Set<RolloutMember>();
  /** Agents that fell silent in their apply, with the monotonic milliseconds until which they count as in flight. */
  private readonly unheard = new Map<RolloutMember, number>();
  private readonly totals: Counted<RolloutCounts>;

  constructor(rows: readonly RolloutAgentRow[], waves: number) {
    this.all = rows.map((row, position) => ({
      position,
      row,
      place: 'ready',
      isStarting: false,
      isRevoked: false,
      wasAbsent: false,
      busyTicks: 0,
    }));
    this.byNode = new Map(this.all.map((agent) => [agent.row.node_id, agent]));
    this.tallies = Array.from({ length: waves }, () => ({ ...EMPTY_TALLY }));
    this.queues = Array.from({ length: waves }, () => []);
    this.heads = this.queues.map(() => 0);
    this.totals = { ...emptyCounts(), agents: rows.length };
    for (const agent of this.all) {
      this.count(agent, 1);
      if (agent.row.state === 'waiting') this.enqueue(agent);
    }
  }

  /** Number of agents in each state. */
  get counts(): RolloutCounts {
    return { ...this.totals };
  }

  /** Number of agents of each wave in each state, for the walk. */
  get waves(): readonly WaveTally[] {
    return this.tallies;
  }

  /** Number of agents in flight. */
  get inFlight(): number {
    return this.tallies.reduce((total, { running }) => total + running, 0);
  }

  ofNode(nodeId: string): RolloutMember | undefined {
    return this.byNode.get(nodeId);
  }

  /** Waiting agents that were found offline. */
  get absent(): readonly RolloutMember[] {
    return [...this.offline];
  }

  /** Waiting agents that another operation has. */
  get busy(): readonly RolloutMember[] {
    return [...this.occupied];
  }

  /** Number of agents that fell silent, and still count as in flight. */
  get silent(): number {
    return this.unheard.size;
  }

  /** Lets an agent of which nothing is heard count as in flight until a time in monotonic milliseconds. */
  noteSilent(agent: RolloutMember, until: number): void {
    this.unheard.set(agent, until);
  }

  /** Notes that the end of an agent's apply is known, or no longer awaited. */
  noteHeard(agent: RolloutMember): void {
    this.unheard.delete(agent);
  }

  /** Gives up agents whose time is over. Returns true if there were some. */
  giveUpSilent(now: number): boolean {
    const over = [...this.unheard].filter(([, until]) => now >= until);
    for (const [agent] of over) this.unheard.delete(agent);
    return over.length > 0;
  }

  inStates(...states: readonly RolloutAgentState[]): readonly RolloutMember[] {
    return this.all.filter(({ row }) => states.includes(row.state));
  }

  change(agent: RolloutMember, change: MemberChange): void {
    this.count(agent, -1);
    Object.assign(agent, change);
    this.count(agent, 1);
    const isWaiting = agent.row.state === 'waiting' && !agent.isStarting;
    if (isWaiting && agent.place === 'busy') this.occupied.add(agent);
    else this.occupied.delete(agent);
    if (isWaiting && agent.place !== 'ready' && agent.place !== 'busy') {
      Object.assign(agent, { wasAbsent: true });
      this.offline.add(agent);
    } else this.offline.delete(agent);
  }

  /** Lets a waiting agent start when its turn comes. */
  makeReady(agent: RolloutMember, row: RolloutAgentRow = agent.row): void {
    this.change(agent, { row, place: 'ready', isStarting: false });
    this.enqueue(agent);
  }

  /** Returns the next ready agent of the waves up to `last`, an index; undefined if there is none. */
  next(last: number): RolloutMember | undefined {
    for (const [wave, queue] of this.queues.slice(0, last + 1).entries()) {
      for (let head = this.heads[wave] ?? 0; head < queue.length; head += 1) {
        this.heads[wave] = head + 1;
        const agent = this.all[queue[head] ?? -1];
        if (agent?.row.state === 'waiting' && agent.place === 'ready' && !agent.isStarting) return agent;
      }
    }
    return undefined;
  }

  private enqueue(agent: RolloutMember): void {
    this.queues[agent.row.wave - 1]?.push(agent.position);
  }

  private count(agent: RolloutMember, by: 1 | -1): void {
    this.totals[agent.row.state] += by;
    const tally = this.tallies[agent.row.wave - 1];
    if (tally !== undefined) tally[kindOf(agent)] += by;
  }
}

function kindOf({ row, place, isStarting }: RolloutMember): keyof WaveTally {
  switch (row.state) {
    case 'waiting':
      if (isStarting) return 'running';
      return place === 'busy' ? 'awaited' : place;
    case 'running':
    case 'succeeded':
      return row.state;
    case 'failed':
    case 'unreachable':
      return row.forgiven === 1 ? 'forgiven' : 'failed';
    default:
      return 'skipped';
  }
}

export const emptyCounts = (): RolloutCounts => ({
  agents: 0,
  waiting: 0,
  running: 0,
  succeeded: 0,
  failed: 0,
  unreachable: 0,
  skipped: 0,
  reverted: 0,
});
