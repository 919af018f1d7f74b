/** What an apply was about to change, kept until its end is kept: after a crash it tells what orch itself has made. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { appendLines, readLines } from './synced-lines.js';

const FILE = 'announced.jsonl';

export class Announcements {
  private readonly path: string;
  /** Whether a thing was there when an apply first looked at it, by resource key. */
  private readonly known: Map<string, boolean>;

  constructor(dataDir: string) {
    this.path = join(dataDir, FILE);
    this.known = readAll(this.path);
  }

  /** Undefined when nothing was announced about it. */
  existed(key: string): boolean | undefined {
    return this.known.get(key);
  }

  /** On the disk when it returns; the first announcement of a thing counts. Throws `disk_full` and the like. */
  add(entries: readonly (readonly [key: string, existed: boolean])[]): void {
    const fresh = entries.filter(([key]) => !this.known.has(key));
    if (fresh.length === 0) return;
    appendLines(this.path, fresh);
    for (const [key, existed] of fresh) this.known.set(key, existed);
  }

  /** Once what they were for is kept elsewhere. */
  clear(): void {
    this.known.clear();
    rmSync(this.path, { force: true });
  }
}

function readAll(path: string): Map<string, boolean> {
  const known = new Map<string, boolean>();
  for (const line of readLines(path)) {
    const entry = asEntry(line);
    if (entry && !known.has(entry[0])) known.set(...entry);
  }
  return known;
}

function asEntry(value: unknown): readonly [string, boolean] | null {
  if (!Array.isArray(value)) return null;
  const [key, existed]: readonly unknown[] = value;
  return typeof key === 'string' && typeof existed === 'boolean' ? [key, existed] : null;
}
