/** Incomplete files of copies that were cut, kept for a while so that the copy can go on. */
import { COPY_LIMITS } from '../../copy/copy-frames.js';
import { type PartialFile, removePartials } from '../../copy/incoming-file.js';

interface Kept {
  readonly files: readonly PartialFile[];
  readonly timer: NodeJS.Timeout;
}

interface Active {
  readonly abandon: () => void;
  readonly ended: Promise<void>;
}

/** Maximum copies with a kept file, because each one holds a directory open. */
const MOST = 256;

export class KeptParts {
  private readonly kept = new Map<string, Kept>();
  private readonly active = new Map<string, Active>();

  /**
   * Begins a connection of the copy with this ID, and returns what ends it. A connection of the same copy that has not ended is
   * abandoned first.
   */
  async begin(id: string, abandon: () => void): Promise<() => void> {
    for (let before = this.active.get(id); before !== undefined; before = this.active.get(id)) {
      before.abandon();
      await before.ended;
    }
    let end = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.active.set(id, { abandon, ended });
    return () => {
      this.active.delete(id);
      end();
    };
  }

  /** Keeps files of the copy with this ID. */
  keep(id: string, files: readonly PartialFile[]): void {
    if (files.length === 0) return;
    const all = [...this.take(id), ...files];
    const timer = setTimeout(() => this.remove(id), COPY_LIMITS.keep);
    this.kept.set(id, { files: all, timer });
    const [oldest] = this.kept.keys();
    if (this.kept.size > MOST && oldest !== undefined) this.remove(oldest);
  }

  /** Returns the kept files of a copy that goes on, which the caller removes or keeps again. */
  take(id: string): readonly PartialFile[] {
    const kept = this.kept.get(id);
    clearTimeout(kept?.timer);
    this.kept.delete(id);
    return kept?.files ?? [];
  }

  /** Removes the files of a copy. */
  remove(id: string): void {
    removePartials(this.take(id));
  }

  /** Removes all files. */
  removeAll(): void {
    for (const id of [...this.kept.keys()]) this.remove(id);
  }
}
