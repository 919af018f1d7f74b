/** Input that is typed while the connection is lost: kept for a moment, then dropped, so that it does not surprise anybody later. */

export interface OfflineInputOptions {
  /** Milliseconds from the first key; null keeps it for as long as it takes. */
  readonly patience: number | null;
  /** Told how much was dropped, once for each loss of the connection. */
  onDropped(bytes: number): void;
}

export class OfflineInput {
  private readonly options: OfflineInputOptions;
  private kept: Buffer[] = [];
  private timer: NodeJS.Timeout | null = null;
  /** Once some of it is dropped, the rest would be half of what was meant. */
  private refusing = false;

  constructor(options: OfflineInputOptions) {
    this.options = options;
  }

  add(bytes: Buffer): void {
    if (this.refusing) return;
    this.kept.push(bytes);
    const { patience } = this.options;
    if (patience !== null) this.timer ??= setTimeout(() => this.drop(), patience);
  }

  get length(): number {
    return this.kept.reduce((sum, { length }) => sum + length, 0);
  }

  /** The connection is there: what is still to be sent. */
  release(): readonly Buffer[] {
    const { kept } = this;
    this.stop();
    this.refusing = false;
    return kept;
  }

  /** Forgets all without a word. */
  stop(): void {
    this.kept = [];
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private drop(): void {
    const { length } = this;
    this.stop();
    this.refusing = true;
    this.options.onDropped(length);
  }
}
