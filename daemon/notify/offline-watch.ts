/**
 * Raises notifications about agents that disconnected and did not return in time, and about their return. Agents that
 * vanish or return together share one notification. Absences are in the store, so they survive a restart. A killed
 * orchestrator records no disconnects: agents that were connected then and stay away get their event after the next start.
 */
import { messageOf } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { Service } from '../../src/kernel/service.js';
import type { Core } from '../core/core.js';
import { type DomainEvent, type Party, SYSTEM } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import { agentParty, findAgent } from '../fleet/agent-store.js';
import {
  connectedBefore,
  deleteAgentAbsence,
  isConnectedSince,
  type Return,
  type Returns,
  readReturns,
  reportAbsences,
  type Times,
  takeReturns,
  untoldAbsences,
} from './absence-store.js';
import type { NotificationWriter } from './notification-writer.js';

interface OfflineWatchOptions extends Pick<Core, 'clock' | 'db' | 'logger' | 'uow'> {
  readonly writer: NotificationWriter;
}

/** Milliseconds that an agent may be away before a notification is raised. */
const AWAY_MS = 60_000;
/** Milliseconds in which agents that vanish count as one outage, and agents that return as one return. */
const TOGETHER_MS = 30_000;
/** Milliseconds without another return after which the returns are reported, although agents are still away. */
const QUIET_MS = 10_000;
/** Milliseconds that agents get to reconnect after a start: slightly more than their longest reconnect delay. */
const RETURN_MS = 75_000;
const TICK_MS = 1_000;
/** Maximum lost agents per transaction. */
const AT_ONCE = 100;

export class OfflineWatch implements Service {
  readonly name = 'watch of offline agents';
  private readonly options: OfflineWatchOptions;
  private timer: NodeJS.Timeout | undefined;
  private checking: Promise<void> | null = null;
  /** Time of the start in milliseconds, by the wall clock and by the monotonic clock. */
  private started = { wall: 0, steady: 0 };

  constructor(options: OfflineWatchOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    const { clock } = this.options;
    this.started = { wall: clock.now(), steady: clock.monotonic() };
    this.timer = setInterval(() => {
      this.checking ??= this.check().finally(() => {
        this.checking = null;
      });
    }, TICK_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.checking;
  }

  /** True after a check that failed. */
  private isFailing = false;

  /** Raises notifications for agents that are away too long or back, and records lost agents. Never rejects. */
  async check(): Promise<void> {
    const { db, clock, logger } = this.options;
    const { wall, steady } = this.started;
    const isSettled = clock.monotonic() - steady >= RETURN_MS;
    try {
      const now = clock.now();
      for (const outage of outagesDue(await untoldAbsences(db, isSettled ? 0 : wall), now)) {
        await this.notifyAbsent(outage);
      }
      if (areReturnsDue(await readReturns(db), now)) await this.recordReturns();
      const lost = isSettled ? await connectedBefore(db, wall, now, AT_ONCE) : [];
      if (lost.length > 0) await this.recordLost(lost);
      this.isFailing = false;
    } catch (error) {
      // A check each second says once that the store is away.
      logger[this.isFailing ? 'debug' : 'error'](
        'notifications about absent agents could not be stored; the next check retries',
        { reason: messageOf(error) },
      );
      this.isFailing = true;
    }
  }

  private notifyAbsent(outage: Outage): Promise<void> {
    const { uow, writer, clock } = this.options;
    return uow.write(async (tx) => {
      const now = clock.now();
      const absent = await reportAbsences(tx, { ...outage, now });
      const event = absent.find((one) => one.event !== null)?.event;
      if (event == null) return;
      const who = namesOf(absent);
      const verb = absent.length === 1 ? 'has' : 'have';
      const summary = `${who.start} ${verb} been gone for more than ${AWAY_MS / 1000} seconds${who.end}`;
      const away = absent.map(({ node_id, away_since }) => [node_id, now - away_since] as const);
      const metadata = { ...event.metadata, ...countsOf(away) };
      await writer.raise(tx, { ...event, ...partyOf(absent), metadata }, { summary, channels: 'all' });
    });
  }

  private recordReturns(): Promise<void> {
    return this.options.uow.write(async (tx, emit) => {
      const returned = await takeReturns(tx);
      if (returned.length > 0) emit(returnOf(returned));
    });
  }

  private recordLost(rows: readonly Times[]): Promise<void> {
    const { uow } = this.options;
    return uow.write(async (tx, emit) => {
      for (const row of rows) {
        if (!(await isConnectedSince(tx, row))) continue;
        await deleteAgentAbsence(tx, row.node_id);
        const name = await nameOfApproved(tx, row.node_id);
        if (name !== null) emit(lostAgent(row.node_id, name));
      }
    });
  }
}

/** Absences that began between these times, in Unix milliseconds. */
interface Outage {
  readonly from: number;
  readonly to: number;
}

/**
 * Groups absences into outages, and returns those that are due: every agent of it has been away for long enough. So
 * agents that vanish later in the same half minute are waited for, and a single one is reported in time.
 * @param absences in the order of their starts
 */
function outagesDue(absences: readonly Times[], now: number): readonly Outage[] {
  const outages: Outage[] = [];
  for (const { at } of absences) {
    const last = outages.at(-1);
    if (last !== undefined && at - last.from <= TOGETHER_MS) outages[outages.length - 1] = { ...last, to: at };
    else outages.push({ from: at, to: at });
  }
  // An absence that begins ahead of now was stored by a clock that was wrong.
  return outages.filter(({ to }) => now - to >= AWAY_MS || to > now);
}

/** Returns true when no other agent is expected to return together with those that have. */
function areReturnsDue({ first, last, away }: Returns, now: number): boolean {
  if (first === null || last === null) return false;
  return away === 0 || now - last >= QUIET_MS || now - first >= TOGETHER_MS || last > now;
}

function returnOf(returned: readonly Return[]): DomainEvent {
  const away = returned.map(({ node_id, away_since, connected_at }) => {
    const ms = Math.max(connected_at - away_since, 0);
    return [node_id, ms] as const;
  });
  const durations = away.map(([, ms]) => ms);
  const [shortest, longest] = [durationText(Math.min(...durations)), durationText(Math.max(...durations))];
  const after = shortest === longest ? longest : `${shortest} to ${longest}`;
  const who = namesOf(returned);
  const verb = returned.length === 1 ? 'is' : 'are';
  return {
    type: 'agent.returned',
    actor: SYSTEM,
    target: partyOf(returned).target,
    summary: `${who.start} ${verb} back after ${after}${who.end}`,
    metadata: countsOf(away),
  };
}

/** An agent as far as these messages name it. */
interface NamedAgent {
  readonly node_id: string;
  readonly name: string | null;
}

/** Maximum characters of names in a summary. */
const NAMES = 360;

/** Returns the beginning and the end of a sentence about agents: one by name, several by number with their names behind it. */
function namesOf(agents: readonly NamedAgent[]): { readonly start: string; readonly end: string } {
  const names = agents.map(({ node_id, name }) => name ?? node_id);
  if (names.length === 1) return { start: `Agent ${names[0]}`, end: '' };
  const shown: string[] = [];
  let length = 0;
  for (const name of names) {
    length += name.length + 2;
    if (length > NAMES) break;
    shown.push(name);
  }
  const more = names.length - shown.length;
  return { start: `${names.length} agents`, end: `: ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}` };
}

/** Returns the actor and target of an event: the only agent, or the orchestrator with their number as its name. */
function partyOf(agents: readonly NamedAgent[]): { readonly actor: Party; readonly target: Party } {
  const [agent] = agents;
  const one = agents.length === 1 && agent !== undefined;
  const party: Party = one ? agentParty(agent) : { ...SYSTEM, name: `${agents.length} agents` };
  return { actor: one ? party : SYSTEM, target: party };
}

/** Maximum agents in the metadata of a notification. */
const COUNTED = 32;

/** Returns the number of agents, and how long each was away in seconds, by node ID. */
const countsOf = (away: readonly (readonly [nodeId: string, ms: number])[]): JsonObject => ({
  count: away.length,
  away_secs: Object.fromEntries(away.slice(0, COUNTED).map(([nodeId, ms]) => [nodeId, Math.round(ms / 1_000)])),
});

/** Returns a duration in its largest fitting unit, such as `2 min`. */
function durationText(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 100) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}

/** Returns the name of an approved agent; null for one that was rejected or removed meanwhile. */
async function nameOfApproved(tx: Queryable, nodeId: string): Promise<string | null> {
  const agent = await findAgent(tx, nodeId);
  return agent?.status === 'approved' ? (agent.name ?? nodeId) : null;
}

const lostAgent = (nodeId: string, name: string): DomainEvent => ({
  type: 'agent.disconnected',
  actor: SYSTEM,
  target: { id: nodeId, name, type: 'agent' },
  summary: `Agent ${name} was connected before the orchestrator was started again, and has not come back`,
  metadata: {},
});
