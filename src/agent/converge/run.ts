/** The common part of plan, apply and drift: observes resources, decides about each, and records the results. */

import type { Clock } from '../../kernel/clock.js';
import { Fault } from '../../kernel/fault.js';
import type { Origin } from '../../resources/desired.js';
import type { Accounts, Host, RunStep } from '../../resources/host.js';
import type { Decision, ReadPurpose } from '../../resources/kind.js';
import { isPurge } from '../../resources/purge.js';
import { secretValues } from '../../resources/tainted-body.js';
import type { RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import { OutputScrub, type Quotable, quotableOf } from './discretion.js';
import {
  differenceIn,
  type Examined,
  examined,
  failed,
  isBad,
  isGone,
  type Pending,
  removedBefore,
  skipped,
} from './examined.js';
import { Existence } from './existence.js';
import { type Ledger, NO_LEDGER, NO_NOTES, type Notes } from './ledger.js';
import { LedgerUpdates } from './ledger-updates.js';
import { type Observation, Observations, refusalOf } from './observations.js';
import { RemovalOrder } from './removal-order.js';
import { ResourceProgress } from './resource-progress.js';
import { type Finding, ItemWriter, type Status } from './run-item.js';
import { findSameThings, NOTHING_SAME, type SameThings } from './same-things.js';
import { type Moment, removalOrder, Scope } from './scope.js';
import { isRemoval, type Refusal, removesIt, type Target, targetsOf } from './target.js';
import { type Due, NOT_DUE, Triggers } from './triggers.js';

/** Called with results in the order in which they occur, and with the ledger's entries; the run waits until it returns. */
export type OnResults = (items: readonly RunItem[], notes: Notes) => void | Promise<void>;

export interface RunOptions {
  readonly clock: Clock;
  /** Stops the run at the next group; a Fault `interrupted` as reason means that the agent stops, else the run is cancelled. */
  readonly signal?: AbortSignal | undefined;
  readonly onResults?: OnResults | undefined;
  /** State of earlier runs [default: empty]. */
  readonly ledger?: Ledger | undefined;
  /** ID of the operation, for reports of triggers that it leaves owed. */
  readonly runId?: string | undefined;
  /** List for steps that end the agent, to be carried out once the results are stored. */
  readonly deferred?: RunStep[] | undefined;
  /** Command line that shows the kept output of scripts, for messages [default: none does]. */
  readonly outputShownBy?: string | undefined;
}

/** The purpose of a run and whether dependencies count. */
interface RunAim {
  readonly purpose: Exclude<ReadPurpose, 'removal'>;
  /** True when each resource is examined even if one that it depends on has failed. */
  readonly isIndependent?: boolean;
  /** Resources that existed before the apply [default: those that this run finds]. */
  readonly existence?: Existence;
}

export class Run {
  readonly host: Host;
  readonly desired: readonly Target[];
  readonly scope: Scope;
  readonly order: RemovalOrder;
  readonly triggers: Triggers;
  readonly ledgerUpdates: LedgerUpdates;
  readonly results: RunItem[] = [];
  /** Steps that end the agent, to be carried out once the results are stored. */
  readonly deferred: RunStep[];
  /** Positions of the resources of such steps. */
  readonly deferring = new Set<number>();
  /** Returns what messages may quote of the results of commands. */
  readonly quotable: Quotable;
  private readonly options: RunOptions & RunAim;
  private readonly observations: Observations;
  private readonly progress: ResourceProgress;
  private readonly count: number;
  private readonly writer: ItemWriter;
  private readonly reported = new Set<number>();
  readonly existence: Existence;
  /** Removals that stand in the way of a wanted resource. */
  private readonly early = new Set<Target>();
  /** Statuses of resources that an earlier pass has given up. */
  private readonly presumed = new Map<number, Status>();
  private same: SameThings = NOTHING_SAME;
  /** True when something may have changed since the last look at what the resources are. */
  private isSameOutdated = false;
  private isCut = false;

  constructor(content: RunContent, host: Host, options: RunOptions & RunAim) {
    const targets = targetsOf(content, host.platform, options.ledger);
    this.count = targets.length;
    this.host = host;
    this.deferred = options.deferred ?? [];
    this.options = options;
    const ledger: Ledger = options.ledger ?? NO_LEDGER;
    this.scope = new Scope(targets, ledger);
    this.progress = new ResourceProgress(this.scope);
    this.desired = targets.slice(0, content.resources.length);
    const removals = removalOrder(targets.slice(content.resources.length));
    this.order = new RemovalOrder({ host, ledger, removals });
    const scrub = new OutputScrub(
      [...targets.map(({ source }) => source), ...(content.verify ?? [])].flatMap(secretValues),
    );
    this.quotable = quotableOf(scrub, options.outputShownBy);
    this.writer = new ItemWriter(scrub);
    this.observations = new Observations(host, options.purpose, targets);
    this.existence = options.existence ?? new Existence(this.desired, ledger);
    this.triggers = new Triggers({
      desired: this.desired,
      owed: ledger.owed,
      at: (index) => this.scope.at(index),
      hasChanged: (index) => options.isIndependent !== true && this.hasMoved(index),
      isPlan: options.purpose === 'plan',
    });
    this.ledgerUpdates = new LedgerUpdates({
      ledger,
      triggers: this.triggers,
      runId: options.runId ?? '',
      memoOf: (target) => this.memoNow(target),
      clearedBy: (target) => this.scope.clearedFor(target),
    });
  }

  get isStopped(): boolean {
    return this.options.signal?.aborted === true;
  }

  /** True when every resource has its result. */
  get isComplete(): boolean {
    return this.reported.size === this.count;
  }

  /** True if the run was cancelled, or interrupted by a stop of the agent. */
  get stopCode(): 'cancelled' | 'interrupted' {
    const reason: unknown = this.options.signal?.reason;
    return reason instanceof Fault && reason.code === 'interrupted' ? 'interrupted' : 'cancelled';
  }

  now(): number {
    return this.options.clock.monotonic();
  }

  /** Looks at what the resources are, before anything is decided. */
  async begin(): Promise<void> {
    this.same = await findSameThings(this.host, this.desired, this.order.rest);
    this.isSameOutdated = false;
    for (const [index, { target, isSame }] of this.same.heirs) {
      const [removal, heir] = [this.scope.at(index), target];
      if (isSame && removal && isRemoval(removal.source) && removal.source.origin === 'created') {
        if (removal.source.kind === heir.source.kind) this.existence.noteOwn(heir);
      }
    }
  }

  /** Looks again at what the resources are if something has changed. */
  async refresh(): Promise<void> {
    if (this.isSameOutdated) await this.begin();
  }

  /** Returns the removals that have to go before these resources, and begins them. */
  async removalsBefore(targets: readonly Target[]): Promise<readonly Target[]> {
    if (this.order.rest.length === 0) return [];
    await this.refresh();
    // A removal that causes a trigger goes before it, unless a failure holds the removals back.
    const causes = this.failure === undefined ? this.triggers.listenedTo(this.order.rest, targets) : [];
    const mayHinder = this.order.mayHinder(targets, this.same);
    if (!mayHinder && causes.length === 0) return [];
    const first = await this.order.before(mayHinder ? await this.foresee(targets) : [], causes, this.same);
    this.order.begin(first);
    for (const target of first) this.early.add(target);
    return first;
  }

  /** True when a resource was changed, or a removal has removed something; what stays or was gone already causes nothing. */
  private hasMoved(index: number): boolean {
    const target = this.scope.at(index);
    if (target === undefined || !this.progress.hasMoved(index)) return false;
    return !isRemoval(target.source) || this.scope.isRemoved(target);
  }

  /** Records the room that removals have made for these resources. */
  noteRoom(targets: readonly Target[], removals: readonly Target[]): void {
    for (const removal of removals.filter((one) => this.scope.isRemoved(one))) {
      for (const target of targets) {
        const room = this.order.roomFor(target, removal, this.same);
        this.scope.noteRoom(target, room);
        const path = target.source.identity;
        if (room.free === path || room.cleared.includes(path)) this.existence.noteOwn(target);
      }
    }
  }

  /** Returns the first wanted resource that failed. */
  get failure(): Target | undefined {
    return this.desired.find((target) => this.progress.hasFailed(target));
  }

  /** Reports the removals that have not begun as held back by a failure. */
  async holdBack(failure: Target): Promise<void> {
    const { kind, identity } = failure.source;
    const reason = `${kind} ${identity} ${this.options.purpose === 'plan' ? 'fails' : 'failed'}`;
    const held = this.order.rest;
    this.order.begin(held);
    await this.report(
      held.map((target) => {
        const isReleased = isRemoval(target.source) && (target.source.origin !== 'created' || target.kind?.absenceOf);
        const [done, does] = isReleased ? ['released', 'releases'] : ['removed', 'removes'];
        const message = `not ${done}, because ${reason}; the next apply in which nothing fails ${does} it`;
        return skipped(target, { code: 'dependency_failed', message }, reason);
      }),
      this.now(),
    );
  }

  /** Takes over the failures and the removals of an earlier pass over the same resources. */
  presume(earlier: Run): void {
    const { all } = this.order;
    this.order.begin(all);
    for (const { index } of all) this.reported.add(index);
    for (const target of this.desired) {
      const status = earlier.progress.statusOf(target);
      if (status !== undefined && isBad(status)) this.presumed.set(target.index, status);
    }
  }

  /** Decides about resources, without recording anything. */
  private async foresee(targets: readonly Target[]): Promise<readonly Examined[]> {
    const observations = await this.observations.of(targets.filter((target) => this.settled(target) === null));
    const accounts = this.host.accounts();
    return targets.map((target) => {
      const finding = this.settled(target);
      if (finding !== null) return { finding };
      const moment = this.quietly(target, accounts);
      return this.decide(target, observations.get(target.index), { moment, due: NOT_DUE });
    });
  }

  /** Observes resources together, then decides about each in order. */
  async examine(targets: readonly Target[]): Promise<readonly Examined[]> {
    const wanted = targets.filter((target) => this.settled(target) === null);
    const observations = await this.observations.of(wanted);
    const accounts = this.host.accounts();
    return targets.map((target) => {
      const finding = this.settled(target);
      const due = this.triggers.due(target);
      this.ledgerUpdates.recordAnswered(target, due.fields);
      const moment = { ...this.quietly(target, accounts), due: due.fields };
      const decided = finding ? { finding } : this.decide(target, observations.get(target.index), { moment, due });
      const isAlong = !finding && this.wentAlong(target, decided, observations.get(target.index));
      const examined = isAlong ? removedBefore(target) : decided;
      this.progress.note(target, 'finding' in examined ? examined.finding.status : 'pending');
      if ('pending' in examined) {
        const { makes = [], steps } = examined.pending.change;
        this.scope.noteMade(target, makes);
        if (this.options.purpose === 'plan') {
          this.scope.noteWritten(steps);
          if (isPurge(target.source)) this.scope.noteDeleted(steps);
        }
      }
      if (removesIt(target) && isGone(examined)) this.scope.noteRemoved(target);
      return examined;
    });
  }

  /** True for a removal or an absence of something that a change of this apply has taken away. */
  private wentAlong(target: Target, decided: Examined, observation: Observation | undefined): boolean {
    if (!removesIt(target) || this.options.purpose !== 'apply' || this.scope.isTaken(target)) return false;
    // A second pass finds gone what the absences of the first one have removed themselves.
    if (!isRemoval(target.source) && this.options.existence !== undefined) return false;
    if (!('finding' in decided) || decided.finding.status !== 'unchanged' || !observation) return false;
    return target.kind?.exists(observation.have) === false && this.existence.wasThere(target);
  }

  /** Drops cached observations and records what exists, because the machine is about to be changed. */
  async prepareChange(pendings: readonly Pending[], group: readonly Target[]): Promise<void> {
    const seen = new Set([...this.reported, ...group.map(({ index }) => index)]);
    const { wanted, removed } = this.existence.openBefore(pendings, this.order.rest, seen);
    for (const open of [wanted, removed]) {
      for (const [index, { have, refusal }] of await this.observations.before(open)) {
        const kind = this.scope.at(index)?.kind;
        if (kind && refusal === null) this.existence.note(index, kind.exists(have));
      }
    }
    this.observations.forget();
    this.isSameOutdated = true;
  }

  /** Observes changed resources again, without due triggers; null where nothing differs. */
  async differences(targets: readonly Target[]): Promise<ReadonlyMap<number, Refusal | null>> {
    const now = await this.examineAgain(targets);
    return new Map(targets.map((target, at) => [target.index, differenceIn(target, now[at], this.quotable)]));
  }

  /** Decides again about resources whose steps have run, without recording anything. */
  async examineAgain(targets: readonly Target[]): Promise<readonly Examined[]> {
    const observations = await this.observations.of(targets);
    const accounts = this.host.accounts();
    return targets.map((target) => {
      const observation = observations.get(target.index);
      const moment = this.quietly(target, accounts);
      const memo = this.memoOf(target, observation, moment);
      return this.decide(target, observation, { moment, due: NOT_DUE, ...(memo === null ? {} : { memo }) });
    });
  }

  /** Excludes resources that an earlier process has reported. */
  exclude(indices: Iterable<number>): void {
    for (const index of indices) this.reported.add(index);
  }

  /** Records findings and passes their results on. The time since `since` is divided equally among them. */
  async report(findings: readonly Finding[], since: number, notes: () => Notes = () => NO_NOTES): Promise<void> {
    if (findings.length === 0) return;
    const share = (this.now() - since) / findings.length;
    const items = findings.map((finding) => {
      this.progress.note(finding.target, finding.status);
      this.reported.add(finding.target.index);
      if (finding.error?.code === 'cancelled') this.isCut = true;
      return this.writer.item(finding, share);
    });
    this.results.push(...items);
    await this.options.onResults?.(items, notes());
  }

  /** Counts a part of the run as not reached. */
  cut(): void {
    this.isCut = true;
  }

  /** True when a resource was not reached, or its change was cancelled. */
  get wasCut(): boolean {
    return this.isCut;
  }

  /** Reports every resource without a result as skipped. */
  async skipRest({ code, message: reason }: Refusal): Promise<void> {
    const rest = [...this.desired, ...this.order.all].filter(({ index }) => !this.reported.has(index));
    if (rest.length > 0) this.isCut = true;
    const findings = rest.map((target) => skipped(target, { code, message: reason }, reason));
    await this.report(findings, this.now());
  }

  /** Returns the finding of a resource that needs no observation, else null. */
  private settled(target: Target): Finding | null {
    const status = this.presumed.get(target.index);
    if (status !== undefined) return { target, action: 'none', status, existed: null };
    const block = this.options.isIndependent ? null : this.progress.blockOf(target);
    if (block) return block;
    if (target.refusal) return failed(target, target.refusal, null);
    if (!isRemoval(target.source)) {
      const message = this.same.conflicts.get(target.index);
      return message === undefined ? null : failed(target, { code: 'module_conflict', message }, null);
    }
    const reason = target.kind?.absenceOf ? null : this.reasonToStay(target, target.source.origin);
    return reason === null ? null : { target, action: 'release', status: 'pending', reason, existed: null };
  }

  private reasonToStay(target: Target, origin: Origin): string | null {
    if (origin !== 'created') return 'it existed before orch managed it, so it stays as it is';
    return this.early.has(target) ? null : (this.same.heirs.get(target.index)?.reason ?? null);
  }

  /** Returns the moment of a resource without due triggers. */
  private quietly({ source }: Target, accounts: Accounts = this.host.accounts()): Moment {
    const { purpose } = this.options;
    return {
      accounts,
      due: NOT_DUE.fields,
      purpose: isRemoval(source) ? 'removal' : purpose,
      mayAppear: purpose === 'plan' && this.progress.mayAddOthers,
      changesRepositories: purpose === 'plan' && this.progress.changesRepositories,
    };
  }

  /** Returns the memo of the last observation. Only few kinds have one, so the others look up no accounts. */
  private memoNow(target: Target): string | null {
    if (!target.kind?.memo) return null;
    return this.memoOf(target, this.observations.last(target.index), this.quietly(target));
  }

  private memoOf(target: Target, observation: Observation | undefined, moment: Moment): string | null {
    const { kind, source } = target;
    if (!kind?.memo || isRemoval(source) || !observation || observation.refusal) return null;
    return kind.memo(source.body, observation.have, this.scope.contextOf(target, moment));
  }

  /** Returns why a planned change would fail as the file systems are mounted, unless an earlier change may mount others. */
  private obstacleTo(decision: Decision, { mayAppear }: Moment): Refusal | null {
    if (!('steps' in decision) || mayAppear) return null;
    for (const step of decision.steps) {
      const obstacle = step.do === 'run' ? null : (this.host.obstacle?.(step) ?? null);
      if (obstacle !== null) return obstacle;
    }
    return null;
  }

  private decide(target: Target, observation: Observation | undefined, { moment, due, memo }: DecisionInput): Examined {
    const { kind, source } = target;
    const refusal = target.refusal ?? observation?.refusal;
    if (refusal) return { finding: failed(target, refusal, null) };
    if (!observation || !kind) throw new Error(`${source.kind} ${source.identity} was not read`);
    try {
      const { have } = observation;
      const isThere = kind.exists(have);
      const existed = isRemoval(source) ? isThere : this.existence.before(target, isThere);
      // An apply finds it gone by then.
      if (this.options.purpose === 'plan' && this.scope.isTaken(target)) {
        return examined(target, { action: 'none' }, { existed, isThere: false, due, quotable: this.quotable });
      }
      const context = this.scope.contextOf(target, moment, memo);
      const decide = isRemoval(source) ? kind.planRemoval : kind.plan;
      const decision = decide.call(kind, source.body, have, context);
      const obstacle = this.options.purpose === 'plan' ? this.obstacleTo(decision, moment) : null;
      if (obstacle !== null) return { finding: failed(target, obstacle, existed) };
      return examined(target, decision, { existed, isThere, due, quotable: this.quotable });
    } catch (error) {
      return { finding: failed(target, refusalOf(error, 'apply_failed'), null) };
    }
  }
}

/** Inputs of a decision beside body and observation. */
interface DecisionInput {
  readonly moment: Moment;
  readonly due: Due;
  /** Replaces the ledger's memo. */
  readonly memo?: string;
}

/** Yields to other work of this thread. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
