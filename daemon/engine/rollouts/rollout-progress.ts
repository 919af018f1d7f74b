/**
 * How far a rollout has come: its row and its agents in memory, what of them is not stored yet, and who is told once it is. An
 * agent's operation is stored in one transaction with the agent's new state, so after a restart an agent either waits or has an
 * operation to follow.
 */

import type { RolloutRecord, ValueChange } from '../../../src/contract/rollouts.js';
import { firstWindow, type WalkBounds } from '../../../src/kernel/walk.js';
import type { Core } from '../../core/core.js';
import { type DomainEvent, type RequestContext, SYSTEM } from '../../core/domain-event.js';
import { ALL_RIGHTS } from '../../core/rights.js';
import { RolloutAgents, type RolloutMember } from './rollout-agents.js';
import { RolloutDeadlines } from './rollout-deadlines.js';
import { boundsOf } from './rollout-pace.js';
import { stoppedRow } from './rollout-results.js';
import type { Change, Commanded, Progress, Situation } from './rollout-state.js';
import {
  type RolloutAgentRow,
  type RolloutRow,
  rolloutRecord,
  updateRollout,
  updateRolloutAgents,
} from './rollout-store.js';
import { stateEvent } from './rollout-target.js';

/** Receives the progress of a rollout after it is stored. */
export interface RunWatcher {
  /** An apply of an agent has begun. */
  onBegun(agent: RolloutMember, operationId: string): void;
  /** An agent has its end. */
  onAgent(agent: RolloutMember): void;
  /** The state or the wave has changed. */
  onRollout(rollout: RolloutRecord): void;
  /** The rollout has ended or halted, and no agent is in flight. */
  onSettled(): void;
}

/** Rows of agents stored in one transaction. */
const ROWS = 500;

export class RolloutProgress {
  readonly agents: RolloutAgents;
  readonly bounds: WalkBounds;
  readonly deadlines: RolloutDeadlines;
  private readonly tools: Pick<Core, 'clock' | 'uow'>;
  private current: RolloutRow;
  /** Number of agents that the slow start allows in flight. */
  private window: number;
  private readonly watchers = new Set<RunWatcher>();
  private readonly unsaved = new Set<RolloutMember>();
  private readonly events: DomainEvent[] = [];
  private isRowSaved = true;
  private told: string;
  /** Changes of stored values since it began, the newest first. */
  private valueChanges: readonly ValueChange[] = [];

  constructor(row: RolloutRow, agents: readonly RolloutAgentRow[], tools: Pick<Core, 'clock' | 'uow'>) {
    const { pace } = row;
    this.current = row;
    this.tools = tools;
    this.agents = new RolloutAgents(agents, pace.waves.length);
    this.bounds = boundsOf(pace);
    this.window = firstWindow(this.bounds, pace.waves.length);
    this.deadlines = new RolloutDeadlines(tools.clock, pace);
    this.deadlines.read(row);
    this.told = this.place();
  }

  get row(): RolloutRow {
    return this.current;
  }

  get isSaved(): boolean {
    return this.isRowSaved && this.unsaved.size === 0 && this.events.length === 0;
  }

  /** The facts from which the next moves follow. */
  get situation(): Situation {
    const { agents, bounds, current: row, deadlines, window } = this;
    const { waves, silent } = agents;
    const now = this.tools.clock.monotonic();
    const isTouched = (wave: number) =>
      agents.all.some((agent) => agent.row.wave === wave + 1 && (agent.isStarting || agent.row.operation_id !== null));
    const view = { bounds, waves, passed: row.passed, silent, window, soakEnd: deadlines.soakEnd, now };
    return { row, view, isTouched };
  }

  record(): RolloutRecord {
    const record = rolloutRecord({ ...this.current, counts: this.agents.counts });
    return this.valueChanges.length === 0 ? record : { ...record, value_changes: [...this.valueChanges] };
  }

  /** Notes the changes of stored values since it began. */
  noteValueChanges(changes: readonly ValueChange[]): void {
    this.valueChanges = changes;
    this.tellPlace();
  }

  /** The actor and the request of the rollout's applies. */
  context(): RequestContext {
    const { actor, request_id: requestId } = this.current;
    // What the actor may do is looked at before each apply begins.
    return { actor, rights: ALL_RIGHTS, requestId, address: null };
  }

  /** Takes a change of the rollout itself; `save` stores it. */
  take({ progress, isOver, event, stopped }: Change): void {
    if (stopped !== undefined) {
      for (const agent of this.agents.inStates('waiting')) this.conclude(agent, stoppedRow(agent.row, stopped));
    }
    if (progress.soaking_until === null) this.deadlines.endSoak();
    this.change(isOver ? { ...progress, finished_at: this.tools.clock.now() } : progress);
    if (event === null) return;
    this.events.push(stateEvent(this.record(), event.type, { actor: SYSTEM, reason: event.reason }));
  }

  beginSoak(): void {
    this.change({ soaking_until: this.deadlines.beginSoak() });
  }

  /** Takes the end of an agent. One that was never reached waits again while its return is waited for. */
  conclude(agent: RolloutMember, row: RolloutAgentRow): void {
    if (row.state === 'unreachable' && this.current.state === 'running' && this.deadlines.isAwaiting) {
      this.agents.makeReady(agent, { ...row, state: 'waiting', operation_id: null, summary: null, error: null });
    } else {
      if (row.state === 'succeeded') this.window += 1;
      else if (row.state !== 'skipped') this.window = this.firstWindow();
      this.agents.change(agent, { row, isStarting: false });
    }
    this.unsaved.add(agent);
  }

  /** Lets an agent wait for the end of another operation, which its row names. */
  awaitOther(agent: RolloutMember, error: NonNullable<RolloutAgentRow['error']>): void {
    const row = { ...agent.row, state: 'waiting', operation_id: null, summary: null, error } as const;
    this.agents.change(agent, { row, place: 'busy', isStarting: false });
    this.unsaved.add(agent);
  }

  /** Takes what a command makes of the rollout, and stores it in one transaction with its audit event. */
  async command({ progress, agents }: Commanded, event: DomainEvent): Promise<void> {
    const row = { ...this.current, ...progress };
    const changed =
      agents === null
        ? []
        : this.agents
            .inStates(...agents.in)
            .filter(({ isStarting }) => !isStarting)
            .map((agent) => ({ agent, row: { ...agent.row, ...agents.become } }));
    const counts = this.countsAfter(changed);
    await this.tools.uow.write(async (tx, emit) => {
      await updateRolloutAgents(
        tx,
        changed.map(({ row: after }) => after),
      );
      await updateRollout(tx, row.rollout_id, { ...row, counts });
      emit(event);
    });
    this.current = row;
    for (const { agent, row: after } of changed) {
      this.agents.change(agent, { busyTicks: 0 });
      if (after.state === 'waiting') this.agents.makeReady(agent, after);
      else this.agents.change(agent, { row: after });
      this.unsaved.delete(agent);
    }
    this.deadlines.read(row);
    if (row.state === 'running') this.window = this.firstWindow();
    for (const { agent } of changed) if (agent.row.state !== 'waiting') this.tell((one) => one.onAgent(agent));
    this.tellPlace();
  }

  /** Stores everything that has changed, with the audit events in the last transaction. */
  async save(): Promise<void> {
    while (!this.isSaved) {
      const agents = [...this.unsaved].slice(0, ROWS);
      const rows = agents.map(({ row }) => row);
      const isLast = agents.length === this.unsaved.size;
      const events = isLast ? [...this.events] : [];
      const { current: row } = this;
      const counts = this.agents.counts;
      await this.tools.uow.write(async (tx, emit) => {
        await updateRolloutAgents(tx, rows);
        if (isLast) await updateRollout(tx, row.rollout_id, { ...row, counts });
        for (const event of events) emit(event);
      });
      this.events.splice(0, events.length);
      if (isLast && this.current === row) this.isRowSaved = true;
      for (const [index, agent] of agents.entries()) {
        if (agent.row !== rows[index]) continue;
        this.unsaved.delete(agent);
        if (agent.row.state !== 'waiting') this.tell((one) => one.onAgent(agent));
      }
      if (isLast) this.tellPlace();
    }
  }

  watch(watcher: RunWatcher): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  tell(news: (watcher: RunWatcher) => void): void {
    for (const watcher of [...this.watchers]) news(watcher);
  }

  private change(progress: Progress): void {
    this.current = { ...this.current, ...progress };
    this.isRowSaved = false;
  }

  private firstWindow(): number {
    return firstWindow(this.bounds, this.current.pace.waves.length);
  }

  private countsAfter(changed: readonly { readonly agent: RolloutMember; readonly row: RolloutAgentRow }[]) {
    const counts = { ...this.agents.counts };
    for (const { agent, row } of changed) {
      counts[agent.row.state] -= 1;
      counts[row.state] += 1;
    }
    return counts;
  }

  private tellPlace(): void {
    const place = this.place();
    if (place === this.told) return;
    this.told = place;
    const record = this.record();
    this.tell((one) => one.onRollout(record));
  }

  private place(): string {
    const { state, passed, soaking_until, finished_at } = this.current;
    const [change] = this.valueChanges;
    return [state, passed, soaking_until, finished_at, this.valueChanges.length, change?.name, change?.at].join();
  }
}
