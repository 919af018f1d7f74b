/** The state that the journal's records describe: unacknowledged applies, the ledger, and the newest accepted generation. */
import { assertNever } from '../../kernel/fault.js';
import type { CheckReport, DesiredCheck } from '../../resources/checks/check.js';
import type { DesiredResource, Removal } from '../../resources/desired.js';
import type { Restored } from '../../resources/restored.js';
import type { RunEnd, RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import type { Intent } from '../converge/apply-group.js';
import type { Memo, Notes, OwedTrigger } from '../converge/ledger.js';

/** A record of the journal. `run` is the ID of an apply. */
export type JournalRecord =
  /** First record of the file. The newest accepted epoch and generation outlive the records of their apply. */
  | { readonly t: 'journal'; readonly version: 1; readonly epoch: number; readonly generation: number }
  | {
      readonly t: 'accepted';
      readonly run: string;
      readonly epoch: number;
      readonly generation: number;
      readonly resources: readonly DesiredResource[];
      readonly removals: readonly Removal[];
      /** Absent without health checks. */
      readonly verify?: readonly DesiredCheck[] | undefined;
    }
  /** Key of `digest`, generated once per machine. */
  | { readonly t: 'key'; readonly key: string }
  /** Owed triggers, in the same frame as the intents that cause them. */
  | { readonly t: 'owe'; readonly owed: readonly OwedTrigger[] }
  /** In the same frame as the results that make the entries true. */
  | ({ readonly t: 'notes' } & Notes)
  | { readonly t: 'intent'; readonly run: string; readonly intents: readonly Intent[] }
  | { readonly t: 'items'; readonly run: string; readonly items: readonly RunItem[] }
  | {
      readonly t: 'end';
      readonly run: string;
      readonly end: RunEnd;
      readonly error: RunError | null;
      /** Absent when no health check has a result. */
      readonly checks?: readonly CheckReport[] | undefined;
      /** The report of a restore; absent without one. */
      readonly restored?: Restored;
    }
  | { readonly t: 'ack'; readonly run: string };

export interface RunError {
  readonly code: string;
  readonly message: string;
}

/** An apply in the journal. */
/** The health checks and the restore that followed an apply. */
export interface Aftermath {
  readonly checks?: readonly CheckReport[] | undefined;
  readonly restored?: Restored | null | undefined;
}

/** Returns the members that are there, for a record or a report. */
export const aftermathOf = ({ checks, restored }: Aftermath) => ({
  ...(checks === undefined ? {} : { checks: [...checks] }),
  ...(restored == null ? {} : { restored }),
});

export interface JournalledRun {
  readonly id: string;
  readonly epoch: number;
  readonly generation: number;
  readonly content: RunContent;
  readonly intents: readonly Intent[];
  readonly items: readonly RunItem[];
  /** Null while the apply runs, or when its process died. */
  readonly end: RunEnd | null;
  readonly error: RunError | null;
  /** Results of the health checks; absent without them. */
  readonly checks?: readonly CheckReport[] | undefined;
  /** The report of a restore; null without one. */
  readonly restored: Restored | null;
}

type LastingRecord = Extract<JournalRecord, { readonly t: 'journal' | 'key' | 'owe' | 'notes' }>;

const nameOf = ({ key, field }: Pick<OwedTrigger, 'key' | 'field'>): string => `${field}\0${key}`;

interface OpenRun extends JournalledRun {
  readonly intents: Intent[];
  readonly items: RunItem[];
  end: RunEnd | null;
  error: RunError | null;
  restored: Restored | null;
}

export class JournalState {
  private readonly openRuns = new Map<string, OpenRun>();
  private readonly owedBy = new Map<string, OwedTrigger>();
  private readonly memos = new Map<string, string>();
  private digestKey: string | null = null;
  private epoch = 0;
  private generation = 0;

  /** Oldest first. */
  get runs(): readonly JournalledRun[] {
    return [...this.openRuns.values()];
  }

  /** Oldest first. */
  get owed(): readonly OwedTrigger[] {
    return [...this.owedBy.values()];
  }

  memo(key: string): string | null {
    return this.memos.get(key) ?? null;
  }

  /** Hex; null before its first use. */
  get key(): string | null {
    return this.digestKey;
  }

  find(run: string): JournalledRun | undefined {
    return this.openRuns.get(run);
  }

  isNewer(epoch: number, generation: number): boolean {
    return epoch > this.epoch || (epoch === this.epoch && generation > this.generation);
  }

  /** Applies a record; ignores records of unknown runs. */
  apply(record: JournalRecord): void {
    if (record.t === 'journal' || record.t === 'accepted') this.raise(record.epoch, record.generation);
    if (this.applyLasting(record)) return;
    const run = this.openRuns.get(record.run);
    switch (record.t) {
      case 'accepted': {
        const { run: id, epoch, generation, resources, removals, verify } = record;
        const content = { resources, removals, ...(verify === undefined ? {} : { verify }) };
        const nothing = { intents: [], items: [], end: null, error: null, restored: null };
        this.openRuns.set(id, { id, epoch, generation, content, ...nothing });
        return;
      }
      case 'intent':
        run?.intents.push(...record.intents);
        return;
      case 'items':
        run?.items.push(...record.items);
        return;
      case 'end':
        if (run) {
          const { end, error, checks, restored = null } = record;
          Object.assign(run, { end, error, restored, ...(checks === undefined ? {} : { checks }) });
        }
        return;
      case 'ack':
        this.openRuns.delete(record.run);
        return;
      default:
        assertNever(record);
    }
  }

  /** Applies a record that belongs to no run; returns whether the record was of that sort. */
  private applyLasting(record: JournalRecord): record is LastingRecord {
    switch (record.t) {
      case 'journal':
        return true;
      case 'key':
        this.digestKey = record.key;
        return true;
      case 'owe':
        for (const owed of record.owed) if (!this.owedBy.has(nameOf(owed))) this.owedBy.set(nameOf(owed), owed);
        return true;
      case 'notes':
        for (const paid of record.paid) this.owedBy.delete(nameOf(paid));
        for (const { key, memo } of record.memos) {
          if (memo === null) this.memos.delete(key);
          else this.memos.set(key, memo);
        }
        return true;
      default:
        return false;
    }
  }

  /** Returns the shortest list of records that describes this state. */
  records(): readonly JournalRecord[] {
    const { epoch, generation, digestKey: key, owed } = this;
    const memos = [...this.memos].map(([name, memo]): Memo => ({ key: name, memo }));
    return [
      { t: 'journal', version: 1, epoch, generation },
      ...(key === null ? [] : [{ t: 'key', key } as const]),
      ...(owed.length === 0 ? [] : [{ t: 'owe', owed } as const]),
      ...(memos.length === 0 ? [] : [{ t: 'notes', paid: [], memos } as const]),
      ...this.runs.flatMap(recordsOf),
    ];
  }

  private raise(epoch: number, generation: number): void {
    if (!this.isNewer(epoch, generation)) return;
    this.epoch = epoch;
    this.generation = generation;
  }
}

function recordsOf(run: JournalledRun): readonly JournalRecord[] {
  const { id, epoch, generation, content, intents, items, end, error, checks, restored } = run;
  return [
    { t: 'accepted', run: id, epoch, generation, ...content },
    { t: 'intent', run: id, intents },
    { t: 'items', run: id, items },
    ...(end === null ? [] : [{ t: 'end', run: id, end, error, ...aftermathOf({ checks, restored }) } as const]),
  ];
}
