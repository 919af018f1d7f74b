/** State that outlives a run on this machine: triggers that are still owed, and memos of earlier successes. */
import type { TriggerField } from '../../resources/kind.js';

/** A trigger that must still be answered, because a resource that it listens to was or may have been changed. */
export interface OwedTrigger {
  /** Ledger key (`Target`) of the resource that has to answer. */
  readonly key: string;
  readonly field: TriggerField;
  /** The operation that owes it. */
  readonly run: string;
}

/** A trigger that was answered or has become obsolete. */
export type AnsweredTrigger = Pick<OwedTrigger, 'key' | 'field'>;

/** The return value of a kind's `memo` after a success; null deletes the previous memo. */
export interface Memo {
  readonly key: string;
  readonly memo: string | null;
}

/** Entries that must be on the disk before a change. */
export interface Precautions {
  readonly owed: readonly OwedTrigger[];
  readonly memos: readonly Memo[];
}

/** Entries that become true together with results. */
export interface Notes {
  readonly paid: readonly AnsweredTrigger[];
  readonly memos: readonly Memo[];
}

export interface Ledger {
  readonly owed: readonly OwedTrigger[];
  /** Null when there is none. */
  memo(key: string): string | null;
  /** Returns a hash of a JSON value, keyed with a secret of this machine. */
  digest(value: unknown): string;
}

export const NO_NOTES: Notes = { paid: [], memos: [] };
export const NO_PRECAUTIONS: Precautions = { owed: [], memos: [] };

/** The ledger of a machine without history. */
export const NO_LEDGER: Ledger = { owed: [], memo: () => null, digest: (value) => JSON.stringify(value) };
