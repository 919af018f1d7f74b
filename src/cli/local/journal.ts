/** The journal of `--local`: results and announcements of an apply, durable before they are reported or carried out. */
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import { validator } from '../../kernel/validator.js';
import { type Changes, ChangesSchema, damaged } from './believed-state.js';

const RESULTS_FILE = 'results.jsonl';
const resultLines = validator(ChangesSchema);

export class KeptResults {
  private readonly path: string;
  /** Results of earlier applies that were cut off, oldest first. */
  readonly earlier: readonly Changes[];
  private waiting: Changes[] = [];

  /** Reads the results of earlier applies. Throws `data_dir_invalid` for a damaged file. */
  constructor(dataDir: string) {
    this.path = join(dataDir, RESULTS_FILE);
    this.earlier = readLines(this.path).map((line) => {
      if (resultLines.check(line)) return line;
      throw damaged(this.path, 'a line of it has another shape');
    });
  }

  /** Calls `first`, then stores the changes durably. On failure they stay pending, and `flush` reports the fault. */
  note(changes: Changes, first: () => void): void {
    this.waiting.push(changes);
    try {
      first();
      this.flush();
    } catch {
      // The next announcement flushes first, and fails if that fails.
    }
  }

  /** Stores pending results durably. Throws `disk_full` and similar faults. */
  flush(): void {
    if (this.waiting.length === 0) return;
    appendLines(this.path, this.waiting);
    this.waiting = [];
  }

  /** Deletes the results. Call it once the state is stored. */
  clear(): void {
    this.waiting = [];
    rmSync(this.path, { force: true });
  }
}

/** Announced changes of an apply, kept until its results are stored. After a crash they tell which things orch itself created. */
const ANNOUNCEMENTS_FILE = 'announced.jsonl';

export class Announcements {
  private readonly path: string;
  /** Existence of each thing when an apply first observed it, by resource key. */
  private readonly known: Map<string, boolean>;

  constructor(dataDir: string) {
    this.path = join(dataDir, ANNOUNCEMENTS_FILE);
    this.known = readAll(this.path);
  }

  /** Returns whether the thing existed before; undefined if it was not announced. */
  existed(key: string): boolean | undefined {
    return this.known.get(key);
  }

  /** Stores announcements durably. The first announcement of a thing counts. Throws `disk_full` and similar faults. */
  add(entries: readonly (readonly [key: string, existed: boolean])[]): void {
    const fresh = entries.filter(([key]) => !this.known.has(key));
    if (fresh.length === 0) return;
    appendLines(this.path, fresh);
    for (const [key, existed] of fresh) this.known.set(key, existed);
  }

  /** Deletes the announcements. Call it once the state is stored. */
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

/** Appends JSON lines durably. Throws `disk_full` and similar faults. */
function appendLines(path: string, values: readonly unknown[]): void {
  try {
    const descriptor = openSync(path, 'a', 0o600);
    try {
      // The leading newline separates a torn line that a crash or full disk may have left.
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

/** Reads the lines of a file; none if there is no file. Skips torn lines, which no caller has relied on. */
function readLines(path: string): readonly unknown[] {
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

/** Flushes a directory, so that the name of a new file is durable. */
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
