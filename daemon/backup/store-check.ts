/**
 * Checks the store for damage in the background once after each start. A page that changed on disk while nothing ran is
 * so detected before it is needed. A worker thread checks a copy, because this process holds the lock of the store.
 */
import { rmSync, statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import type { Verification } from '../audit/audit-verification.js';
import type { Core } from '../core/core.js';
import { SYSTEM } from '../core/domain-event.js';
import type { OpenDatabase } from '../database/database.js';
import type { CheckedCopy } from './check-copy-worker.js';

interface StoreCheckOptions extends Pick<Core, 'logger' | 'uow'> {
  readonly store: OpenDatabase;
  readonly verification: Verification;
}

interface StoreProblem {
  readonly code: 'store_unreachable' | 'store_check_failed';
  readonly detail: string;
}

/** Milliseconds from the start to the check, so that agents reconnect first. */
const BEGINS_AFTER = 10_000;
/** Milliseconds until a check that could not be made is repeated; doubled each time up to the maximum. */
const REPEATED_AFTER = 10_000;
const REPEATED_AFTER_AT_MOST = 3_600_000;
/** Minimum bytes that stay free beside the copy. */
const SPARE = 256 * 1024 * 1024;

export class StoreCheck implements Service {
  readonly name = 'store check';
  private readonly options: StoreCheckOptions;
  private readonly stopping = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private checking: Promise<void> = Promise.resolve();
  private repeatedAfter = REPEATED_AFTER;
  private damage: string | null = null;

  constructor(options: StoreCheckOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    if (this.options.store.copy !== null) rmSync(this.copy, { force: true });
    this.checkAfter(BEGINS_AFTER);
  }

  async stop(): Promise<void> {
    clearTimeout(this.timer);
    this.stopping.abort();
    await this.checking;
  }

  /** Returns the reasons for which the store is not as it should be. Every client may read them. */
  problems(): readonly StoreProblem[] {
    const problems: StoreProblem[] = [];
    if (this.options.store.latencyMs() === null) {
      const detail = 'the database of the store does not answer; requests that need it are refused until it is back';
      problems.push({ code: 'store_unreachable', detail });
    }
    if (this.damage !== null) {
      const detail = 'the store is damaged; put a backup in its place: orch serve restore FILE';
      problems.push({ code: 'store_check_failed', detail });
    }
    return problems;
  }

  private get copy(): string {
    return `${this.options.store.place}.check`;
  }

  private checkAfter(ms: number): void {
    this.timer = setTimeout(() => {
      this.checking = this.check();
    }, ms);
    this.timer.unref();
  }

  /** Checks a copy of the store and the audit chain, and reports damage. Repeats a check that fails. Never rejects. */
  private async check(): Promise<void> {
    const { logger, store, verification } = this.options;
    const { place: file, copy } = store;
    const { signal } = this.stopping;
    try {
      if (copy !== null) {
        const { bavail, bsize } = await statfs(dirname(file));
        if (bavail * bsize < statSync(file).size + SPARE) {
          logger.warn('the pages of the store were not checked, there is too little room for a copy of it', { file });
        } else {
          await copy(this.copy, signal);
          this.damage = await damageIn(this.copy, signal);
        }
      }
      signal.throwIfAborted();
      if (this.damage === null) this.damage = (await verification.run({ since: null, signal })).problem?.detail ?? null;
      if (this.damage === null) logger.debug('the store was checked and is whole', { file });
      else await this.recordDamage(this.damage);
    } catch (error) {
      if (!signal.aborted) this.repeat(error);
    } finally {
      if (copy !== null) for (const end of ['', '-wal', '-journal']) rmSync(`${this.copy}${end}`, { force: true });
    }
  }

  /** Logs why the check could not be made, which says nothing about the store, and schedules it again. */
  private repeat(error: unknown): void {
    const { logger, store } = this.options;
    const seconds = this.repeatedAfter / 1000;
    logger.warn('the store could not be checked', {
      file: store.place,
      reason: messageOf(error),
      again_in_secs: seconds,
    });
    this.checkAfter(this.repeatedAfter);
    this.repeatedAfter = Math.min(this.repeatedAfter * 2, REPEATED_AFTER_AT_MOST);
  }

  private async recordDamage(damage: string): Promise<void> {
    const { uow, logger, store } = this.options;
    const hint = 'put a backup in its place: orch serve restore FILE';
    logger.error('the store is damaged', { store: store.place, reason: damage, hint });
    await uow.write(async (_, emit) => {
      emit({
        type: 'orchestrator.store_damaged',
        actor: SYSTEM,
        target: SYSTEM,
        summary: 'The store of the orchestrator is damaged; put a backup in its place',
        metadata: { damage: damage.slice(0, 500) },
      });
    });
  }
}

/** Returns the damage of a copy, null for none. Rejects when the thread cannot check it, for example without free descriptors. */
function damageIn(copy: string, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./check-copy-worker.js', import.meta.url), { workerData: copy });
    signal.addEventListener('abort', () => void worker.terminate(), { once: true });
    worker.once('message', ({ damage, failure }: CheckedCopy) =>
      failure === null ? resolve(damage) : reject(new Error(failure)),
    );
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the check of the copy ended with ${code}`)));
  });
}
