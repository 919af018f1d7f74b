/** Facts of one's own: JSON files, and programs that print JSON. */

import { FACT_LIMITS, factValue, type OwnFacts } from '../../kernel/facts.js';
import { messageOf } from '../../kernel/fault.js';
import type { JsonValue } from '../../kernel/json.js';
import { runFactProgram } from './fact-program.js';
import { type FactEntry, listFacts, readFactFile } from './facts-directory.js';

/** Facts of one's own as the agent reports them. */
export interface OwnReport {
  readonly own: OwnFacts;
  /** Why facts may be missing here; null if these are all. */
  readonly problem: string | null;
}

interface OwnFactsOptions {
  /** Returns the directory of the facts. Called at each reading. */
  readonly directory: () => string;
  /** Returns monotonic milliseconds. */
  readonly now: () => number;
  /** Milliseconds. */
  readonly limits?: Partial<typeof TIMES>;
}

/** Milliseconds. */
const TIMES = {
  /** For one program. */
  program: 5_000,
  /** For all programs; those that would begin later are not run. */
  all: 15_000,
  /** After which a program runs again, when the facts are read anyway. */
  again: 60 * 60_000,
};
/** Programs that run at once. */
const PARALLEL = 4;

type Read = { readonly value: JsonValue; readonly error: null } | { readonly error: string };

interface Kept {
  readonly stamp: string;
  readonly read: Read;
  /** Monotonic milliseconds. */
  readonly at: number;
}

export class OwnFactsReader {
  private readonly directory: () => string;
  private readonly now: () => number;
  private readonly times: typeof TIMES;
  private kept: ReadonlyMap<string, Kept> = new Map();
  private reading: Promise<OwnReport> | null = null;

  constructor({ directory, now, limits }: OwnFactsOptions) {
    this.directory = directory;
    this.now = now;
    this.times = { ...TIMES, ...limits };
  }

  /**
   * Returns the facts. Reads files and runs programs that have changed, and programs that ran an hour ago; all of them when
   * `isFresh`. Never rejects. A second caller meanwhile gets the same result.
   */
  async read(isFresh: boolean): Promise<OwnReport> {
    if (isFresh) await this.reading;
    this.reading ??= this.readAll(isFresh).finally(() => {
      this.reading = null;
    });
    return this.reading;
  }

  private async readAll(isFresh: boolean): Promise<OwnReport> {
    // Windows has no owner and mode to check.
    if (process.platform === 'win32') return { own: {}, problem: null };
    const { entries, problem } = listFacts(this.directory());
    const until = this.now() + this.times.all;
    const kept = new Map<string, Kept>();
    const waiting = entries.map((entry) => async () => {
      const known = this.kept.get(entry.path);
      const now = this.now();
      const isDue = isFresh || known?.stamp !== entry.stamp || now - known.at >= this.times.again;
      const mayKeep = known !== undefined && !isDue && entry.type !== 'refused';
      kept.set(entry.path, mayKeep ? known : { stamp: entry.stamp, read: await this.readOne(entry, until), at: now });
    });
    await Promise.all(
      Array.from({ length: PARALLEL }, async () => {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next();
      }),
    );
    this.kept = kept;
    return { own: together(entries, kept), problem: problem?.slice(0, FACT_LIMITS.reason) ?? null };
  }

  private async readOne(entry: FactEntry, until: number): Promise<Read> {
    const { path } = entry;
    if (entry.type === 'refused') return { error: entry.error };
    if (entry.type === 'program' && this.now() >= until) {
      return { error: `${path} was not run, because the programs before it took ${this.times.all / 1000} s` };
    }
    try {
      const time = Math.max(1, Math.min(this.times.program, until - this.now()));
      const text = entry.type === 'json' ? readFactFile(path) : await runFactProgram(path, time);
      const parsed = parse(text);
      if ('error' in parsed) return { error: `${path}: ${parsed.error}` };
      return { value: parsed.value, error: null };
    } catch (error) {
      return { error: messageOf(error) };
    }
  }
}

function parse(text: string): ReturnType<typeof factValue> {
  if (text.trim() === '') return { error: 'it is empty, and a fact is JSON' };
  try {
    return factValue(JSON.parse(text));
  } catch (error) {
    return { error: `it is not valid JSON (${messageOf(error).slice(0, 120)})` };
  }
}

/** Returns the facts by name, as far as they fit together. */
function together(entries: readonly FactEntry[], kept: ReadonlyMap<string, Kept>): OwnFacts {
  const own: [string, OwnFacts[string]][] = [];
  let left = FACT_LIMITS.total;
  for (const { name, path } of entries) {
    const read = kept.get(path)?.read;
    if (read === undefined) continue;
    const size = read.error === null ? Buffer.byteLength(JSON.stringify(read.value)) : 0;
    left -= size;
    if (read.error !== null) own.push([name, { error: read.error.slice(0, FACT_LIMITS.reason) }]);
    else if (left >= 0) own.push([name, read]);
    else own.push([name, { error: `${path}: the facts up to this one are larger than ${FACT_LIMITS.total} bytes` }]);
  }
  return Object.fromEntries(own);
}
