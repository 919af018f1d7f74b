/**
 * Searches recordings in a worker thread with a time limit, so that no pattern can block the orchestrator. Searches run one at a
 * time.
 */
import { Worker } from 'node:worker_threads';
import { Fault, messageOf } from '../../../src/kernel/fault.js';
import type { Logger } from '../../../src/kernel/logger.js';
import type { TerminalRow } from '../session-store.js';

export interface SearchOptions {
  readonly pattern: string;
  readonly ignoreCase: boolean;
  /** Maximum number of matches. */
  readonly limit: number;
  /** Time limit in milliseconds. */
  readonly timeoutMs: number;
  /** Aborts the search, which rejects with the reason. */
  readonly signal: AbortSignal;
}

/** A recording to search. */
interface SearchedFile {
  readonly row: TerminalRow;
  /** Path of the plain file. */
  readonly path: string;
  /** Valid bytes of the file; null for all. */
  readonly length: number | null;
}

interface SearchResult {
  readonly matches: readonly { readonly row: TerminalRow; readonly at: number; readonly line: string }[];
  /** Number of recordings that were started, and that were searched completely. */
  readonly opened: number;
  readonly searched: number;
  readonly truncated: boolean;
  /** Sessions whose recording differs from the stored hash or cannot be read. */
  readonly altered: readonly TerminalRow[];
}

export class TranscriptSearch {
  private readonly logger: Logger;
  private last: Promise<unknown> = Promise.resolve();
  private readonly workers = new Set<Worker>();
  private isStopped = false;

  constructor({ logger }: { readonly logger: Logger }) {
    this.logger = logger;
  }

  /**
   * Searches files.
   * @param files recordings in the order of the answer
   * @throws Fault `invalid_query` for an invalid regular expression
   */
  async run(files: AsyncIterable<SearchedFile>, options: SearchOptions): Promise<SearchResult> {
    checkPattern(options);
    const turn = this.last.then(() => this.search(files, options));
    this.last = turn.catch(() => {});
    return await turn;
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await Promise.all([...this.workers].map((worker) => worker.terminate()));
    await this.last;
  }

  private async search(files: AsyncIterable<SearchedFile>, options: SearchOptions): Promise<SearchResult> {
    options.signal.throwIfAborted();
    const matches: { row: TerminalRow; at: number; line: string }[] = [];
    const altered: TerminalRow[] = [];
    let opened = 0;
    let searched = 0;
    let isOver = this.isStopped;
    const workerData: SearchWorkerData = { pattern: options.pattern, ignoreCase: options.ignoreCase };
    const worker = new Worker(new URL('./search-worker.js', import.meta.url), {
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    });
    this.workers.add(worker);
    const end = () => {
      isOver = true;
      void worker.terminate();
    };
    const deadline = setTimeout(end, options.timeoutMs);
    options.signal.addEventListener('abort', end, { once: true });
    worker.on('error', (error) => this.logger.warn('a search broke down', { reason: messageOf(error) }));
    worker.once('exit', () => {
      isOver = true;
    });
    try {
      for await (const { row, path, length } of files) {
        if (isOver || matches.length >= options.limit) break;
        opened += 1;
        const onMatch = (at: number, line: string) => matches.push({ row, at, line });
        const { transcript_sha256: sha256, session_id } = row;
        const outcome = await ask(worker, { path, length, sha256, most: options.limit - matches.length }, onMatch);
        if (outcome === null) break;
        searched += 1;
        if (outcome.isAltered) altered.push(row);
        if (outcome.problem === null) continue;
        this.logger.warn('a recording could not be searched', { session_id, reason: outcome.problem });
      }
      options.signal.throwIfAborted();
      return { matches, opened, searched, altered, truncated: isOver || matches.length >= options.limit };
    } finally {
      clearTimeout(deadline);
      options.signal.removeEventListener('abort', end);
      await worker.terminate();
      this.workers.delete(worker);
    }
  }
}

type Outcome = Extract<FromSearchWorker, { readonly is: 'done' }>;

/** Resolves when the recording was searched, or with null when the thread has ended. */
function ask(
  worker: Worker,
  question: ToSearchWorker,
  onMatch: (at: number, line: string) => void,
): Promise<Outcome | null> {
  return new Promise((resolve) => {
    const done = (outcome: Outcome | null) => {
      worker.off('message', hear);
      worker.off('exit', exited);
      resolve(outcome);
    };
    const hear = (message: FromSearchWorker) => {
      if (message.is === 'match') onMatch(message.at, message.line);
      else done(message);
    };
    const exited = () => done(null);
    worker.on('message', hear);
    worker.once('exit', exited);
    worker.postMessage(question);
  });
}

function checkPattern({ pattern, ignoreCase }: SearchOptions): void {
  try {
    new RegExp(pattern, ignoreCase ? 'iu' : 'u');
  } catch (cause) {
    const message = messageOf(cause).replace(/^Invalid regular expression: /, '');
    throw new Fault('invalid_query', `the query is not valid: pattern is no regular expression: ${message}`, {
      hint: 'a character that means something in regular expressions takes a backslash: \\. \\( \\[',
      errors: [{ path: '/pattern', message }],
      cause,
    });
  }
}

/** Messages of the search thread. */

export interface SearchWorkerData {
  /** Valid regular expression. */
  readonly pattern: string;
  readonly ignoreCase: boolean;
}

/** Request to search a recording. */
export interface ToSearchWorker {
  /** Path of the plain file. */
  readonly path: string;
  /** Valid bytes of the file; null for all. */
  readonly length: number | null;
  /** Stored hex SHA-256 of the whole plain file; null while it is unknown. */
  readonly sha256: string | null;
  /** Maximum number of matches. */
  readonly most: number;
}

export type FromSearchWorker =
  /** `at` is in seconds since the start. */
  | { readonly is: 'match'; readonly at: number; readonly line: string }
  /** The search of the recording ended. `isAltered`: it differs from the stored hash. */
  | { readonly is: 'done'; readonly problem: string | null; readonly isAltered: boolean };
