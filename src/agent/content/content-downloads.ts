/** Downloads files beside modules from the agent port into the data directory, and continues where a cut left off. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, lstatSync, renameSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { SecureContext } from 'node:tls';
import type { Clock } from '../../kernel/clock.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import { MAX_SOURCE_BYTES } from '../../resources/host.js';
import { FILE_PATH } from '../../wire/limits.js';
import { type DownloadSource, download, pauseUnless } from '../link/download.js';
import { type ContentPaths, contentPaths } from './content-directory.js';

interface ContentDownloadsOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  readonly clock: Clock;
  /** The agent's own key and certificate, from `dialContext`. */
  readonly context: SecureContext;
  /** Milliseconds between two attempts [default: 2 s]. */
  readonly retryMs?: number;
  /** Milliseconds without a further byte after which a download has failed [default: 5 min]. */
  readonly patienceMs?: number;
}

export class ContentDownloads {
  private readonly options: Required<ContentDownloadsOptions>;
  private readonly stopped = new AbortController();
  /** Downloads in progress, by SHA-256. */
  private readonly active = new Map<string, Promise<void>>();
  private source: DownloadSource | null = null;

  constructor(options: ContentDownloadsOptions) {
    this.options = { retryMs: 2_000, patienceMs: 300_000, ...options };
  }

  /** Sets the address and key of the orchestrator. */
  setSource(source: DownloadSource): void {
    this.source = source;
  }

  /** Brings a file into the directory of contents, unless it is there. Rejects with `content_unavailable`. */
  fetch(sha256: string): Promise<void> {
    const known = this.active.get(sha256);
    if (known !== undefined) return known;
    const fetching = this.fetchOne(sha256).finally(() => this.active.delete(sha256));
    this.active.set(sha256, fetching);
    return fetching;
  }

  /** Ends all downloads. */
  async stop(): Promise<void> {
    this.stopped.abort();
    await Promise.allSettled(this.active.values());
  }

  private async fetchOne(sha256: string): Promise<void> {
    const { dataDir, logger, clock, retryMs, patienceMs } = this.options;
    const paths = contentPaths(dataDir, sha256);
    if (sizeOf(paths.complete) !== null) return;
    let since = clock.monotonic();
    for (;;) {
      const before = sizeOf(paths.part);
      const problem = await this.attempt(sha256, paths);
      if (problem === null) return;
      if (this.stopped.signal.aborted) throw unavailable('the agent stops');
      if (sizeOf(paths.part) !== before) since = clock.monotonic();
      if (clock.monotonic() - since >= patienceMs) throw unavailable(problem);
      logger.debug('a file of a module does not come yet', { sha256, reason: problem });
      await pauseUnless(retryMs, this.stopped.signal);
    }
  }

  /** Returns null once the file is complete, else why it is not. Rejects with `content_unavailable` if that does not change. */
  private async attempt(sha256: string, paths: ContentPaths): Promise<string | null> {
    const { source } = this;
    const { context } = this.options;
    if (source === null) return 'the agent has not reached its orchestrator yet';
    const from = sizeOf(paths.part) ?? 0;
    try {
      return await download(
        `${FILE_PATH}${sha256}`,
        { source, context, signal: this.stopped.signal, from },
        async (answer) => {
          const refusal = refusalOf(answer, paths);
          if (refusal !== null) return refusal;
          await append(answer, paths.part, answer.statusCode === 206 ? from : 0);
          if ((await digestOf(paths.part)) === sha256) {
            renameSync(paths.part, paths.complete);
            return null;
          }
          rmSync(paths.part, { force: true });
          return 'what has come has another SHA-256';
        },
      );
    } catch (error) {
      if (isFault(error, 'content_unavailable')) throw error;
      if (systemCodeOf(error) === 'ENOSPC') {
        rmSync(paths.part, { force: true });
        throw unavailable(`there is no room for it in ${this.options.dataDir}`);
      }
      return messageOf(error);
    }
  }
}

const unavailable = (why: string): Fault => new Fault('content_unavailable', why);

/** Returns why an answer has no content yet; null if it has. Throws `content_unavailable` for an answer that stays as it is. */
function refusalOf({ statusCode }: IncomingMessage, { part }: ContentPaths): string | null {
  if (statusCode === 200 || statusCode === 206) return null;
  if (statusCode === 503) return 'the orchestrator is busy with other downloads';
  // The part is longer than the file.
  if (statusCode === 416) rmSync(part, { force: true });
  else if (statusCode === 404) throw unavailable('the orchestrator does not have it any more');
  return `the orchestrator answered with HTTP status ${statusCode}`;
}

/** Writes an answer into a file from a position on. Rejects with `content_unavailable` for more than a file may have. */
async function append(answer: IncomingMessage, path: string, from: number): Promise<void> {
  let size = from;
  const bounded = async function* (pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      size += piece.length;
      if (size > MAX_SOURCE_BYTES) throw unavailable(`it is larger than ${MAX_SOURCE_BYTES} bytes`);
      yield piece;
    }
  };
  await pipeline(answer, bounded, createWriteStream(path, { mode: 0o600, flags: from === 0 ? 'w' : 'a' }));
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

const sizeOf = (path: string): number | null => lstatSync(path, { throwIfNoEntry: false })?.size ?? null;
