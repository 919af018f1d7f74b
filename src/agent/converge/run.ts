/** What plan, apply and drift have in common: they look at resources, decide, and note what became of each. */

import type { Clock } from '../../kernel/clock.js';
import { Fault } from '../../kernel/fault.js';
import type { Accounts, Host } from '../../resources/host.js';
import type { RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import { differenceIn, type Examined, examined, failed, isBad, isGone, skipped } from './examined.js';
import { type Observation, observeAll, refusalOf } from './observations.js';
import { type Finding, ItemWriter, type Status } from './run-item.js';
import { Scope } from './scope.js';
import { isRemoval, type Refusal, type Target, targetsOf } from './target.js';

/** Told of results in the order in which they come about; the run goes on when it returns. */
export type OnResults = (items: readonly RunItem[]) => void | Promise<void>;

export interface RunOptions {
  readonly clock: Clock;
  /** Ends the run at the next boundary; the code of a Fault as reason tells whether it was cancelled or interrupted. */
  readonly signal?: AbortSignal | undefined;
  readonly onResults?: OnResults | undefined;
}

/** Each resource is looked at whatever became of those that it needs. */
interface Independence {
  readonly isIndependent?: boolean;
}

export class Run {
  readonly host: Host;
  readonly desired: readonly Target[];
  /** In the order to remove them: the last applied goes first. */
  readonly removals: readonly Target[];
  readonly scope: Scope;
  readonly results: RunItem[] = [];
  private readonly options: RunOptions & Independence;
  private readonly count: number;
  private readonly writer = new ItemWriter();
  private readonly reported = new Set<number>();
  private isCut = false;
  private readonly statuses = new Map<number, Status>();
  /** Those of the removals that have failed or were skipped. */
  private readonly leftBehind = new Set<Target>();

  constructor(content: RunContent, host: Host, options: RunOptions & Independence) {
    const targets = targetsOf(content, host.platform);
    this.count = targets.length;
    this.host = host;
    this.options = options;
    this.scope = new Scope(targets);
    this.desired = targets.slice(0, content.resources.length);
    this.removals = targets.slice(content.resources.length).reverse();
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
    const observations = await this.observe(targets.filter((target) => this.settled(target) === null));
    const accounts = this.host.accounts();
    return targets.map((target) => {
      const finding = this.settled(target);
      const examined = finding ? { finding } : this.decide(target, observations.get(target.index), accounts);
      this.note(target, 'finding' in examined ? examined.finding.status : 'pending');
      if (isRemoval(target.source) && isGone(examined)) this.scope.noteRemoved(target);
      return examined;
    });
  }

  /** Looks once more at what was changed; null when nothing differs any more. */
  async differences(targets: readonly Target[]): Promise<ReadonlyMap<number, Refusal | null>> {
    const observations = await this.observe(targets);
    const accounts = this.host.accounts();
    const now = (target: Target) => this.decide(target, observations.get(target.index), accounts);
    return new Map(targets.map((target) => [target.index, differenceIn(target, now(target))]));
  }

  /** Leaves out what an earlier process has reported. */
  passOver(indices: Iterable<number>): void {
    for (const index of indices) this.reported.add(index);
  }

  /** Notes findings and hands their results on; the time is shared among them. */
  async report(findings: readonly Finding[], since: number): Promise<void> {
    if (findings.length === 0) return;
    const share = (this.now() - since) / findings.length;
    const items = findings.map((finding) => {
      this.note(finding.target, finding.status);
      this.reported.add(finding.target.index);
      return this.writer.item(finding, share);
    });
    this.results.push(...items);
    await this.options.onResults?.(items);
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

  private note(target: Target, status: Status): void {
    this.statuses.set(target.index, status);
    if (isRemoval(target.source) && isBad(status)) this.leftBehind.add(target);
  }

  private observe(targets: readonly Target[]): Promise<ReadonlyMap<number, Observation>> {
    const first = targets[0];
    const known = targets.filter((target) => target.kind !== null);
    return observeAll(known, this.host, first && isRemoval(first.source) ? 'removal' : 'plan');
  }

  private decide(target: Target, observation: Observation | undefined, accounts: Accounts): Examined {
    const { kind, source } = target;
    const refusal = target.refusal ?? observation?.refusal;
    if (refusal) return { finding: failed(target, refusal, null) };
    if (!observation || !kind) throw new Error(`${source.kind} ${source.identity} was not read`);
    try {
      const { have } = observation;
      const existed = kind.exists(have);
      const context = this.scope.contextOf(target, accounts);
      const decide = isRemoval(source) ? kind.planRemoval : kind.plan;
      return examined(target, decide.call(kind, source.body, have, context), existed);
    } catch (error) {
      return { finding: failed(target, refusalOf(error, 'apply_failed'), null) };
    }
  }
}

/** Lets whatever else waits in this thread have its turn. */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
