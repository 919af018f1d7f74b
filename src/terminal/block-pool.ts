/** Memory of one size that is used again and again: a flood leaves nothing to collect. */

export interface BlockPoolOptions {
  /** Bytes of a block. */
  readonly size: number;
  /** Blocks that are kept while nobody uses them. */
  readonly kept: number;
}

export class BlockPool {
  private readonly options: BlockPoolOptions;
  private readonly free: Buffer[] = [];

  constructor(options: BlockPoolOptions) {
    this.options = options;
  }

  /** What is in it is anybody's. */
  take(): Buffer {
    return this.free.pop() ?? Buffer.allocUnsafeSlow(this.options.size);
  }

  /** Nobody may look into it any more. */
  give(block: Buffer): void {
    if (this.free.length < this.options.kept) this.free.push(block);
  }
}
