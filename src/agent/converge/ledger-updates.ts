/** Computes the ledger's entries of a run: owed triggers before the changes that cause them, answers and memos after success. */
import type { TriggerField } from '../../resources/kind.js';
import { isTainted } from '../../resources/tainted-body.js';
import { processIdentity } from '../host/own-service.js';
import type { Pending } from './examined.js';
import type { AnsweredTrigger, Ledger, Memo, Notes, OwedTrigger } from './ledger.js';
import { begunKey, isRemoval, madeKey, removesIt, restartKey, secretsKey, type Target } from './target.js';
import type { Triggers } from './triggers.js';

interface LedgerUpdatesOptions {
  readonly ledger: Ledger;
  readonly triggers: Triggers;
  /** ID of the operation. */
  readonly runId: string;
  /** Returns the memo of the kind for the last observation. */
  memoOf(target: Target): string | null;
  /** Returns the directories that gave way to the resource. */
  clearedBy(target: Target): readonly string[];
}

/**
 * Returns the entries about restarts that an earlier process of the agent has deferred until its end: this process is the new one,
 * so they have happened.
 */
export function notesOfNewProcess(ledger: Ledger): Notes {
  const done = ledger.owed.filter(({ key }) => ![null, processIdentity()].includes(ledger.memo(restartKey(key))));
  return {
    paid: done.map(({ key, field }) => ({ key, field })),
    memos: [...new Set(done.map(({ key }) => restartKey(key)))].map((key) => ({ key, memo: null })),
  };
}

/** The memo of a mark that is only present or absent. */
const YES = 'yes';

export class LedgerUpdates {
  private readonly options: LedgerUpdatesOptions;
  /** Triggers that each resource answers in this run, by position. */
  private readonly answered = new Map<number, Set<TriggerField>>();

  constructor(options: LedgerUpdatesOptions) {
    this.options = options;
  }

  /** Records triggers that a resource answers in this run. */
  recordAnswered({ index }: Target, fields: Iterable<TriggerField>): void {
    const known = this.answered.get(index) ?? new Set();
    for (const field of fields) known.add(field);
    if (known.size > 0) this.answered.set(index, known);
  }

  /** Returns the triggers to store before these changes, so that none is lost in a crash. */
  owedBy(pendings: readonly Pending[]): readonly OwedTrigger[] {
    const { triggers, runId } = this.options;
    for (const { target, change } of pendings)
      if (change.owes !== undefined) this.recordAnswered(target, [change.owes]);
    const owed = pendings.flatMap(({ target, change }) => triggers.owedFor(target, change.owes, runId));
    return [...new Map(owed.map((one) => [`${one.key}\0${one.field}`, one])).values()];
  }

  /** Returns the memos to store before these changes: marks of secrets and of begun creations, and the deletion of state memos. */
  memosBefore(pendings: readonly Pending[]): readonly Memo[] {
    const { ledger } = this.options;
    return pendings.flatMap(({ target, change, existed }) => {
      const { key } = target;
      return [
        ...(target.kind?.memoIsState && ledger.memo(key) !== null ? [{ key, memo: null }] : []),
        ...(change.memoBefore === undefined ? [] : this.mark(key, change.memoBefore)),
        ...(isTainted(target.source) ? this.mark(secretsKey(target), YES) : []),
        ...(change.action === 'create' && !existed ? this.mark(begunKey(target), YES) : []),
        ...(change.makes ?? []).flatMap((directory) => this.mark(madeKey(directory), YES)),
      ];
    });
  }

  /** Deletes the marks of creations that left nothing. */
  notBegun(targets: readonly Target[]): readonly Memo[] {
    return targets.flatMap((target) => this.mark(begunKey(target), null));
  }

  private mark(key: string, memo: string | null): readonly Memo[] {
    return this.options.ledger.memo(key) === memo ? [] : [{ key, memo }];
  }

  /**
   * Returns the entries of resources that are in the desired state: answered triggers and new memos. The triggers of deferring
   * ones stay owed, with a mark of this process, until another process finds them.
   */
  notesOf(targets: readonly Target[], deferring: ReadonlySet<Target>): Notes {
    const done = targets.filter((target) => !deferring.has(target));
    const marks = targets.filter((target) => deferring.has(target)).map(({ key }) => restartKey(key));
    return {
      paid: done.flatMap((target) => this.answeredBy(target)),
      memos: [
        ...targets.flatMap((target) => this.newMemoOf(target)),
        ...marks.flatMap((key) => this.mark(key, processIdentity())),
      ],
    };
  }

  /** Returns owed triggers of resources that are no longer desired. */
  obsolete(desired: readonly Target[]): readonly AnsweredTrigger[] {
    const keys = new Set(desired.map(({ key }) => key));
    return this.options.ledger.owed.filter(({ key }) => !keys.has(key)).map(({ key, field }) => ({ key, field }));
  }

  private answeredBy(target: Target): readonly AnsweredTrigger[] {
    const fields = this.answered.get(target.index);
    if (fields === undefined) return [];
    const { key } = target;
    return [...fields].map((field) => ({ key, field }));
  }

  /** Deletes the memo of a removed or absent resource; returns the memo of any other resource if it differs from the stored one. */
  private newMemoOf(target: Target): readonly Memo[] {
    const { ledger, memoOf, clearedBy } = this.options;
    const { key } = target;
    const before = ledger.memo(key);
    const hasSecrets = !isRemoval(target.source) && isTainted(target.source);
    const marks = [
      ...this.mark(secretsKey(target), hasSecrets ? YES : null),
      ...this.mark(begunKey(target), null),
      ...clearedBy(target).flatMap((directory) => this.mark(madeKey(directory), null)),
    ];
    if (removesIt(target)) return before === null ? marks : [...marks, { key, memo: null }];
    const memo = memoOf(target);
    return memo === null || memo === before ? marks : [...marks, { key, memo }];
  }
}
