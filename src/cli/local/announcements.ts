/** What an apply was about to change, kept until its end is kept: after a crash it tells what orch itself has made. */
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { systemCodeOf } from '../../kernel/fault.js';

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

  /** On the disk when it returns; the first announcement of a thing counts. */
  add(entries: readonly (readonly [key: string, existed: boolean])[]): void {
    const fresh = entries.filter(([key]) => !this.known.has(key));
    if (fresh.length === 0) return;
    const descriptor = openSync(this.path, 'a', 0o600);
    try {
      // A crash may have left half a line, which a line end sets apart.
      writeSync(descriptor, fresh.map((entry) => `\n${JSON.stringify(entry)}`).join(''));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
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
  for (const line of textOf(path).split('\n')) {
    const entry = parse(line);
    if (entry && !known.has(entry[0])) known.set(...entry);
  }
  return known;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return '';
    throw error;
  }
}

/** The last line may be half of one: what it was about was not begun. */
function parse(line: string): readonly [string, boolean] | null {
  try {
    const value: unknown = JSON.parse(line);
    if (!Array.isArray(value)) return null;
    const [key, existed]: readonly unknown[] = value;
    return typeof key === 'string' && typeof existed === 'boolean' ? [key, existed] : null;
  } catch {
    return null;
  }
}
