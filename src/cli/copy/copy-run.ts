/** Copies between this machine and one other, over as many sessions as lost connections make necessary. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../../client/api-client.js';
import { nameText, type Position } from '../../copy/copy-frames.js';
import { type CopySum, CopyTally } from '../../copy/copy-tally.js';
import type { Clock } from '../../kernel/clock.js';
import type { CopyDirection } from '../../kernel/copy-target.js';
import { type Fault, isFault } from '../../kernel/fault.js';
import { CopySession } from './copy-session.js';

export interface CopyRunOptions {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly nodeId: string;
  readonly signal: AbortSignal;
  /** Counts bytes that were read or written here. */
  readonly onBytes: (bytes: number) => void;
  /** A file was copied. */
  readonly onFile: () => void;
  /** Tells an entry that could not be copied. */
  readonly onFailed: (path: string, reason: string) => void;
  /** The connection was lost, and the copy goes on when it is back. */
  readonly onCut: (cause: Fault) => void;
}

/** Where a copy goes on: the number of its source, and the place in it. */
export interface Progress {
  source: number;
  after: Position | null;
}

/** One direction of a copy. */
export interface CopyWork {
  readonly direction: CopyDirection;
  /** Paths on the machine. */
  readonly paths: readonly string[];
  /** Copies what is left, from `run.progress` on. Throws when the connection is lost. */
  copy(session: CopySession, run: CopyRun): Promise<void>;
  /** Releases what the work holds. */
  close(): Promise<void>;
}

/** Faults that pass: the orchestrator or the agent is away for a moment. */
const PASSING = ['unreachable', 'shutting_down', 'store_unavailable', 'agent_not_connected', 'agent_timeout'] as const;
const PAUSES = [200, 500, 1_000, 2_000] as const;
/** Milliseconds without any progress after which a copy gives up. */
const PATIENCE = 300_000;

export class CopyRun {
  readonly options: CopyRunOptions;
  /** Random ID, for the names of temporary files. */
  readonly id = randomBytes(16).toString('hex');
  readonly progress: Progress = { source: 0, after: null };
  /** True once a session was lost. */
  isResumed = false;
  private readonly tally = new CopyTally();
  private moved = 0;

  constructor(options: CopyRunOptions) {
    this.options = options;
  }

  get sum(): CopySum {
    return this.tally.sum;
  }

  bytes(bytes: number): void {
    this.moved += bytes;
    this.options.onBytes(bytes);
  }

  /** Counts a file. @param path one character for each byte */
  file(path: string, sha256: string, bytes: number): void {
    this.tally.add(path, sha256, bytes);
    this.options.onFile();
  }

  /** Counts and tells an entry that was not copied. @param path one character for each byte */
  fail(path: string, reason: string): void {
    this.tally.fail();
    this.options.onFailed(nameText(path), nameText(reason));
  }

  /** Copies everything. Throws the fault that ended it. */
  async run(work: CopyWork): Promise<void> {
    const { clock, onCut, signal } = this.options;
    let attempts = 0;
    let deadline = Number.POSITIVE_INFINITY;
    for (;;) {
      const before = this.moved;
      try {
        await this.session(work);
        return;
      } catch (error) {
        signal.throwIfAborted();
        const hasMoved = this.moved > before;
        if (!this.isResumed && !hasMoved && attempts === 0 && !(error instanceof Cut)) throw error;
        const cause = error instanceof Cut ? error.fault : error;
        if (!isFault(cause, ...PASSING)) throw cause;
        if (hasMoved || deadline === Number.POSITIVE_INFINITY) {
          attempts = 0;
          deadline = clock.monotonic() + PATIENCE;
        }
        if (clock.monotonic() >= deadline) throw cause;
        if (attempts === 0) onCut(cause);
        this.isResumed = true;
        await sleep(PAUSES[Math.min(attempts, PAUSES.length - 1)], undefined, { signal });
        attempts += 1;
      }
    }
  }

  private async session(work: CopyWork): Promise<void> {
    const { api, clock, nodeId, signal } = this.options;
    const { direction, paths } = work;
    const session = await CopySession.open({ api, clock, nodeId, direction, paths, signal });
    try {
      await work.copy(session, this);
    } catch (error) {
      if (session.lostBy !== null) throw new Cut(session.lostBy);
      throw isFault(error) ? error : (session.brokenBy ?? error);
    } finally {
      await session.close();
    }
  }
}

/** The session was open, and its connection was lost. */
class Cut extends Error {
  readonly fault: Fault;

  constructor(fault: Fault) {
    super(fault.message);
    this.fault = fault;
  }
}
