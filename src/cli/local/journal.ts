/** What an apply has done so far, kept as it comes: whatever ends the process, nothing that was reported is lost. */
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { validator } from '../../kernel/validator.js';
import { type Changes, ChangesSchema, damaged } from './believed-state.js';

const RESULTS_FILE = 'results.jsonl';
const resultLines = validator(ChangesSchema);

export class KeptResults {
  private readonly path: string;
  /** Of earlier applies that did not come to their end, oldest first. */
  readonly earlier: readonly Changes[];
  private waiting: Changes[] = [];

  /** Throws `data_dir_invalid` for a file that is damaged. */
  constructor(dataDir: string) {
    this.path = join(dataDir, RESULTS_FILE);
    this.earlier = readLines(this.path).map((line) => {
      if (resultLines.check(line)) return line;
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

/** What an apply was about to change, kept until its end is kept: after a crash it tells what orch itself has made. */
const ANNOUNCEMENTS_FILE = 'announced.jsonl';

export class Announcements {
  private readonly path: string;
  /** Whether a thing was there when an apply first looked at it, by resource key. */
  private readonly known: Map<string, boolean>;

  constructor(dataDir: string) {
    this.path = join(dataDir, ANNOUNCEMENTS_FILE);
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

/** On the disk when it returns. Throws `disk_full` and the like. */
export function appendLines(path: string, values: readonly unknown[]): void {
  try {
    const descriptor = openSync(path, 'a', 0o600);
    try {
      // A crash or a full disk may have left half a line, which a line end sets apart.
      writeFileSync(descriptor, values.map((value) => `\n${JSON.stringify(value)}`).join(''));
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    syncDirectory(dirname(path));
  } catch (cause) {
    throw notWritten(path, cause);
  }
}

/** None when there is no file. Leaves out what is no whole line: whoever wrote it never got to rely on it. */
export function readLines(path: string): readonly unknown[] {
  return textOf(path).split('\n').flatMap(parse);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return '';
    throw new Fault('data_dir_invalid', `${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
}

function parse(line: string): readonly unknown[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}

/** The name of a new file is kept by its directory. */
function syncDirectory(path: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function notWritten(path: string, cause: unknown): Fault {
  const system = systemCodeOf(cause);
  const code = system === 'ENOSPC' || system === 'EDQUOT' ? 'disk_full' : system === 'EROFS' ? 'read_only' : 'internal';
  return new Fault(code, `${path} cannot be written: ${messageOf(cause)}`, { cause });
}
