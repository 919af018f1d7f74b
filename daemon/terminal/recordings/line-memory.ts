/**
 * Memory for lines on their way to the disk, used again and again: a flood of recordings leaves nothing to collect. Serves the
 * benchmark row "echo beside idle and flooding sessions".
 */
import { BlockPool } from '../../../src/terminal/block-pool.js';

/** Bytes of a block. */
const BLOCK = 256 * 1024;

/** The blocks of all recordings. */
export const linePool = (): BlockPool => new BlockPool({ size: BLOCK, kept: 8 });

/** The lines of one recording. */
export class LineMemory {
  private readonly pool: BlockPool;
  private used: Buffer[] = [];
  private current: Buffer | null = null;
  private filled = 0;

  constructor(pool: BlockPool) {
    this.pool = pool;
  }

  /** Memory for so many bytes, good until it is handed back. */
  readonly allocate = (length: number): Buffer => {
    if (length > BLOCK / 2) return Buffer.allocUnsafeSlow(length);
    if (this.current === null || this.filled + length > BLOCK) {
      this.current = this.pool.take();
      this.used.push(this.current);
      this.filled = 0;
    }
    this.filled += length;
    return this.current.subarray(this.filled - length, this.filled);
  };

  /** Returns the blocks used since the last call. Later allocations use other blocks. */
  takeBlocks(): readonly Buffer[] {
    const { used } = this;
    this.used = [];
    this.current = null;
    return used;
  }

  /** Returns blocks to the pool. The caller must not read them again. */
  release(blocks: readonly Buffer[]): void {
    for (const block of blocks) this.pool.give(block);
  }
}
