/** What the receiver of a copy answers, as its sender follows it. */
import { type CopyReader, lost, type Position, violation } from './copy-frames.js';
import { reasonOfError } from './held-directory.js';

/** An entry that was sent. */
export interface SentEntry {
  /** Number of its source. */
  readonly source: number;
  /** Path from the copied entry on, one character for each byte. */
  readonly path: string;
  readonly position: Position;
  /** Hash and size of a file that was read to its end; set when it was. */
  content: { readonly sha256: string; readonly bytes: number } | null;
}

export interface RepliesOptions {
  readonly reader: CopyReader;
  /** The receiver has dealt with an entry. `reason` says why it could not write it; empty below a directory that it could not make. */
  readonly onSettled: (entry: SentEntry, reason: string | null) => void;
}

/** Maximum entries without an answer. Window and buffers hold fewer of a receiver that answers. */
const MOST_OPEN = 50_000;

export class Replies {
  /** Resolves when the receiver has ended. Rejects when the connection was lost before. */
  readonly ended: Promise<void>;
  private readonly options: RepliesOptions;
  private readonly open: SentEntry[] = [];
  private readonly refusals = new Map<number, string>();
  private sent = 0;
  private settled = 0;
  private offset: number | null = null;
  private failure: unknown = null;
  private isOver = false;
  private wake: (() => void) | null = null;

  constructor(options: RepliesOptions) {
    this.options = options;
    this.ended = this.follow().then(
      () => this.finish(null),
      (error: unknown) => this.finish(error),
    );
    this.ended.catch(() => undefined);
  }

  /** Adds an entry, and returns its number. Waits while too many are open. */
  async expect(entry: SentEntry): Promise<number> {
    while (this.open.length >= MOST_OPEN) await this.change();
    this.open.push(entry);
    this.sent += 1;
    return this.sent;
  }

  /** Returns how many bytes the receiver has of the file that was just begun. */
  async at(): Promise<number> {
    while (this.offset === null) await this.change();
    return this.offset;
  }

  /** Returns whether the receiver has refused the entry with this number. */
  isRefused(entry: number): boolean {
    return this.refusals.has(entry);
  }

  /** Resolves when all entries are dealt with. */
  async all(): Promise<void> {
    while (this.open.length > 0) await this.change();
  }

  private async follow(): Promise<void> {
    const { reader } = this.options;
    for (let frame = await reader.next(); frame !== null; frame = await reader.next()) {
      if (frame.type === 'at') this.offset = frame.offset;
      else if (frame.type === 'settled') this.settle(frame.count);
      else if (frame.type === 'refused') this.refuse(frame.entry, frame.reason);
      else throw violation('a frame that only senders send');
      this.notify();
    }
  }

  private settle(count: number): void {
    if (count < this.settled || count > this.sent) throw violation('an answer about an entry that was not sent');
    for (; this.settled < count; this.settled += 1) {
      const entry = this.open.shift();
      const number = this.settled + 1;
      const reason = this.refusals.get(number) ?? null;
      this.refusals.delete(number);
      if (entry !== undefined) this.options.onSettled(entry, reason);
    }
  }

  private refuse(entry: number, reason: string): void {
    if (entry <= this.settled || entry > this.sent) throw violation('an answer about an entry that was not sent');
    this.refusals.set(entry, reason);
  }

  private async change(): Promise<void> {
    if (this.isOver) throw this.failure ?? lost();
    await new Promise<void>((resolve) => {
      this.wake = resolve;
    });
    if (this.isOver && this.failure !== null) throw this.failure;
  }

  private notify(): void {
    this.wake?.();
    this.wake = null;
  }

  private finish(error: unknown): void {
    this.isOver = true;
    this.failure = error;
    this.notify();
    if (error !== null) throw error instanceof Error ? error : new Error(reasonOfError(error));
  }
}
