/** Signs the end of the audit log every `EVERY_EVENTS` events, every `EVERY_MS`, and when the orchestrator stops. */
import { isFault, messageOf } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import { readChainHead } from '../core/audit-log.js';
import {
  type AuditMarkRow,
  auditMarksOfOtherKeys,
  deleteCheckpoint,
  findAuditCut,
  findAuditRow,
  insertAuditMark,
  newestCheckpoints,
  replaceAuditCut,
} from '../core/audit-store.js';
import type { Core } from '../core/core.js';
import { AUDIT_LOG, SYSTEM } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import { type AuditKey, markOfRow, rowOfMark, signMark } from './checkpoint.js';
import { verifyChain } from './verify-chain.js';

interface CheckpointsOptions extends Pick<Core, 'bus' | 'clock' | 'db' | 'logger' | 'uow'> {
  readonly key: AuditKey;
  /** Returns the current epoch of the store. */
  readonly epoch: (db: Queryable) => Promise<number>;
}

const EVERY_EVENTS = 256;
/** Milliseconds. */
const EVERY_MS = 60_000;

export class Checkpoints implements Service {
  readonly name = 'audit checkpoints';
  private readonly options: CheckpointsOptions;
  private timer: NodeJS.Timeout | undefined;
  private unsubscribe = () => {};
  /** Number of events since the last checkpoint was started. */
  private unsigned = 0;
  private signing: Promise<void> = Promise.resolve();

  constructor(options: CheckpointsOptions) {
    this.options = options;
  }

  /** Verifies the events after the newest checkpoint, signs the end of the log and starts the timer. */
  async start(): Promise<void> {
    const { bus } = this.options;
    await this.takeOver();
    await this.inspect();
    try {
      await this.sign();
    } catch (error) {
      if (!isFault(error, 'store_unavailable')) throw error;
      // On a full disk the log is still readable, so the start goes on and the timer retries.
      this.unsigned += 1;
      this.options.logger.error('the audit log could not be signed, it is tried again', { reason: error.message });
    }
    this.unsubscribe = bus.subscribe('all', () => this.count());
    this.timer = setInterval(() => this.unsigned > 0 && this.begin(), EVERY_MS);
  }

  /** Stops the timer and signs the last event. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.unsubscribe();
    this.begin();
    await this.signing;
  }

  private count(): void {
    this.unsigned += 1;
    if (this.unsigned >= EVERY_EVENTS) this.begin();
  }

  private begin(): void {
    const count = this.unsigned;
    this.unsigned = 0;
    this.signing = this.signing
      .then(() => this.sign())
      .catch((error) => {
        this.unsigned += count;
        this.options.logger.error('the audit log could not be signed, it is tried again', { reason: messageOf(error) });
      });
  }

  private async sign(): Promise<void> {
    const { uow, key, clock, epoch } = this.options;
    await uow.write(async (tx) => {
      const { seq, hash } = await readChainHead(tx);
      const [newest, before] = await newestCheckpoints(tx, 2);
      const signed = newest?.seq ?? (await findAuditCut(tx))?.seq ?? 0;
      if (seq <= signed) return;
      if (newest) await this.thinOut(tx, newest, before);
      const place = { kind: 'checkpoint', epoch: await epoch(tx), seq, hash, time: clock.now() } as const;
      await insertAuditMark(tx, rowOfMark(signMark(key, place)));
    });
  }

  /**
   * Deletes the newest checkpoint if it is less than `EVERY_EVENTS` after its predecessor, because the next one covers it.
   * Keeps it if it does not match the log.
   */
  private async thinOut(tx: Queryable, newest: AuditMarkRow, before: AuditMarkRow | undefined): Promise<void> {
    const start = before?.seq ?? (await findAuditCut(tx))?.seq ?? 0;
    if (newest.seq - start < EVERY_EVENTS && (await isTrue(tx, newest))) await deleteCheckpoint(tx, newest.seq);
  }

  /**
   * Takes over from a former audit key that was lost or replaced, and emits an event. Re-signs the cut and deletes
   * checkpoints that match the log, because the next checkpoint covers them. Mismatched ones stay as evidence.
   */
  private async takeOver(): Promise<void> {
    const { uow, key, logger } = this.options;
    const former = await uow.write(async (tx, emit) => {
      const [newest = await findAuditCut(tx)] = await newestCheckpoints(tx, 1);
      // After a takeover the newest mark has this key. Marks of other keys are then left for the verification to report.
      if (newest === null || newest.public_key === key.publicKey) return null;
      for (const mark of await auditMarksOfOtherKeys(tx, key.publicKey)) await this.renew(tx, mark);
      emit({
        type: 'audit.key_changed',
        actor: SYSTEM,
        target: AUDIT_LOG,
        summary: 'the key that signs the audit log is another one than before',
        metadata: { former: newest.public_key, public_key: key.publicKey, seq: newest.seq, hash: newest.hash },
      });
      return newest.public_key;
    });
    if (former === null) return;
    logger.warn('audit.key is new: checkpoints that were kept elsewhere cannot be checked with it', { former });
  }

  private async renew(tx: Queryable, row: AuditMarkRow): Promise<void> {
    const { key } = this.options;
    const { publicKey: _, signature: __, ...place } = markOfRow(row);
    if (place.kind === 'cut') await replaceAuditCut(tx, rowOfMark(signMark(key, place)));
    else if (await isTrue(tx, row)) await deleteCheckpoint(tx, row.seq);
  }

  /** Verifies the few events that an earlier process wrote and did not sign, and logs a break in the chain. */
  private async inspect(): Promise<void> {
    const { db, logger } = this.options;
    const [newest] = await newestCheckpoints(db, 1);
    if (newest === undefined) return;
    const { broken } = await verifyChain(db, { seq: newest.seq, hash: newest.hash });
    if (broken === null) return;
    logger.error('the audit log is not as it was written; see: orch audit verify', {
      event: broken.seq,
      what: broken.what,
    });
  }
}

/** Returns true when the checkpoint matches the log. A mismatched one is kept, because it is evidence of tampering. */
const isTrue = async (tx: Queryable, { seq, hash }: AuditMarkRow): Promise<boolean> =>
  (await findAuditRow(tx, seq))?.hash === hash;
