/** What plan, apply and drift have in common: they look at resources, decide, and note what became of each. */

import type { Clock } from '../../kernel/clock.js';
import { Fault } from '../../kernel/fault.js';
import type { Host } from '../../resources/host.js';
import type { ReadPurpose, TriggerField } from '../../resources/kind.js';
import type { RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import { differenceIn, type Examined, examined, failed, isBad, isGone, type Pending, skipped } from './examined.js';
import { type Ledger, type Memo, NO_LEDGER, NO_NOTES, type Notes, type Owed, type Paid } from './ledger.js';
import { type Observation, Observations, refusalOf } from './observations.js';
import { type Finding, ItemWriter, type Status } from './run-item.js';
import { type Moment, Scope } from './scope.js';
import { isRemoval, ledgerKey, type Refusal, type Target, targetsOf } from './target.js';
import { type Due, NOTHING_DUE, Triggers } from './triggers.js';

/** Told of results in the order in which they come about, and of what is true with them; the run goes on when it returns. */
export type OnResults = (items: readonly RunItem[], notes: Notes) => void | Promise<void>;

export interface RunOptions {
  readonly clock: Clock;
  /** Ends the run at the next boundary; the code of a Fault as reason tells whether it was cancelled or interrupted. */
  readonly signal?: AbortSignal | undefined;
  readonly onResults?: OnResults | undefined;
  /** What earlier runs have left; an empty one unless told. */
  readonly ledger?: Ledger | undefined;
  /** The operation, for whoever reads later what it owes. */
  readonly runId?: string | undefined;
}

/** What a run is for, which decides what may be done to find out, and what follows from what. */
export interface RunAim {
  readonly purpose: Exclude<ReadPurpose, 'removal'>;
  /** Each resource is looked at whatever became of those that it needs. */
  readonly isIndependent?: boolean;
}

/** Families whose changes bring nothing else with them. */
const PLAIN: ReadonlySet<string | undefined> = new Set(['path', 'group', undefined]);

const MOVED: ReadonlySet<Status> = new Set<Status>(['changed', 'pending']);

export class Run {
  readonly host: Host;
  readonly desired: readonly Target[];
  /** In the order to remove them: the last applied goes first. */
  readonly removals: readonly Target[];
  readonly scope: Scope;
  readonly triggers: Triggers;
  readonly results: RunItem[] = [];
  private readonly options: RunOptions & RunAim;
  private readonly observations: Observations;
  private readonly ledger: Ledger;
  /** Triggers that each resource has to answer, or answers with its own change. */
  private readonly owing = new Map<number, Set<TriggerField>>();
  /** True when something that is still to be changed may bring more than itself. */
  private isBringing = false;
  private readonly count: number;
  private readonly writer: ItemWriter;
  private readonly reported = new Set<number>();
  private isCut = false;
  private readonly statuses = new Map<number, Status>();
  /** Those of the removals that have failed or were skipped. */
  private readonly leftBehind = new Set<Target>();

  constructor(content: RunContent, host: Host, options: RunOptions & RunAim) {
    const targets = targetsOf(content, host.platform);
    this.count = targets.length;
    this.host = host;
    this.options = options;
    this.ledger = options.ledger ?? NO_LEDGER;
    this.scope = new Scope(targets, this.ledger);
    this.desired = targets.slice(0, content.resources.length);
    this.removals = targets.slice(content.resources.length).reverse();
    this.writer = new ItemWriter(targets);
    this.observations = new Observations(host, options.purpose, targets);
    this.triggers = new Triggers({
      desired: this.desired,
      owed: this.ledger.owed,
      hasChanged: (index) => !options.isIndependent && MOVED.has(this.statuses.get(index) ?? 'unchanged'),
      isForetold: options.purpose === 'plan',
    });
  }

  get isStopped(): boolean {
    return this.options.signal?.aborted === true;
  }

  /** True when every resource has its result. */
  get isComplete(): boolean {
    return this.reported.size === this.count;
  }

  /** Why the run is stopped. */
  get stopCode(): 'cancelled' | 'interrupted' {
    const reason: unknown = this.options.signal?.reason;
    return reason instanceof Fault && reason.code === 'interrupted' ? 'interrupted' : 'cancelled';
  }

  now(): number {
    return this.options.clock.monotonic();
  }

  /** Looks at resources, all at once, and then decides about one after the other. */
  async examine(targets: readonly Target[]): Promise<readonly Examined[]> {
    const wanted = targets.filter((target) => this.settled(target) === null);
    const observations = await this.observations.of(wanted);
    const accounts = this.host.accounts();
    return targets.map((target) => {
      const finding = this.settled(target);
      const due = this.triggers.due(target);
      this.owe(target, due.fields);
      const moment = { ...this.momentOf(target), accounts, due: due.fields };
      const examined = finding ? { finding } : this.decide(target, observations.get(target.index), { moment, due });
      this.note(target, 'finding' in examined ? examined.finding.status : 'pending');
      if (isRemoval(target.source) && isGone(examined)) this.scope.noteRemoved(target);
      return examined;
    });
  }

  /** Forgets what was seen, because something is about to be changed. */
  forgetObservations(): void {
    this.observations.forget();
  }

  /** Looks once more at what was changed, as if no trigger were due; null when nothing differs any more. */
  async differences(targets: readonly Target[]): Promise<ReadonlyMap<number, Refusal | null>> {
    const now = await this.examineAgain(targets);
    return new Map(targets.map((target, at) => [target.index, differenceIn(target, now[at])]));
  }

  /** What would have to be done now to resources whose steps have run; notes nothing. */
  async examineAgain(targets: readonly Target[]): Promise<readonly Examined[]> {
    const observations = await this.observations.of(targets);
    const accounts = this.host.accounts();
    return targets.map((target) => {
      const observation = observations.get(target.index);
      const moment: Moment = { ...this.momentOf(target), accounts, due: NOTHING_DUE.fields };
      const memo = this.memoOf(target, observation, moment);
      return this.decide(target, observation, { moment, due: NOTHING_DUE, ...(memo === null ? {} : { memo }) });
    });
  }

  /** Leaves out what an earlier process has reported. */
  passOver(indices: Iterable<number>): void {
    for (const index of indices) this.reported.add(index);
  }

  /** Notes findings and hands their results on; the time is shared among them. */
  async report(findings: readonly Finding[], since: number, notes: () => Notes = () => NO_NOTES): Promise<void> {
    if (findings.length === 0) return;
    const share = (this.now() - since) / findings.length;
    const items = findings.map((finding) => {
      this.note(finding.target, finding.status);
      this.reported.add(finding.target.index);
      return this.writer.item(finding, share);
    });
    this.results.push(...items);
    await this.options.onResults?.(items, notes());
  }

  /** What has to be kept before these are changed, so that no trigger is lost. */
  owedBy(pendings: readonly Pending[]): readonly Owed[] {
    const run = this.options.runId ?? '';
    for (const { target, change } of pendings) if (change.owes !== undefined) this.owe(target, [change.owes]);
    const owed = pendings.flatMap(({ target, change }) => this.triggers.owedFor(target, change.owes, run));
    return [...new Map(owed.map((one) => [`${one.key}\0${one.field}`, one])).values()];
  }

  /** What is true of resources that are as they should be by now: nothing is owed by them, and what their kinds remember. */
  notesOf(targets: readonly Target[]): Notes {
    const paid: Paid[] = [];
    const memos: Memo[] = [];
    const accounts = this.host.accounts();
    for (const target of targets) {
      const moment: Moment = { ...this.momentOf(target), accounts, due: NOTHING_DUE.fields };
      const key = ledgerKey(target);
      paid.push(...[...(this.owing.get(target.index) ?? [])].map((field) => ({ key, field })));
      const memo = isRemoval(target.source) ? null : this.memoOf(target, this.observations.last(target.index), moment);
      if (memo !== this.ledger.memo(key) && (memo !== null || isRemoval(target.source))) memos.push({ key, memo });
    }
    return { paid, memos };
  }

  /** What resources owe that are not desired any more. */
  obsolete(): readonly Paid[] {
    const keys = new Set(this.desired.map(ledgerKey));
    return this.ledger.owed.filter(({ key }) => !keys.has(key)).map(({ key, field }) => ({ key, field }));
  }

  /** True when something was not reached. */
  get wasCut(): boolean {
    return this.isCut;
  }

  /** Reports what was not reached, if anything. */
  async skipRest({ code, message: reason }: Refusal): Promise<void> {
    const rest = [...this.desired, ...this.removals].filter(({ index }) => !this.reported.has(index));
    this.isCut = rest.length > 0;
    const findings = rest.map((target) => skipped(target, { code, message: reason }, reason));
    await this.report(findings, this.now());
  }

  get hasFailures(): boolean {
    return [...this.statuses.values()].some(isBad);
  }

  /** What is known of a resource without looking at it. */
  private settled(target: Target): Finding | null {
    const blocker = this.blockerOf(target);
    if (blocker) {
      const { kind, identity } = blocker.source;
      const reason = `${kind} ${identity} ${this.statuses.get(blocker.index) === 'skipped' ? 'was skipped' : 'failed'}`;
      return skipped(target, { code: 'dependency_failed', message: `not attempted, because ${reason}` }, reason);
    }
    if (target.refusal) return failed(target, target.refusal, null);
    if (!isRemoval(target.source) || target.source.origin === 'created') return null;
    const reason = 'it was there before orch managed it, so it stays as it is';
    return { target, action: 'release', status: 'pending', reason, existed: null };
  }

  /** A resource that has failed and that this one needs, or, for a directory to be removed: that still lies in it. */
  private blockerOf(target: Target): Target | undefined {
    if (this.options.isIndependent) return undefined;
    if (isRemoval(target.source)) return this.leftIn(target);
    const before = this.scope.before(target).find((index) => isBad(this.statuses.get(index)));
    return before === undefined ? undefined : this.scope.at(before);
  }

  private leftIn(directory: Target): Target | undefined {
    for (const other of this.leftBehind) if (this.scope.isWithin(other, directory)) return other;
    return undefined;
  }

  private owe({ index }: Target, fields: Iterable<TriggerField>): void {
    const known = this.owing.get(index) ?? new Set();
    for (const field of fields) known.add(field);
    if (known.size > 0) this.owing.set(index, known);
  }

  private note(target: Target, status: Status): void {
    this.statuses.set(target.index, status);
    if (status === 'pending' && !PLAIN.has(target.kind?.family)) this.isBringing = true;
    if (isRemoval(target.source) && isBad(status)) this.leftBehind.add(target);
  }

  private momentOf({ source }: Target): Pick<Moment, 'purpose' | 'mayAppear'> {
    const { purpose } = this.options;
    return { purpose: isRemoval(source) ? 'removal' : purpose, mayAppear: purpose === 'plan' && this.isBringing };
  }

  private memoOf(target: Target, observation: Observation | undefined, moment: Moment): string | null {
    const { kind, source } = target;
    if (!kind?.memo || isRemoval(source) || !observation || observation.refusal) return null;
    return kind.memo(source.body, observation.have, this.scope.contextOf(target, moment));
  }

  private decide(target: Target, observation: Observation | undefined, { moment, due, memo }: Circumstances): Examined {
    const { kind, source } = target;
    const refusal = target.refusal ?? observation?.refusal;
    if (refusal) return { finding: failed(target, refusal, null) };
    if (!observation || !kind) throw new Error(`${source.kind} ${source.identity} was not read`);
    try {
      const { have } = observation;
      const existed = kind.exists(have);
      const context = this.scope.contextOf(target, moment, memo);
      const decide = isRemoval(source) ? kind.planRemoval : kind.plan;
      return examined(target, decide.call(kind, source.body, have, context), { existed, due });
    } catch (error) {
      return { finding: failed(target, refusalOf(error, 'apply_failed'), null) };
    }
  }
}

/** Under which a decision is made. */
interface Circumstances {
  readonly moment: Moment;
  readonly due: Due;
  /** In the place of what the ledger holds. */
  readonly memo?: string;
}

/** Lets whatever else waits in this thread have its turn. */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
