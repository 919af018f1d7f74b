/**
 * Downloads files beside modules from the agent port, and others from their addresses, into the data directory. Continues where a
 * cut left off.
 */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, lstatSync, renameSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { SecureContext } from 'node:tls';
import type { Clock } from '../../kernel/clock.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import { MAX_DOWNLOAD_BYTES, MAX_SOURCE_BYTES, type SourceFile } from '../../resources/host.js';
import { FILE_PATH } from '../../wire/limits.js';
import { type DownloadSource, download, pauseUnless } from '../link/download.js';
import { type ContentPaths, contentPaths } from './content-directory.js';
import { downloadUrl } from './download-url.js';

/** Milliseconds between two attempts. */
const RETRY_MS = 2_000;
/** Milliseconds without a further byte after which a download has failed; an orchestrator may restart meanwhile. */
const PATIENCE_MS = 300_000;
const URL_PATIENCE_MS = 30_000;

interface ContentDownloadsOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  readonly clock: Clock;
  /** The agent's own key and certificate, from `dialContext`; null without an orchestrator. */
  readonly context: SecureContext | null;
  /** Milliseconds between two attempts [default: 2 s]. */
  readonly retryMs?: number;
  /** Milliseconds without a further byte after which a download has failed [default: 5 min, 30 s for those from addresses]. */
  readonly patienceMs?: number;
}

export class ContentDownloads {
  private readonly options: ContentDownloadsOptions;
  private readonly stopped = new AbortController();
  /** Downloads in progress, by SHA-256. */
  private readonly active = new Map<string, Promise<void>>();
  private source: DownloadSource | null = null;

  constructor(options: ContentDownloadsOptions) {
    this.options = options;
  }

  /** Sets the address and key of the orchestrator. */
  setSource(source: DownloadSource): void {
    this.source = source;
  }

  /** Brings a file into the directory of contents, unless it is there. Rejects with `content_unavailable`. */
  fetch(file: Pick<SourceFile, 'sha256' | 'url'>): Promise<void> {
    const { sha256 } = file;
    const known = this.active.get(sha256);
    if (known !== undefined) return known;
    const fetching = this.fetchOne(file).finally(() => this.active.delete(sha256));
    this.active.set(sha256, fetching);
    return fetching;
  }

  /** Ends all downloads. */
  async stop(): Promise<void> {
    this.stopped.abort();
    await Promise.allSettled(this.active.values());
  }

  private async fetchOne(file: Pick<SourceFile, 'sha256' | 'url'>): Promise<void> {
    const { sha256, url } = file;
    const { dataDir, logger, clock, retryMs = RETRY_MS } = this.options;
    const { patienceMs = url === undefined ? PATIENCE_MS : URL_PATIENCE_MS } = this.options;
    const paths = contentPaths(dataDir, sha256);
    if (sizeOf(paths.complete) !== null) return;
    let since = clock.monotonic();
    for (;;) {
      const before = sizeOf(paths.part);
      const problem = await this.attempt(file, paths);
      if (problem === null) return;
      if (this.stopped.signal.aborted) throw unavailable('the agent stops');
      if (sizeOf(paths.part) !== before) since = clock.monotonic();
      if (clock.monotonic() - since >= patienceMs) throw unavailable(problem);
      logger.debug('a file of a module does not come yet', { sha256, reason: problem });
      await pauseUnless(retryMs, this.stopped.signal);
    }
  }

  /** Returns null once the file is complete, else why it is not. Rejects with `content_unavailable` if that does not change. */
  private async attempt(
    { sha256, url }: Pick<SourceFile, 'sha256' | 'url'>,
    paths: ContentPaths,
  ): Promise<string | null> {
    const { source } = this;
    const { context } = this.options;
    const { signal } = this.stopped;
    const from = sizeOf(paths.part) ?? 0;
    const store = (peer: Peer) => async (answer: IncomingMessage) => {
      const refusal = refusalOf(answer, peer, paths);
      if (refusal !== null) return refusal;
      await append(answer, { path: paths.part, from: answer.statusCode === 206 ? from : 0, maxBytes: peer.maxBytes });
      if ((await digestOf(paths.part)) === sha256) {
        renameSync(paths.part, paths.complete);
        return null;
      }
      rmSync(paths.part, { force: true });
      const other = 'what has come has another SHA-256';
      if (peer !== ORCHESTRATOR && from === 0) throw unavailable(other);
      return other;
    };
    try {
      if (url !== undefined) {
        return await downloadUrl(url, { from, signal }, store({ name: hostOf(url), maxBytes: MAX_DOWNLOAD_BYTES }));
      }
      if (source === null || context === null) return 'the agent has not reached its orchestrator yet';
      return await download(`${FILE_PATH}${sha256}`, { source, context, signal, from }, store(ORCHESTRATOR));
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

/** The other end of a download. */
interface Peer {
  readonly name: string;
  /** Maximum bytes of a file from it. */
  readonly maxBytes: number;
}

const ORCHESTRATOR: Peer = { name: 'the orchestrator', maxBytes: MAX_SOURCE_BYTES };

const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : url);

const unavailable = (why: string): Fault => new Fault('content_unavailable', why);

/** Returns why an answer has no content yet; null if it has. Throws `content_unavailable` for an answer that stays as it is. */
function refusalOf({ statusCode = 0 }: IncomingMessage, peer: Peer, { part }: ContentPaths): string | null {
  if (statusCode === 200 || statusCode === 206) return null;
  if (statusCode === 503) return `${peer.name} is busy with other downloads`;
  const answered = `${peer.name} answered with HTTP status ${statusCode}`;
  // The part is longer than the file.
  if (statusCode === 416) rmSync(part, { force: true });
  else if (statusCode === 404 && peer === ORCHESTRATOR) throw unavailable('the orchestrator no longer has it');
  else if (statusCode < 500 && statusCode !== 429) throw unavailable(answered);
  return answered;
}

interface Appending {
  readonly path: string;
  /** Position of the first byte. */
  readonly from: number;
  readonly maxBytes: number;
}

/** Writes an answer into a file from a position on. Rejects with `content_unavailable` for more than a file may have, and deletes it. */
async function append(answer: IncomingMessage, { path, from, maxBytes }: Appending): Promise<void> {
  let size = from;
  const bounded = async function* (pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      size += piece.length;
      if (size > maxBytes) throw unavailable(`it is larger than ${maxBytes} bytes`);
      yield piece;
    }
  };
  try {
    await pipeline(answer, bounded, createWriteStream(path, { mode: 0o600, flags: from === 0 ? 'w' : 'a' }));
    // A cut before the first byte was read can look like an end; what has come stays.
    if (!answer.complete) throw new Error('the connection was cut');
  } finally {
    // No later attempt can use it, and it takes the room of others.
    if (size > maxBytes) rmSync(path, { force: true });
  }
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

const sizeOf = (path: string): number | null => lstatSync(path, { throwIfNoEntry: false })?.size ?? null;
