/** What the records of the journal amount to: the applies that are not acknowledged, and the newest that was seen. */
import { unreachable } from '../../kernel/exhaustive.js';
import type { DesiredResource, Removal } from '../../resources/desired.js';
import type { RunEnd, RunItem } from '../../wire/messages.js';
import type { RunContent } from '../../wire/parts.js';
import type { Intent } from '../converge/apply-group.js';

/** What stands in the journal. `run` is the id of an apply. */
export type JournalRecord =
  /** The first one of the file. The newest apply that was ever accepted survives what becomes of its records. */
  | { readonly t: 'journal'; readonly version: 1; readonly epoch: number; readonly generation: number }
  | {
      readonly t: 'accepted';
      readonly run: string;
      readonly epoch: number;
      readonly generation: number;
      readonly resources: readonly DesiredResource[];
      readonly removals: readonly Removal[];
    }
  | { readonly t: 'intent'; readonly run: string; readonly intents: readonly Intent[] }
  | { readonly t: 'items'; readonly run: string; readonly items: readonly RunItem[] }
  | { readonly t: 'end'; readonly run: string; readonly end: RunEnd; readonly error: RunError | null }
  | { readonly t: 'ack'; readonly run: string };

export interface RunError {
  readonly code: string;
  readonly message: string;
}

/** An apply as the journal knows it. */
export interface JournalledRun {
  readonly id: string;
  readonly epoch: number;
  readonly generation: number;
  readonly content: RunContent;
  readonly intents: readonly Intent[];
  readonly items: readonly RunItem[];
  /** Null while it runs, or when its process died. */
  readonly end: RunEnd | null;
  readonly error: RunError | null;
}

interface OpenRun extends JournalledRun {
  readonly intents: Intent[];
  readonly items: RunItem[];
  end: RunEnd | null;
  error: RunError | null;
}

export class JournalState {
  private readonly known = new Map<string, OpenRun>();
  private epoch = 0;
  private generation = 0;

  /** Oldest first. */
  get runs(): readonly JournalledRun[] {
    return [...this.known.values()];
  }

  find(run: string): JournalledRun | undefined {
    return this.known.get(run);
  }

  isNewer(epoch: number, generation: number): boolean {
    return epoch > this.epoch || (epoch === this.epoch && generation > this.generation);
  }

  /** Records of runs that are not known any more mean nothing. */
  absorb(record: JournalRecord): void {
    if (record.t === 'journal' || record.t === 'accepted') this.raise(record.epoch, record.generation);
    if (record.t === 'journal') return;
    const run = this.known.get(record.run);
    switch (record.t) {
      case 'accepted': {
        const { run: id, epoch, generation, resources, removals } = record;
        const content = { resources, removals };
        this.known.set(id, { id, epoch, generation, content, intents: [], items: [], end: null, error: null });
        return;
      }
      case 'intent':
        run?.intents.push(...record.intents);
        return;
      case 'items':
        run?.items.push(...record.items);
        return;
      case 'end':
        if (run) Object.assign(run, { end: record.end, error: record.error });
        return;
      case 'ack':
        this.known.delete(record.run);
        return;
      default:
        unreachable(record);
    }
  }

  /** The shortest list of records that amounts to the same. */
  records(): readonly JournalRecord[] {
    const { epoch, generation } = this;
    return [{ t: 'journal', version: 1, epoch, generation }, ...this.runs.flatMap(recordsOf)];
  }

  private raise(epoch: number, generation: number): void {
    if (!this.isNewer(epoch, generation)) return;
    this.epoch = epoch;
    this.generation = generation;
  }
}

function recordsOf(run: JournalledRun): readonly JournalRecord[] {
  const { id, epoch, generation, content, intents, items, end, error } = run;
  return [
    { t: 'accepted', run: id, epoch, generation, ...content },
    { t: 'intent', run: id, intents },
    { t: 'items', run: id, items },
    ...(end === null ? [] : [{ t: 'end', run: id, end, error } as const]),
  ];
}
