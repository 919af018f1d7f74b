/** What plan, apply and drift have in common: they look at resources, decide, and note what became of each. */

import type { Clock } from '../../kernel/clock.js';
import { Fault } from '../../kernel/fault.js';
import type { Accounts, Host } from '../../resources/host.js';
import type { ReadPurpose } from '../../resources/kind.js';
import type { RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import { differenceIn, type Examined, examined, failed, isGone, skipped } from './examined.js';
import { type Ledger, NO_LEDGER, NO_NOTES, type Notes } from './ledger.js';
import { Settlement } from './ledger-updates.js';
import { type Observation, Observations, refusalOf } from './observations.js';
import { Standings } from './resource-progress.js';
import { type Finding, ItemWriter } from './run-item.js';
import { type Moment, Scope } from './scope.js';
import { isRemoval, type Refusal, type Target, targetsOf } from './target.js';
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

export class Run {
  readonly host: Host;
  readonly desired: readonly Target[];
  /** In the order to remove them: the last applied goes first. */
  readonly removals: readonly Target[];
  readonly scope: Scope;
  readonly triggers: Triggers;
  readonly settlement: Settlement;
  readonly results: RunItem[] = [];
  private readonly options: RunOptions & RunAim;
  private readonly observations: Observations;
  private readonly standings: Standings;
  private readonly count: number;
  private readonly writer: ItemWriter;
  private readonly reported = new Set<number>();
  private isCut = false;

  constructor(content: RunContent, host: Host, options: RunOptions & RunAim) {
    const targets = targetsOf(content, host.platform, options.ledger);
    this.count = targets.length;
    this.host = host;
    this.options = options;
    const ledger: Ledger = options.ledger ?? NO_LEDGER;
    this.scope = new Scope(targets, ledger);
    this.standings = new Standings(this.scope);
    this.desired = targets.slice(0, content.resources.length);
    this.removals = targets.slice(content.resources.length).reverse();
    this.writer = new ItemWriter(targets);
    this.observations = new Observations(host, options.purpose, targets);
    this.triggers = new Triggers({
      desired: this.desired,
      owed: ledger.owed,
      hasChanged: (index) => !options.isIndependent && this.standings.hasMoved(index),
      isForetold: options.purpose === 'plan',
    });
    this.settlement = new Settlement({
      ledger,
      triggers: this.triggers,
      runId: options.runId ?? '',
      memoOf: (target) => this.memoOf(target, this.observations.last(target.index), this.quietly(target)),
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
      this.settlement.owe(target, due.fields);
      const moment = { ...this.quietly(target, accounts), due: due.fields };
      const examined = finding ? { finding } : this.decide(target, observations.get(target.index), { moment, due });
      this.standings.note(target, 'finding' in examined ? examined.finding.status : 'pending');
      if ('pending' in examined) this.scope.noteMade(target, examined.pending.change.makes ?? []);
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
      const moment = this.quietly(target, accounts);
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
      this.standings.note(finding.target, finding.status);
      this.reported.add(finding.target.index);
      if (finding.error?.code === 'cancelled') this.isCut = true;
      return this.writer.item(finding, share);
    });
    this.results.push(...items);
    await this.options.onResults?.(items, notes());
  }

  /** True when something was not reached, or was cut off by a cancel. */
  get wasCut(): boolean {
    return this.isCut;
  }

  /** Reports what was not reached, if anything. */
  async skipRest({ code, message: reason }: Refusal): Promise<void> {
    const rest = [...this.desired, ...this.removals].filter(({ index }) => !this.reported.has(index));
    if (rest.length > 0) this.isCut = true;
    const findings = rest.map((target) => skipped(target, { code, message: reason }, reason));
    await this.report(findings, this.now());
  }

  get hasFailures(): boolean {
    return this.standings.hasFailures;
  }

  /** What is known of a resource without looking at it. */
  private settled(target: Target): Finding | null {
    const block = this.options.isIndependent ? null : this.standings.blockOf(target);
    if (block) return block;
    if (target.refusal) return failed(target, target.refusal, null);
    if (!isRemoval(target.source) || target.source.origin === 'created') return null;
    const reason = 'it was there before orch managed it, so it stays as it is';
    return { target, action: 'release', status: 'pending', reason, existed: null };
  }

  /** The moment of a resource for which no trigger is due. */
  private quietly({ source }: Target, accounts: Accounts = this.host.accounts()): Moment {
    const { purpose } = this.options;
    return {
      accounts,
      due: NOTHING_DUE.fields,
      purpose: isRemoval(source) ? 'removal' : purpose,
      mayAppear: purpose === 'plan' && this.standings.mayBring,
    };
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
      const existed = kind.exists(have) && !target.wasBegun;
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
