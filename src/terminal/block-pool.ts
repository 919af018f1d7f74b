/**
 * Reuses memory blocks of one size, so that a flood leaves nothing for the garbage collector. Serves the benchmark row
 * "throughput".
 */

export interface BlockPoolOptions {
  /** Size of a block in bytes. */
  readonly size: number;
  /** Maximum number of unused blocks that are kept. */
  readonly kept: number;
}

export class BlockPool {
  private readonly options: BlockPoolOptions;
  private readonly free: Buffer[] = [];

  constructor(options: BlockPoolOptions) {
    this.options = options;
  }

  /** Returns a block. The contents are undefined. */
  take(): Buffer {
    return this.free.pop() ?? Buffer.allocUnsafeSlow(this.options.size);
  }

  /** Returns a block to the pool. The caller must not use it again. */
  give(block: Buffer): void {
    if (this.free.length < this.options.kept) this.free.push(block);
  }
}
