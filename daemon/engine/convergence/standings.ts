/**
 * The standing of each approved agent. Events mark agents to be looked at again; a background pass evaluates them in slices, keeps
 * the result in memory for the API, and stores what changed. So a restart knows since when an agent is behind.
 */
import { setImmediate } from 'node:timers/promises';
import type { Agent } from '../../../src/contract/agents.js';
import { STOP_CODES, type StopCode } from '../../../src/contract/standing-names.js';
import type { StandingCounts, Trial } from '../../../src/contract/standings.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { messageOf } from '../../../src/kernel/fault.js';
import type { RecordedEvent } from '../../core/audit-log.js';
import type { Core } from '../../core/core.js';
import type { DomainEvent, EventType } from '../../core/domain-event.js';
import { type AgentRow, listTrials } from '../../fleet/agent-store.js';
import { type AgentInputs, readAgentInputs } from '../agent-inputs.js';
import { trialOf } from '../state/trials.js';
import { lastAttendedOperation } from './automatic-operations.js';
import type { Evaluation, Evaluator } from './evaluator.js';
import {
  countStandings,
  deleteStandings,
  listApprovedIds,
  listStandings,
  putStandings,
  type StandingRow,
} from './standing-store.js';

interface StandingsOptions extends Pick<Core, 'bus' | 'clock' | 'db' | 'logger' | 'newId' | 'uow'> {
  readonly evaluator: Evaluator;
}

/** Why the automatic applies of an agent stop. */
export interface Stop {
  readonly code: StopCode;
  readonly message: string;
}

/** An evaluated agent with its stored standing. */
export interface EvaluatedAgent {
  readonly agent: AgentRow;
  readonly evaluation: Evaluation;
  readonly row: StandingRow;
  /** The row that was known before; the same one if nothing has changed. */
  readonly before: StandingRow | undefined;
}

type ShownStanding = Pick<Agent, 'standing' | 'standing_since' | 'standing_reason' | 'trial' | 'automation_stopped'>;

/** Events after which their target, an agent, is looked at again. */
const OF_AGENT: readonly EventType[] = [
  'agent.approved',
  'agent.rejected',
  'agent.removed',
  'agent.connected',
  'agent.kept',
  'agent.renamed',
  'agent.tags_changed',
  'agent.attributes_changed',
  'state.apply_succeeded',
  'state.apply_failed',
  'state.apply_interrupted',
  'state.apply_cancelled',
  'drift.checked',
  'drift.detected',
  'drift.resolved',
  'drift.snoozed',
  'drift.snooze_ended',
  'drift.accepted',
  'state.apply_rolled_back',
];

/** Events after which every agent is looked at again. */
const OF_ALL: readonly EventType[] = [
  'assignment.created',
  'assignment.updated',
  'assignment.deleted',
  'enforcement.resumed',
  'module.uploaded',
  'module.deleted',
  'values.uploaded',
  'values.deleted',
  'secret.created',
  'secret.updated',
  'secret.deleted',
  'secret.expired',
];

/** Agents that are read at once. */
const PAGE = 200;
/** Milliseconds after which a pass yields to the event loop. */
const SLICE_MS = 4;

const UNKNOWN: ShownStanding = {
  standing: null,
  standing_since: null,
  standing_reason: null,
  trial: null,
  automation_stopped: null,
};

export class Standings {
  private readonly options: StandingsOptions;
  private readonly rows = new Map<string, StandingRow>();
  /** Trials of agents, as last evaluated. */
  private readonly trials = new Map<string, Trial>();
  private readonly shown = new WeakMap<StandingRow, ShownStanding>();
  private readonly marked = new Set<string>();
  private isAllMarked = false;
  private isStopped = false;
  /** True from a failed evaluation to the next one that succeeds. */
  private hasFailed = false;
  private pass: Promise<void> | null = null;
  private turn: Promise<void> = Promise.resolve();
  private listener: ((evaluated: EvaluatedAgent) => void) | null = null;
  private unsubscribe: (() => void)[] = [];

  constructor(options: StandingsOptions) {
    this.options = options;
  }

  /** Loads what is stored, and evaluates every agent in the background. */
  async start(): Promise<void> {
    const { bus, db } = this.options;
    for (const row of await listStandings(db)) this.rows.set(row.node_id, row);
    for (const { node_id, trial_operation_id } of await listTrials(db)) {
      const trial = await trialOf(db, trial_operation_id);
      if (trial !== null) this.trials.set(node_id, trial);
    }
    this.unsubscribe = [
      bus.subscribe(OF_AGENT, ({ target }: RecordedEvent) => this.mark(target.id)),
      bus.subscribe(OF_ALL, () => this.markAll()),
    ];
    this.markAll();
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    for (const one of this.unsubscribe.splice(0)) one();
    await this.pass;
  }

  /** Calls `listener` after each evaluation. */
  onEvaluated(listener: (evaluated: EvaluatedAgent) => void): void {
    this.listener = listener;
  }

  /** Returns the members of an agent that the API shows: the same object as long as nothing of it changes. */
  of(nodeId: string): ShownStanding {
    const row = this.rows.get(nodeId);
    if (row === undefined) return UNKNOWN;
    if (row.standing === 'on_trial') return shownOf(row, this.trials.get(nodeId) ?? null);
    const known = this.shown.get(row);
    if (known !== undefined) return known;
    const shown = shownOf(row, null);
    this.shown.set(row, shown);
    return shown;
  }

  counts(): StandingCounts {
    return countStandings(this.rows.values());
  }

  mark(nodeId: string): void {
    this.marked.add(nodeId);
    this.begin();
  }

  markAll(): void {
    this.isAllMarked = true;
    this.begin();
  }

  /** Resolves when no agent is marked. */
  async idle(): Promise<void> {
    while (this.pass !== null) await this.pass;
  }

  /** Evaluates an agent at once. Returns null when it is not approved. */
  async look(nodeId: string): Promise<EvaluatedAgent | null> {
    const [agent] = await readAgentInputs(this.options.db, [nodeId]);
    if (agent?.row.status !== 'approved') return null;
    const evaluated = await this.evaluate(agent);
    await this.save([evaluated]);
    return evaluated;
  }

  /** Notes that the automatic applies of an agent stop, in one transaction with its event. */
  async stopAutomation({ agent, row }: EvaluatedAgent, stop: Stop, event: DomainEvent): Promise<void> {
    const { clock, newId, uow } = this.options;
    const stopped = {
      ...row,
      stopped_id: newId(),
      stopped_at: clock.now(),
      stopped_code: stop.code,
      stopped_reason: stop.message,
    };
    await this.inTurn(async () => {
      await uow.write(async (tx, emit) => {
        await putStandings(tx, [stopped]);
        emit(event);
      });
      this.rows.set(agent.node_id, stopped);
    });
  }

  /** Looks again at the agents whose last evaluation failed. Called once a second. */
  tick(): void {
    if (this.isMarked) this.begin();
  }

  private get isMarked(): boolean {
    return this.isAllMarked || this.marked.size > 0;
  }

  private begin(): void {
    if (this.pass !== null || this.isStopped) return;
    this.pass = this.run().then((isDone) => {
      this.pass = null;
      if (isDone && this.isMarked) this.begin();
    });
  }

  /** Evaluates the marked agents. Returns false when the store failed, and they stay marked. Never rejects. */
  private async run(): Promise<boolean> {
    const { db, logger } = this.options;
    // Lets a burst of events mark all of its agents first, and the caller of the first one go on.
    await setImmediate();
    const isAllMarked = this.isAllMarked;
    let ids: readonly string[] = [];
    try {
      if (isAllMarked) {
        this.isAllMarked = false;
        for (const nodeId of await listApprovedIds(db)) this.marked.add(nodeId);
        for (const nodeId of this.rows.keys()) this.marked.add(nodeId);
      }
      ids = [...this.marked].slice(0, PAGE);
      for (const id of ids) this.marked.delete(id);
      await this.evaluatePage(ids);
    } catch (error) {
      for (const id of ids) this.marked.add(id);
      this.isAllMarked ||= isAllMarked;
      if (!this.hasFailed) {
        logger.error('the standing of agents could not be evaluated, it is tried again', { reason: messageOf(error) });
      }
      this.hasFailed = true;
      return false;
    }
    this.hasFailed = false;
    return true;
  }

  private async evaluatePage(ids: readonly string[]): Promise<void> {
    const { db } = this.options;
    // Whatever changes an agent after this marks it again.
    const agents = new Map((await readAgentInputs(db, ids)).map((agent) => [agent.row.node_id, agent]));
    const all: EvaluatedAgent[] = [];
    const gone: string[] = [];
    let began = performance.now();
    for (const id of ids) {
      if (this.isStopped) break;
      const agent = agents.get(id);
      if (agent?.row.status !== 'approved') {
        if (this.rows.has(id)) gone.push(id);
        continue;
      }
      const evaluated = await this.evaluate(agent);
      all.push(evaluated);
      this.listener?.(evaluated);
      if (performance.now() - began < SLICE_MS) continue;
      await setImmediate();
      began = performance.now();
    }
    await this.save(all);
    if (gone.length > 0) await this.options.uow.write((tx) => deleteStandings(tx, gone));
    for (const id of gone) {
      this.rows.delete(id);
      this.trials.delete(id);
    }
  }

  /** Stores what has changed. An agent whose row has changed since its evaluation is looked at again. */
  private save(evaluated: readonly EvaluatedAgent[]): Promise<void> {
    if (evaluated.every(({ row, before }) => row === before)) return Promise.resolve();
    return this.inTurn(async () => {
      const current = evaluated.filter(({ row, before }) => this.rows.get(row.node_id) === before);
      const rows = current.flatMap(({ row, before }) => (row === before ? [] : [row]));
      await this.options.uow.write((tx) => putStandings(tx, rows));
      for (const row of rows) this.rows.set(row.node_id, row);
      for (const one of evaluated) if (!current.includes(one)) this.mark(one.row.node_id);
    });
  }

  /** Changes rows one after another, so that none replaces one that it has not seen. */
  private inTurn(work: () => Promise<void>): Promise<void> {
    const result = this.turn.then(work);
    this.turn = result.catch(() => undefined);
    return result;
  }

  /** Returns the evaluation with the row to be stored; the row is the known one if nothing has changed. */
  private async evaluate(inputs: AgentInputs): Promise<EvaluatedAgent> {
    const { clock, db, evaluator, newId } = this.options;
    const { row: agent } = inputs;
    const evaluation = await evaluator.evaluate(db, inputs);
    const { standing, reason, wantedSha256, assignments, trial } = evaluation;
    if (trial === null) this.trials.delete(agent.node_id);
    else this.trials.set(agent.node_id, trial);
    const before = this.rows.get(agent.node_id);
    // An agent that returned under the same key begins anew.
    const known = before !== undefined && before.counted_from >= agent.created_id ? before : undefined;
    const isSameContent = known !== undefined && known.wanted_sha256 === wantedSha256;
    const stoppedId = known?.stopped_id ?? null;
    const isStopped =
      stoppedId !== null &&
      isSameContent &&
      !assignments.some(({ mode, countedFrom }) => mode !== 'manual' && countedFrom > stoppedId) &&
      !(await lastAttendedOperation(db, agent.node_id, stoppedId));
    const isSame = isSameContent && known.standing === standing && known.reason === reason;
    if (isSame && isStopped === (stoppedId !== null)) return { agent, evaluation, row: known, before };
    const row: StandingRow = {
      node_id: agent.node_id,
      standing,
      since: known?.standing === standing ? known.since : clock.now(),
      reason,
      wanted_sha256: wantedSha256,
      counted_from: isSameContent && (isStopped || stoppedId === null) ? known.counted_from : newId(),
      stopped_id: isStopped ? stoppedId : null,
      stopped_at: isStopped ? known.stopped_at : null,
      stopped_code: isStopped ? known.stopped_code : null,
      stopped_reason: isStopped ? known.stopped_reason : null,
    };
    return { agent, evaluation, row, before };
  }
}

function shownOf(row: StandingRow, trial: Trial | null): ShownStanding {
  const { standing, since, reason, stopped_at, stopped_reason } = row;
  const code = STOP_CODES.find((known) => known === row.stopped_code);
  const isStopped = code !== undefined && stopped_at !== null;
  return {
    standing,
    standing_since: toSeconds(since),
    standing_reason: reason,
    trial,
    automation_stopped: isStopped ? { code, message: stopped_reason ?? '', since: toSeconds(stopped_at) } : null,
  };
}
