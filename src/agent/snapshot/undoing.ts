/** Applies that can be undone: saves what they replace, waits for the confirmation, and restores everything without one. */

import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import type { FileStep, Host } from '../../resources/host.js';
import type { Restored } from '../../resources/restored.js';
import type { RunEnd } from '../../wire/messages.js';
import type { Refusal } from '../converge/target.js';
import type { EngineReport, RunHead } from '../engine/run-engine.js';
import type { HeldPrograms } from '../host/held-programs.js';
import type { Aftermath } from '../journal/journal-state.js';
import { type BootTime, leftUntil } from './boot-time.js';
import type { PathSaverOptions } from './path-saver.js';
import { changesAgentUnit, restore } from './restore.js';
import { type Doomed, Snapshot } from './snapshot.js';
import type { SnapshotGuard } from './snapshot-guard.js';
import { deleteSnapshot, hasSnapshot, readSnapshot, type SnapshotRecord, writeSnapshot } from './snapshot-record.js';

export interface UndoingOptions {
  readonly dataDir: string;
  readonly createHost: (signal?: AbortSignal, held?: HeldPrograms) => Host;
  /** Programs with which a snapshot is restored, whatever becomes of their files. */
  readonly held?: HeldPrograms;
  readonly logger: Logger;
  readonly guard: SnapshotGuard;
  readonly report: (report: EngineReport) => void;
  /** Milliseconds after an apply before which no connection counts, because some changes take effect late [default: 3 s]. */
  readonly settleMs?: number;
  /** Returns the free bytes of the file system of a directory [default: the system's]. */
  readonly freeBytes?: PathSaverOptions['freeBytes'];
}

/** How an apply ended, with what followed it. */
export interface SettledEnd extends Aftermath {
  readonly end: RunEnd;
  readonly error: Refusal | null;
}

/** The end of an apply on the machine, before its confirmation. */
interface AppliedEnd extends SettledEnd {
  /** When its last resource was applied, before its health checks. */
  readonly appliedAt: BootTime;
}

/** The end of the wait for a confirmation. */
type Answer = 'confirmed' | 'expired' | 'cancelled' | 'stopping';

interface Waiting {
  readonly runId: string;
  /** True once connections count. */
  isSettled: boolean;
  readonly answer: (answer: Answer) => void;
}

/** Longest wait of one timer, so that a machine that was suspended looks at its clock again soon. */
const TIMER_MS = 1_000;
/** Long enough for a network service to take up a new configuration after it has started. */
const SETTLE_MS = 3_000;

export class Undoing {
  private readonly options: UndoingOptions;
  private waiting: Waiting | null = null;
  /** Why the orchestrator was not reached at the last attempt. */
  private obstacle: string | null = null;
  private isGuarded = false;

  constructor(options: UndoingOptions) {
    this.options = options;
  }

  /**
   * Puts the kept snapshot of a run back. Returns a report without resources when there is none of that run. Never throws for the
   * snapshot's state.
   */
  async restoreKept(runId: string): Promise<Restored> {
    const { dataDir, createHost, held, logger } = this.options;
    const record = this.read();
    if (record?.run_id !== runId || isOpen(record)) {
      logger.warn('there is no snapshot to restore', { run_id: runId });
      return { restored: 0, not_restored: 0, resources: [] };
    }
    logger.info('restoring a kept snapshot', { run_id: runId });
    return restore(record, createHost(undefined, held), { dataDir, held });
  }

  /** Makes a snapshot for an apply that needs one, and deletes that of the last apply. Throws a Fault when the disk refuses it. */
  begin({ run_id, confirm_secs, keep_snapshot }: RunHead): Snapshot | null {
    const { dataDir, createHost, freeBytes } = this.options;
    this.isGuarded = false;
    if (confirm_secs == null && keep_snapshot !== true) {
      if (hasSnapshot(dataDir)) deleteSnapshot(dataDir);
      return null;
    }
    try {
      return new Snapshot({
        dataDir,
        host: createHost(),
        run_id,
        confirm_secs: confirm_secs ?? null,
        keeps: keep_snapshot === true,
        ...(freeBytes ? { freeBytes } : {}),
      });
    } catch (error) {
      throw new Fault('disk_full', `the snapshot cannot be written, so nothing was changed: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** Saves what is about to be changed, and starts the guard before the first change. Throws as `Snapshot.save`, and `service_failed`. */
  async save(snapshot: Snapshot, doomed: readonly Doomed[], purges: readonly FileStep[] = []): Promise<void> {
    const { dataDir, guard } = this.options;
    await snapshot.save(doomed);
    await snapshot.savePurged(purges);
    const { confirm_secs, items } = snapshot.record;
    if (this.isGuarded || confirm_secs === null || items.length === 0) return;
    await guard.start(dataDir);
    this.isGuarded = true;
  }

  /**
   * Settles an apply that has ended on the machine: keeps it, waits for its confirmation, or undoes it. Returns null when the agent
   * stops before that; the next one goes on.
   * @param beforeWait called once a crash is survived: a new process goes on waiting
   */
  async settle(
    snapshot: Snapshot,
    { appliedAt, ...outcome }: AppliedEnd,
    signal: AbortSignal,
    beforeWait: () => Promise<unknown> = async () => {},
  ): Promise<SettledEnd | null> {
    const { logger } = this.options;
    const { record } = snapshot;
    const { confirm_secs: secs } = record;
    if (outcome.end === 'refused' || (secs !== null && record.items.length === 0)) {
      snapshot.discard();
      return outcome;
    }
    if (secs === null) {
      try {
        snapshot.confirm();
      } catch (error) {
        // Nothing waits for it: a snapshot that is only kept is restored in either state.
        logger.error('the record of the snapshot cannot be written', { reason: messageOf(error) });
      }
      return outcome;
    }
    const { checks } = outcome;
    if (outcome.end !== 'succeeded') return { ...(await this.undo(record, whyOf(outcome))), checks };
    try {
      snapshot.awaitUntil({ ...appliedAt, at: appliedAt.at + secs * 1000 }, checks);
    } catch (error) {
      // After a crash, the length of the wait would be unknown.
      logger.error('the record of the snapshot cannot be written', { reason: messageOf(error) });
      return { ...(await this.undo(record, `the snapshot cannot be written: ${messageOf(error)}`)), checks };
    }
    await beforeWait();
    return this.wait(snapshot.record, signal, outcome);
  }

  /** Waits for the confirmation of an apply whose snapshot says `awaiting`. */
  async wait(record: SnapshotRecord, signal: AbortSignal, outcome: SettledEnd): Promise<SettledEnd | null> {
    const { logger } = this.options;
    const { run_id: runId, confirm_secs: secs } = record;
    const { checks } = outcome;
    logger.info('the apply has to be confirmed', { run_id: runId, seconds: Math.round(leftOf(record) / 1000) });
    switch (await this.answer(record, signal)) {
      case 'stopping':
        return null;
      case 'confirmed':
        this.keep(record);
        return outcome;
      case 'cancelled':
        return { ...(await this.undo(record, 'it was cancelled')), checks };
      case 'expired': {
        const last = this.obstacle === null ? '' : ` (the last attempt: ${this.obstacle})`;
        const why = `the machine did not come back within ${secs} s${last}`;
        return { ...(await this.undo(record, why)), checks };
      }
    }
  }

  /** Undoes an apply. Never throws for a resource that cannot be restored; the report names it. */
  async undo(record: SnapshotRecord, why: string): Promise<SettledEnd> {
    const { dataDir, createHost, held, logger } = this.options;
    logger.warn('an apply is being undone', { run_id: record.run_id, reason: why });
    this.write({ ...record, state: 'restoring', why });
    const restored = await restore(record, createHost(undefined, held), { dataDir, held });
    logger.warn('an apply was undone', {
      run_id: record.run_id,
      restored: restored.restored,
      not_restored: restored.not_restored,
    });
    this.write({ ...record, state: 'restored', why, restored });
    return undone(why, restored);
  }

  /** Ends the snapshot of an apply whose end is in the journal: keeps it for later, or deletes it with the guard. */
  async close(): Promise<void> {
    const { dataDir, guard, logger } = this.options;
    const record = this.read();
    const isRestored = record?.state === 'restored';
    // The record of an apply that was undone is still open if the disk refused the last one.
    const isUndone = record !== null && (isRestored || isOpen(record));
    const attempt = async (work: () => Promise<void>) => {
      try {
        await work();
      } catch (error) {
        logger.error('the snapshot of an apply cannot be cleared away', { reason: messageOf(error) });
      }
    };
    // A disk that refuses to delete the snapshot keeps neither the guard nor the undone unit of the agent.
    await attempt(async () => {
      if (record === null || isUndone || !record.keeps) deleteSnapshot(dataDir);
    });
    await attempt(async () => {
      if (this.isGuarded || record?.confirm_secs != null) await guard.stop();
      this.isGuarded = false;
    });
    if (isUndone && changesAgentUnit(record)) await attempt(() => guard.restartAgent());
  }

  /** True if there is something to close. */
  get isUsed(): boolean {
    return this.isGuarded || hasSnapshot(this.options.dataDir);
  }

  /** Returns the snapshot that an earlier process has left; null without a usable one. */
  read(): SnapshotRecord | null {
    try {
      return readSnapshot(this.options.dataDir);
    } catch (error) {
      this.options.logger.error('the snapshot of the last apply is not used', { reason: messageOf(error) });
      return null;
    }
  }

  /** Handles the orchestrator's confirmation of a run. */
  confirmed(runId: string): void {
    if (this.waiting?.runId === runId) this.waiting.answer('confirmed');
  }

  /** Asks for the confirmation on a connection that was made after the apply has settled. */
  reached(): void {
    if (this.waiting?.isSettled) this.options.report({ type: 'run_confirm', run_id: this.waiting.runId });
  }

  unreached(reason: string): void {
    this.obstacle = reason;
  }

  private answer(record: SnapshotRecord, signal: AbortSignal): Promise<Answer> {
    this.obstacle = null;
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const waiting: Waiting = { runId: record.run_id, isSettled: false, answer: (given) => answer(given) };
      const settled = setTimeout(() => this.askForConnection(waiting, record), this.settleMs(record));
      const answer = (given: Answer) => {
        clearTimeout(timer);
        clearTimeout(settled);
        signal.removeEventListener('abort', abort);
        this.waiting = null;
        resolve(given);
      };
      const abort = () => answer(isFault(signal.reason, 'interrupted') ? 'stopping' : 'cancelled');
      const look = () => {
        const left = leftOf(record);
        if (left <= 0) return answer('expired');
        timer = setTimeout(look, Math.min(left, TIMER_MS));
      };
      this.waiting = waiting;
      if (signal.aborted) return abort();
      signal.addEventListener('abort', abort, { once: true });
      look();
    });
  }

  /** Has a new connection made, on which `reached` asks for the confirmation. */
  private askForConnection(waiting: Waiting, record: SnapshotRecord): void {
    waiting.isSettled = true;
    const left = Math.round(leftOf(record) / 1000);
    this.options.report({ type: 'run_awaiting', run_id: waiting.runId, left_secs: left });
  }

  /** Returns the milliseconds until connections count. */
  private settleMs(record: SnapshotRecord): number {
    const since = (record.confirm_secs ?? 0) * 1000 - leftOf(record);
    return Math.max(0, (this.options.settleMs ?? SETTLE_MS) - since);
  }

  /** Makes a confirmed apply stay. If the disk refuses the record, the snapshot is deleted, so that no later start undoes the apply. */
  private keep(record: SnapshotRecord): void {
    const { dataDir, logger } = this.options;
    try {
      writeSnapshot(dataDir, { ...record, state: 'confirmed' });
    } catch (error) {
      logger.error('the record of the snapshot cannot be written, so it is deleted', { reason: messageOf(error) });
      deleteSnapshot(dataDir);
    }
  }

  /** Writes the record. A disk that refuses it must not keep anything from being restored: it is repeated after a crash then. */
  private write(record: SnapshotRecord): void {
    try {
      writeSnapshot(this.options.dataDir, record);
    } catch (error) {
      this.options.logger.error('the record of the snapshot cannot be written', { reason: messageOf(error) });
    }
  }
}

/** True for a snapshot that has to be confirmed or restored. */
export const isOpen = ({ state, confirm_secs }: SnapshotRecord): boolean =>
  confirm_secs !== null && (state === 'applying' || state === 'awaiting' || state === 'restoring');

/** Returns the milliseconds that an awaited apply has left. */
export const leftOf = ({ deadline }: SnapshotRecord): number => (deadline === null ? 0 : leftUntil(deadline));

/** Returns the end of an apply that was undone. */
export const undone = (why: string, restored: Restored | null): SettledEnd => ({
  end: 'rolled_back',
  error: { code: 'rolled_back', message: `the agent has undone the apply, because ${why}` },
  restored,
});

function whyOf({ end, error }: SettledEnd): string {
  if (end === 'cancelled') return 'it was cancelled';
  if (end === 'interrupted') return 'the agent was stopped in the middle of it';
  return error === null ? 'a resource failed' : `it failed: ${error.message}`;
}
