/**
 * Removes ephemeral agents that were not connected for their time. Only time counts in which this process looked regularly and
 * reached the store, by the monotonic clock. So neither a stop, an outage nor a jump of the clock removes an agent.
 */
import type { NodeId } from '../../src/kernel/ids.js';
import type { Core } from '../core/core.js';
import { SYSTEM } from '../core/domain-event.js';
import type { Emit } from '../core/unit-of-work.js';
import { getMetaJson, setMetaJson } from '../database/meta.js';
import type { Queryable } from '../database/schema.js';
import { type AgentRow, agentLabel, agentParty, countAgentsByStatus, deleteAgent } from './agent-store.js';
import type { ConnectionRegistry } from './connection-registry.js';
import type { Contests } from './contests.js';
import { noteLostName } from './given-names.js';

export interface EphemeralAgentsOptions extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'uow'> {
  readonly registry: Pick<ConnectionRegistry, 'get'>;
  readonly contests: Pick<Contests, 'forgotten'>;
  /** Ends what belongs to a removed agent. */
  readonly connections: { removed(nodeId: NodeId): Promise<void> };
  /** Returns the agents with an operation that has not ended, and those of rollouts that have not. */
  readonly busy: (db: Queryable) => Promise<ReadonlySet<string>>;
}

type EphemeralAgent = Pick<AgentRow, 'node_id' | 'name' | 'public_key' | 'connected_at' | 'last_seen_at'> & {
  readonly ephemeral_secs: number;
};

/** An agent that is not connected. */
interface Absence {
  /** Its last connection and its end, as stored: other ones mean that it was back meanwhile. */
  readonly last: string;
  /** Reading of the monotonic clock. */
  readonly since: number;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Maximum milliseconds between two sweeps; after a longer pause every absence begins anew. */
const MOST_PAUSE = 2 * MINUTE;
/** Part of the approved agents that may be removed in an hour. */
const SHARE = 0.05;
/** Key in `meta` of the times of the removals in the last hour, by `ageTime`. */
const KEY = 'ephemeral_removals';

export class EphemeralAgents {
  private readonly options: EphemeralAgentsOptions;
  private absences = new Map<string, Absence>();
  /** Reading of the monotonic clock at the last sweep that succeeded; null before the first and after one that failed. */
  private sweptAt: number | null = null;
  /** Removals of the last hour, by the monotonic clock; null until they are read from the store. */
  private removals: readonly number[] | null = null;
  /** True while removals wait, which was reported. */
  private isHeld = false;

  constructor(options: EphemeralAgentsOptions) {
    this.options = options;
  }

  /** Notes which agents are absent, and removes those that are due. Call it once a minute. */
  async sweep(): Promise<void> {
    const now = this.options.clock.monotonic();
    const isRegular = this.sweptAt !== null && now - this.sweptAt <= MOST_PAUSE;
    if (!isRegular) this.absences = new Map();
    // A sweep that fails, such as without the store, is a time in which no agent could come back.
    this.sweptAt = null;
    const due = this.dueOf(await listEphemeral(this.options.db), now);
    if (this.absences.size === 0) this.isHeld = false;
    else await this.removeDue(due, now);
    this.sweptAt = now;
  }

  /** Notes the absences. Returns the agents whose time is over. */
  private dueOf(agents: readonly EphemeralAgent[], now: number): readonly EphemeralAgent[] {
    const before = this.absences;
    const isAway = ({ node_id }: EphemeralAgent) => this.options.registry.get(node_id as NodeId) === undefined;
    const away = agents.filter(isAway);
    this.absences = new Map(
      away.map((agent) => {
        const known = before.get(agent.node_id);
        return [agent.node_id, known?.last === lastOf(agent) ? known : { last: lastOf(agent), since: now }];
      }),
    );
    return away.filter(({ node_id, ephemeral_secs }) => {
      const since = this.absences.get(node_id)?.since ?? now;
      return now - since >= ephemeral_secs * 1000;
    });
  }

  /** Removes agents as far as the limit permits. Writes in any case, because without the store no agent comes back. */
  private async removeDue(due: readonly EphemeralAgent[], now: number): Promise<void> {
    const { uow, ageTime, busy, registry, contests, connections } = this.options;
    const { removed, removals, isHeld } = await uow.write(async (tx, emit) => {
      const recent = (this.removals ?? (await this.storedRemovals(tx, now))).filter((time) => now - time < HOUR);
      const limit = await limitOf(tx, recent.length);
      const kept = due.length === 0 ? NONE : await busy(tx);
      const current = new Map((await listEphemeral(tx)).map((agent) => [agent.node_id, lastOf(agent)]));
      const ready = due.filter(
        (agent) =>
          !kept.has(agent.node_id) &&
          current.get(agent.node_id) === lastOf(agent) &&
          registry.get(agent.node_id as NodeId) === undefined,
      );
      const taken = ready.slice(0, Math.max(limit - recent.length, 0));
      for (const agent of taken) {
        await remove(tx, emit, agent);
        await noteLostName(tx, agent.node_id, this.options.clock.now());
      }
      const waiting = ready.length - taken.length;
      if (waiting > 0 && !this.isHeld) emit(heldEvent(waiting, limit));
      const after = [...recent, ...taken.map(() => now)];
      const age = ageTime();
      await setMetaJson<readonly number[]>(
        tx,
        KEY,
        after.map((time) => age - (now - time)),
      );
      return { removed: taken, removals: after, isHeld: waiting > 0 };
    });
    this.removals = removals;
    this.isHeld = isHeld;
    for (const { node_id } of removed) {
      this.absences.delete(node_id);
      contests.forgotten(node_id);
    }
    await Promise.all(removed.map(({ node_id }) => connections.removed(node_id as NodeId)));
  }

  /** Returns the removals of an earlier process as readings of this one's clock; one from the future counts as just made. */
  private async storedRemovals(tx: Queryable, now: number): Promise<readonly number[]> {
    const age = this.options.ageTime();
    const times = (await getMetaJson<readonly number[]>(tx, KEY)) ?? [];
    return times.map((time) => now - Math.max(age - time, 0));
  }
}

const NONE: ReadonlySet<string> = new Set();

const lastOf = ({ connected_at, last_seen_at }: EphemeralAgent): string => `${connected_at} ${last_seen_at}`;

/** Returns the approved agents that are ephemeral. */
async function listEphemeral(db: Queryable): Promise<readonly EphemeralAgent[]> {
  const rows = await db
    .selectFrom('agents')
    .select(['node_id', 'name', 'public_key', 'connected_at', 'last_seen_at', 'ephemeral_secs'])
    .where('ephemeral_secs', 'is not', null)
    .where('status', '=', 'approved')
    .orderBy('last_seen_at')
    .orderBy('node_id')
    .execute();
  return rows.map((row) => ({ ...row, ephemeral_secs: row.ephemeral_secs ?? 0 }));
}

/** Returns how many agents may be removed in an hour, of the fleet as it was before the removals. */
async function limitOf(tx: Queryable, removed: number): Promise<number> {
  const approved = (await countAgentsByStatus(tx)).get('approved') ?? 0;
  return Math.max(1, Math.floor((approved + removed) * SHARE));
}

async function remove(tx: Queryable, emit: Emit, agent: EphemeralAgent): Promise<void> {
  const { node_id, public_key, ephemeral_secs } = agent;
  const reason = `it is ephemeral, and was not connected for ${ephemeral_secs} seconds`;
  await deleteAgent(tx, node_id);
  emit({
    type: 'agent.removed',
    actor: SYSTEM,
    target: agentParty(agent),
    summary: `Agent ${agentLabel(agent)} was removed: ${reason}`,
    metadata: { public_key, reason, ephemeral_secs },
  });
}

const heldEvent = (waiting: number, limit: number) =>
  ({
    type: 'agent.removals_held',
    actor: SYSTEM,
    target: SYSTEM,
    summary: `${waiting === 1 ? 'One ephemeral agent waits' : `${waiting} ephemeral agents wait`} for removal: at most ${limit} of this fleet ${limit === 1 ? 'is' : 'are'} removed in an hour (5 %, at least one)`,
    metadata: { waiting, limit },
  }) as const;
