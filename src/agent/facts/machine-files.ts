/** Reads small files of the system, below another root in tests. */
import { closeSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs';
import { join } from 'node:path';

/** Files of `/proc`, `/sys` and `/etc` are far smaller. */
const MAX_BYTES = 64 * 1024;

export class MachineFiles {
  private readonly root: string;
  /** For all files, so that reading them once a minute leaves no garbage. */
  private readonly buffer = Buffer.allocUnsafe(MAX_BYTES);

  constructor(root: string) {
    this.root = root;
  }

  /** Returns the path below the root. */
  at(path: string): string {
    return join(this.root, path);
  }

  /** Returns the first part of a file; an empty text for one that cannot be read. */
  text(path: string): string {
    let file: number | null = null;
    try {
      file = openSync(this.at(path), 'r');
      const { buffer } = this;
      let size = 0;
      for (let read = -1; read !== 0 && size < MAX_BYTES; size += read) {
        read = readSync(file, buffer, size, MAX_BYTES - size, null);
      }
      return buffer.toString('utf8', 0, size);
    } catch {
      return '';
    } finally {
      if (file !== null) closeSync(file);
    }
  }

  /** Returns the text of a file without blanks around; undefined for an empty one. */
  word(path: string): string | undefined {
    return this.text(path).trim() || undefined;
  }

  /** Returns the words of each line. */
  table(path: string): readonly (readonly string[])[] {
    return this.text(path)
      .split('\n')
      .map((line) => line.trim().split(/\s+/));
  }

  /** Returns the names in a directory in order; none for one that cannot be read. */
  names(path: string): readonly string[] {
    try {
      return readdirSync(this.at(path)).sort();
    } catch {
      return [];
    }
  }

  /** Returns the target of a link; undefined for anything else. */
  target(path: string): string | undefined {
    try {
      return readlinkSync(this.at(path));
    } catch {
      return undefined;
    }
  }
}
