/** What a run puts into the ledger: triggers before the changes that cause them, and what is true once they are answered. */
import type { TriggerField } from '../../resources/kind.js';
import type { Pending } from './examined.js';
import type { Ledger, Memo, Notes, Owed, Paid } from './ledger.js';
import { isSensitive } from './scope.js';
import { begunKey, isRemoval, ledgerKey, secretsKey, type Target } from './target.js';
import type { Triggers } from './triggers.js';

export interface SettlementOptions {
  readonly ledger: Ledger;
  readonly triggers: Triggers;
  /** The operation. */
  readonly runId: string;
  /** What the kind of a resource remembers of what was last seen. */
  memoOf(target: Target): string | null;
}

/** The memo of what only is or is not so. */
const YES = 'yes';

export class Settlement {
  private readonly options: SettlementOptions;
  /** Triggers that each resource has to answer, or answers with its own change. */
  private readonly owing = new Map<number, Set<TriggerField>>();

  constructor(options: SettlementOptions) {
    this.options = options;
  }

  /** Notes triggers that a resource has to answer in this run. */
  owe({ index }: Target, fields: Iterable<TriggerField>): void {
    const known = this.owing.get(index) ?? new Set();
    for (const field of fields) known.add(field);
    if (known.size > 0) this.owing.set(index, known);
  }

  /** What has to be kept before these are changed, so that no trigger is lost. */
  owedBy(pendings: readonly Pending[]): readonly Owed[] {
    const { triggers, runId } = this.options;
    for (const { target, change } of pendings) if (change.owes !== undefined) this.owe(target, [change.owes]);
    const owed = pendings.flatMap(({ target, change }) => triggers.owedFor(target, change.owes, runId));
    return [...new Map(owed.map((one) => [`${one.key}\0${one.field}`, one])).values()];
  }

  /** What is remembered of these from before they are changed: that secrets come to the machine, and not what may become untrue. */
  memosBefore(pendings: readonly Pending[]): readonly Memo[] {
    const { ledger } = this.options;
    return pendings.flatMap(({ target, change, existed }) => {
      const key = ledgerKey(target);
      return [
        ...(target.kind?.memoIsState && ledger.memo(key) !== null ? [{ key, memo: null }] : []),
        ...(isSensitive(target.source) ? this.mark(secretsKey(target), YES) : []),
        ...(change.action === 'create' && !existed ? this.mark(begunKey(target), YES) : []),
      ];
    });
  }

  /** Nothing came of their creation. */
  notBegun(targets: readonly Target[]): readonly Memo[] {
    return targets.flatMap((target) => this.mark(begunKey(target), null));
  }

  private mark(key: string, memo: string | null): readonly Memo[] {
    return this.options.ledger.memo(key) === memo ? [] : [{ key, memo }];
  }

  /** What is true of resources that are as they should be by now: nothing is owed by them, and what their kinds remember. */
  notesOf(targets: readonly Target[]): Notes {
    return {
      paid: targets.flatMap((target) => this.paidBy(target)),
      memos: targets.flatMap((target) => this.newMemoOf(target)),
    };
  }

  /** What resources owe that are not among the desired ones any more. */
  obsolete(desired: readonly Target[]): readonly Paid[] {
    const keys = new Set(desired.map(ledgerKey));
    return this.options.ledger.owed.filter(({ key }) => !keys.has(key)).map(({ key, field }) => ({ key, field }));
  }

  private paidBy(target: Target): readonly Paid[] {
    const key = ledgerKey(target);
    return [...(this.owing.get(target.index) ?? [])].map((field) => ({ key, field }));
  }

  /** Nothing is remembered of what was removed; of the others, what is another memo than before. */
  private newMemoOf(target: Target): readonly Memo[] {
    const { ledger, memoOf } = this.options;
    const key = ledgerKey(target);
    const before = ledger.memo(key);
    const hasSecrets = !isRemoval(target.source) && isSensitive(target.source);
    const marks = [...this.mark(secretsKey(target), hasSecrets ? YES : null), ...this.mark(begunKey(target), null)];
    if (isRemoval(target.source)) return before === null ? marks : [...marks, { key, memo: null }];
    const memo = memoOf(target);
    return memo === null || memo === before ? marks : [...marks, { key, memo }];
  }
}
