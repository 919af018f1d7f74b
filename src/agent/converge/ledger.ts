/** What a run has to know of earlier ones on this machine: triggers that were not answered, and what successes have left. */
import type { TriggerField } from '../../resources/kind.js';

/** A trigger that is to be answered, because something it listens to was or may have been changed. */
export interface Owed {
  /** The resource that has to answer, as `ledgerKey` names it. */
  readonly key: string;
  readonly field: TriggerField;
  /** The operation that owes it. */
  readonly run: string;
}

/** A trigger that was answered, or does not have to be any more. */
export type Paid = Pick<Owed, 'key' | 'field'>;

/** What a kind's `memo` says after a success; null forgets what it said before. */
export interface Memo {
  readonly key: string;
  readonly memo: string | null;
}

/** What has to be kept before a change. */
export interface Precautions {
  readonly owed: readonly Owed[];
  readonly memos: readonly Memo[];
}

/** What becomes true together with results. */
export interface Notes {
  readonly paid: readonly Paid[];
  readonly memos: readonly Memo[];
}

export interface Ledger {
  readonly owed: readonly Owed[];
  /** Null when there is none. */
  memo(key: string): string | null;
  /** A hash of a JSON value under a key of this machine. */
  digest(value: unknown): string;
}

export const NO_NOTES: Notes = { paid: [], memos: [] };
export const NO_PRECAUTIONS: Precautions = { owed: [], memos: [] };

/** Of a machine on which nothing was ever applied and nothing is kept. */
export const NO_LEDGER: Ledger = { owed: [], memo: () => null, digest: (value) => JSON.stringify(value) };
