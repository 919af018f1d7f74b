/** Checks every approved, connected agent for drift once per interval, spread evenly over the interval. */
import { setMaxListeners } from 'node:events';
import { isFault, messageOf } from '../../../src/kernel/fault.js';
import { isNodeId, type NodeId } from '../../../src/kernel/ids.js';
import type { Service } from '../../../src/kernel/service.js';
import type { AgentLabels } from '../../../src/language/clause.js';
import type { Settings } from '../../../src/settings/serve.js';
import type { Core } from '../../core/core.js';
import { findAgent, listManagedAgents } from '../../fleet/agent-store.js';
import type { AgentLink } from '../../fleet/connection-registry.js';
import { tagsOf } from '../../fleet/tag-store.js';
import { lastOperationOf } from '../operations/operation-store.js';
import type { Drift } from './drift.js';

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
  /** Returns the current schedule; called at each use. */
  readonly schedule: () => DriftSchedule;
  /** While a maintenance window is active, no check begins; due checks start after the window. */
  readonly isMaintenance: () => boolean;
  /** Returns what tells paused agents by their labels; null while no window is limited to some agents. */
  readonly pausedAgents?: () => ((labels: AgentLabels) => boolean) | null;
}

/** Milliseconds between attempts to begin checks. */
const TICK = 1000;
/** Number of searches for due agents per interval; limited to one per tick. */
const LOOKS = 120;
/** Minimum lateness in milliseconds at which a check counts as overdue. */
const OVERDUE = 60_000;
/** Minimum milliseconds between two warnings about overdue checks. */
const WARN_EVERY = 600_000;

interface DueCheck {
  readonly id: NodeId;
  /** First slot without a check, in Unix milliseconds. */
  readonly since: number;
}

/** A reason why the orchestrator is degraded. */
interface OverdueProblem {
  readonly code: 'drift_overdue';
  readonly detail: string;
}

export class DriftScheduler implements Service {
  readonly name = 'drift scheduler';
  private readonly options: DriftSchedulerOptions;
  /** Time at which each agent was last checked or first seen, in Unix milliseconds. */
  private readonly checked = new Map<NodeId, number>();
  private readonly running = new Map<NodeId, Promise<void>>();
  /** Agents whose check is due, longest overdue first. */
  private due: DueCheck[] = [];
  private lastSearch = Number.NEGATIVE_INFINITY;
  /** Last time at which no check could begin, and last warning about overdue checks; on the monotonic clock. */
  private heldAt: number;
  private warnedAt = Number.NEGATIVE_INFINITY;
  private round: Promise<void> = Promise.resolve();
  private readonly shutdown = new AbortController();
  private timer: NodeJS.Timeout | undefined;

  constructor(options: DriftSchedulerOptions) {
    this.options = options;
    this.heldAt = options.clock.monotonic();
  }

  async start(): Promise<void> {
    // Every check in flight adds a listener to this signal.
    setMaxListeners(0, this.shutdown.signal);
    this.timer = setInterval(() => void this.tick(), TICK);
    this.timer.unref();
  }

  /** Cancels the checks in flight; each still stores its record. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.shutdown.abort();
    await this.round;
    await Promise.all(this.running.values());
    await this.round;
  }

  /** Finds due checks and begins them up to the concurrency limit. Never rejects. */
  tick(): Promise<void> {
    return this.inTurn(async (schedule) => {
      const now = this.options.clock.monotonic();
      if (now - this.lastSearch >= searchInterval(schedule)) {
        this.lastSearch = now;
        await this.findDue(schedule);
      }
      await this.begin(schedule);
      this.warnOfOverdue();
    });
  }

  /** Number of due checks of connected agents that wait for a place and are late. */
  get overdue(): number {
    const { clock, link, schedule, isMaintenance } = this.options;
    if (isMaintenance()) return 0;
    // Twice the time in which a due check may remain undiscovered.
    const late = Math.max(OVERDUE, 2 * searchInterval(schedule()));
    if (clock.monotonic() - this.heldAt < late) return 0;
    const now = clock.now();
    return this.due.filter(({ id, since }) => now - since >= late && link.isConnected(id)).length;
  }

  problems(): readonly OverdueProblem[] {
    if (this.overdue === 0) return [];
    const detail = 'scheduled drift checks are late; raise drift.max_concurrent or drift.interval';
    return [{ code: 'drift_overdue', detail }];
  }

  /** Runs work on the list of due checks, one after another. Never rejects. */
  private inTurn(work: (schedule: DriftSchedule) => Promise<void>): Promise<void> {
    this.round = this.round.then(async () => {
      const { schedule: current, isMaintenance, clock, logger } = this.options;
      const schedule = current();
      if (!schedule.enabled || isMaintenance()) this.heldAt = clock.monotonic();
      if (!schedule.enabled || this.shutdown.signal.aborted) {
        this.due = [];
        return;
      }
      try {
        await work(schedule);
      } catch (error) {
        logger.error('drift checks could not be scheduled', { reason: messageOf(error) });
      }
    });
    return this.round;
  }

  private warnOfOverdue(): void {
    const { clock, logger, schedule } = this.options;
    const now = clock.monotonic();
    if (now - this.warnedAt < WARN_EVERY) return;
    const { overdue } = this;
    if (overdue === 0) return;
    this.warnedAt = now;
    logger.warn('scheduled drift checks are late: more are due than can run', {
      overdue,
      max_concurrent: schedule().maxConcurrent,
      hint: 'raise drift.max_concurrent or drift.interval',
    });
  }

  /** Finds the agents whose slot in the interval has passed since their last check. */
  private async findDue({ interval }: DriftSchedule): Promise<void> {
    const { db, clock } = this.options;
    const now = clock.now();
    const agents = (await listManagedAgents(db)).filter(isNodeId);
    const known = new Set(agents);
    for (const id of this.checked.keys()) if (!known.has(id)) this.checked.delete(id);
    const late: DueCheck[] = [];
    for (const id of agents) {
      // A clock that was set back must not delay an agent.
      const last = Math.min(this.checked.get(id) ?? now, now);
      this.checked.set(id, last);
      const since = slotAfter(id, last, interval);
      if (since <= now) late.push({ id, since });
    }
    this.due = late.sort((a, b) => a.since - b.since);
  }

  private async begin({ maxConcurrent, skipRecentlyApplied }: DriftSchedule): Promise<void> {
    const { link, isMaintenance } = this.options;
    while (this.due.length > 0 && this.running.size < maxConcurrent && !isMaintenance()) {
      const id = this.due.shift()?.id;
      // The next search finds a disconnected agent again.
      if (id === undefined || !link.isConnected(id) || this.running.has(id)) continue;
      if (await this.wasApplied(id, skipRecentlyApplied)) continue;
      if (await this.isPaused(id)) continue;
      this.running.set(id, this.check(id));
    }
  }

  /** Returns true while a window pauses this agent alone; the next search finds it again. */
  private async isPaused(id: NodeId): Promise<boolean> {
    const { db, pausedAgents } = this.options;
    const paused = pausedAgents?.() ?? null;
    if (paused === null) return false;
    const agent = await findAgent(db, id);
    return agent !== null && paused({ attributes: agent.attributes, tags: await tagsOf(db, id) });
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
      if (this.due.length > 0) void this.inTurn((schedule) => this.begin(schedule));
    }
  }
}

/** Returns the milliseconds between two searches for due checks. */
const searchInterval = ({ interval }: DriftSchedule): number => Math.max(TICK, interval / LOOKS);

/** Returns the time of an agent's first slot after `time`. Its ID, a hash, determines a fixed offset within every interval. */
function slotAfter(id: NodeId, time: number, interval: number): number {
  const offset = (Number.parseInt(id.slice(0, 12), 16) / 0x1_0000_0000_0000) * interval;
  return (Math.floor((time - offset) / interval) + 1) * interval + offset;
}

/** Reads the schedule of drift checks; times in milliseconds. */
export const driftSchedule = (settings: Settings) => ({
  enabled: settings['drift.enabled'],
  interval: settings['drift.interval'] * 1000,
  maxConcurrent: settings['drift.max_concurrent'],
  skipRecentlyApplied: settings['drift.skip_recently_applied'] * 1000,
});
