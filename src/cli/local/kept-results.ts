/** What an apply has done so far, kept as it comes: whatever ends the process, nothing that was reported is lost. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { validator } from '../../kernel/validator.js';
import { type Changes, ChangesSchema, damaged } from './believed-state.js';
import { appendLines, readLines } from './synced-lines.js';

const FILE = 'results.jsonl';
const lines = validator(ChangesSchema);

export class KeptResults {
  private readonly path: string;
  /** Of earlier applies that did not come to their end, oldest first. */
  readonly earlier: readonly Changes[];
  private waiting: Changes[] = [];

  /** Throws `data_dir_invalid` for a file that is damaged. */
  constructor(dataDir: string) {
    this.path = join(dataDir, FILE);
    this.earlier = readLines(this.path).map((line) => {
      if (lines.check(line)) return line;
      throw damaged(this.path, 'a line of it has another shape');
    });
  }

  /** On the disk when it returns, behind what is done first. What the disk does not take waits, and `flush` tells. */
  note(changes: Changes, first: () => void): void {
    this.waiting.push(changes);
    try {
      first();
      this.flush();
    } catch {
      // The next change asks for it, and is not begun without it.
    }
  }

  /** Throws `disk_full` and the like. */
  flush(): void {
    if (this.waiting.length === 0) return;
    appendLines(this.path, this.waiting);
    this.waiting = [];
  }

  /** Once all of it is kept elsewhere. */
  clear(): void {
    this.waiting = [];
    rmSync(this.path, { force: true });
  }
}
