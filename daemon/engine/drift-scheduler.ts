/** Checks every approved, connected agent for drift once per interval, spread evenly over the interval. */
import { setMaxListeners } from 'node:events';
import { isFault, messageOf } from '../../src/kernel/fault.js';
import { isNodeId, type NodeId } from '../../src/kernel/ids.js';
import type { Service } from '../../src/kernel/service.js';
import type { Settings } from '../../src/settings/serve.js';
import type { Core } from '../core/core.js';
import { listManagedAgents } from '../fleet/agent-store.js';
import type { AgentLink } from '../fleet/connection-registry.js';
import type { Drift } from './drift.js';
import { lastOperationOf } from './operations/operation-store.js';

/** Times in milliseconds. */
export interface DriftSchedule {
  readonly enabled: boolean;
  readonly interval: number;
  readonly maxConcurrent: number;
  /** Minimum age of an agent's last apply before a scheduled check. */
  readonly skipRecentlyApplied: number;
}

interface DriftSchedulerOptions extends Pick<Core, 'clock' | 'db' | 'logger'> {
  readonly link: AgentLink;
  readonly drift: Drift;
  /** Returns the current schedule; called on every tick. */
  readonly schedule: () => DriftSchedule;
  /** While a maintenance window is active, no check begins; due checks start after the window. */
  readonly isMaintenance: () => boolean;
}

/** Milliseconds between attempts to begin checks. */
const TICK = 1000;
/** Number of searches for due agents per interval; limited to one per tick. */
const LOOKS = 120;

export class DriftScheduler implements Service {
  readonly name = 'drift scheduler';
  private readonly options: DriftSchedulerOptions;
  /** Time at which each agent was last checked or first seen, in Unix milliseconds. */
  private readonly checked = new Map<NodeId, number>();
  private readonly running = new Map<NodeId, Promise<void>>();
  /** Agents whose check is due, longest overdue first. */
  private due: NodeId[] = [];
  private lastSearch = Number.NEGATIVE_INFINITY;
  private round: Promise<void> = Promise.resolve();
  private readonly shutdown = new AbortController();
  private timer: NodeJS.Timeout | undefined;

  constructor(options: DriftSchedulerOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    // Every check in flight adds a listener to this signal.
    setMaxListeners(0, this.shutdown.signal);
    this.timer = setInterval(() => {
      this.round = this.round.then(() => this.tick());
    }, TICK);
    this.timer.unref();
  }

  /** Cancels the checks in flight; each still stores its record. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.shutdown.abort();
    await this.round;
    await Promise.all(this.running.values());
  }

  /** Begins due checks up to the concurrency limit. Never rejects. */
  async tick(): Promise<void> {
    const schedule = this.options.schedule();
    if (!schedule.enabled || this.shutdown.signal.aborted) {
      this.due = [];
      return;
    }
    try {
      const now = this.options.clock.monotonic();
      if (now - this.lastSearch >= Math.max(TICK, schedule.interval / LOOKS)) {
        this.lastSearch = now;
        await this.findDue(schedule);
      }
      await this.begin(schedule);
    } catch (error) {
      this.options.logger.error('drift checks could not be scheduled', { reason: messageOf(error) });
    }
  }

  /** Finds the agents whose slot in the interval has passed since their last check. */
  private async findDue({ interval }: DriftSchedule): Promise<void> {
    const { db, clock } = this.options;
    const now = clock.now();
    const agents = (await listManagedAgents(db)).filter(isNodeId);
    const known = new Set(agents);
    for (const id of this.checked.keys()) if (!known.has(id)) this.checked.delete(id);
    const late: { readonly id: NodeId; readonly since: number }[] = [];
    for (const id of agents) {
      // A clock that was set back must not delay an agent.
      const last = Math.min(this.checked.get(id) ?? now, now);
      this.checked.set(id, last);
      const moment = momentBefore(id, now, interval);
      if (moment > last) late.push({ id, since: now - moment });
    }
    this.due = late.sort((a, b) => b.since - a.since).map(({ id }) => id);
  }

  private async begin({ maxConcurrent, skipRecentlyApplied }: DriftSchedule): Promise<void> {
    const { link, isMaintenance } = this.options;
    while (this.due.length > 0 && this.running.size < maxConcurrent && !isMaintenance()) {
      const id = this.due.shift();
      // The next search finds a disconnected agent again.
      if (id === undefined || !link.isConnected(id) || this.running.has(id)) continue;
      if (await this.wasApplied(id, skipRecentlyApplied)) continue;
      this.running.set(id, this.check(id));
    }
  }

  private async wasApplied(id: NodeId, within: number): Promise<boolean> {
    const { db, clock } = this.options;
    const last = await lastOperationOf(db, id);
    if (last === null) return false;
    if (last.finished_at === null) return true;
    const age = clock.now() - last.finished_at;
    // A finish time in the future was written while the clock was ahead, so the real age is unknown.
    return age >= 0 && age < within;
  }

  /** Never rejects. */
  private async check(id: NodeId): Promise<void> {
    const { clock, drift, logger } = this.options;
    const before = this.checked.get(id);
    this.checked.set(id, clock.now());
    try {
      await drift.check({ nodeId: id, signal: this.shutdown.signal, requestedBy: null });
    } catch (error) {
      if (isFault(error, 'operation_in_progress', 'agent_not_connected')) {
        // The check learned nothing, so the agent stays due.
        if (before !== undefined) this.checked.set(id, before);
      } else if (!isFault(error, 'agent_timeout', 'no_snapshot', 'agent_not_approved', 'agent_not_found')) {
        logger.error('a scheduled drift check failed', { node_id: id, reason: messageOf(error) });
      }
    } finally {
      this.running.delete(id);
    }
  }
}

/** Returns the time of an agent's last slot. Its ID, a hash, determines a fixed offset within every interval. */
function momentBefore(id: NodeId, now: number, interval: number): number {
  const place = (Number.parseInt(id.slice(0, 12), 16) / 0x1_0000_0000_0000) * interval;
  return Math.floor((now - place) / interval) * interval + place;
}

/** Reads the schedule of drift checks; times in milliseconds. */
export const driftSchedule = (settings: Settings) => ({
  enabled: settings['drift.enabled'],
  interval: settings['drift.interval'] * 1000,
  maxConcurrent: settings['drift.max_concurrent'],
  skipRecentlyApplied: settings['drift.skip_recently_applied'] * 1000,
});
