/** Verifies the whole audit log: its hash chain, its signed checkpoints, and a checkpoint that was kept elsewhere. */
import type { AuditProblem, AuditVerification } from '../../src/contract/audit.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { GENESIS } from '../core/audit-log.js';
import { checkpointsBetween, findAuditCut, lastAuditSeq, newestCheckpoints } from '../core/audit-store.js';
import type { Core } from '../core/core.js';
import type { Queryable } from '../database/schema.js';
import type { ChainPlace } from './chain-place.js';
import { type AuditKey, checkpointText, isSignedWith, type Mark, markOfRow, signMark } from './checkpoint.js';
import {
  brokenChain,
  type ChainSlice,
  cutTail,
  foreignCheckpoint,
  forgedMark,
  rewritten,
  walkChain,
} from './verify-chain.js';

interface VerificationOptions extends Pick<Core, 'clock' | 'db'> {
  readonly key: AuditKey;
  readonly epoch: (db: Queryable) => Promise<number>;
}

interface VerificationRequest {
  /** Checkpoint that was kept elsewhere; null for none. */
  readonly since: Mark | null;
  /** Ends the verification, which rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

/** Findings so far. */
interface Findings {
  first: number | null;
  /** Last intact event. */
  head: ChainPlace;
  events: number;
  checkpoints: number;
  /** `seq` of the last checkpoint that matches the log. */
  signed: number;
  /** True when the external checkpoint matches this log. */
  isConfirmed: boolean;
  problem: AuditProblem | null;
}

interface Walk {
  readonly to: number;
  readonly witness: Mark | null;
  readonly signal: AbortSignal;
}

export class Verification {
  private readonly options: VerificationOptions;
  private lane: Promise<unknown> = Promise.resolve();

  constructor(options: VerificationOptions) {
    this.options = options;
  }

  /** Verifies the log and returns the result. Runs are queued, because each reads the whole log. */
  run(request: VerificationRequest): Promise<AuditVerification> {
    const result = this.lane.then(() => this.verify(request));
    this.lane = result.catch(() => undefined);
    return result;
  }

  private async verify({ since, signal }: VerificationRequest): Promise<AuditVerification> {
    const { db, key } = this.options;
    const cutRow = await findAuditCut(db);
    const cut = cutRow && markOfRow(cutRow);
    // Read before the last `seq`: a checkpoint signed in between would seem to lie beyond the end of the log.
    const [newestRow] = await newestCheckpoints(db, 1);
    const newest = newestRow ? markOfRow(newestRow) : null;
    const to = (await lastAuditSeq(db)) ?? 0;
    const found = begin(cut);
    const isOurs = since === null || isSignedWith(key, since);
    const witness = isOurs ? since : null;
    if (cut && !isSignedWith(key, cut)) found.problem = forgedMark(cut);
    else await this.walk(found, { to, witness, signal });
    found.problem ??= endProblem(found, [newest, witness]);
    if (since !== null && !isOurs) found.problem ??= foreignCheckpoint(since, key.publicKey);
    const checkpoint = found.problem === null ? await this.signHead(found) : newest;
    return {
      intact: found.problem === null,
      events: found.events,
      first_seq: found.first,
      last_seq: found.first === null ? null : found.head.seq,
      checkpoints: found.checkpoints,
      pruned: cut && { seq: cut.seq, hash: cut.hash, pruned_at: toTimestamp(cut.time) },
      checkpoint: checkpoint && checkpointReport(checkpoint),
      public_key: key.publicKey,
      since: since && sinceReport(found, since),
      problem: found.problem,
    };
  }

  private async walk(found: Findings, { to, witness, signal }: Walk): Promise<void> {
    if (witness !== null) confirm(found, witness, found.head);
    if (found.problem !== null) return;
    for await (const slice of walkChain(this.options.db, { from: found.head, to })) {
      signal.throwIfAborted();
      await this.take(found, slice, witness);
      if (found.problem !== null) return;
    }
  }

  private async take(found: Findings, { from, rows, head, broken }: ChainSlice, witness: Mark | null): Promise<void> {
    const marks = (await checkpointsBetween(this.options.db, from.seq, head.seq)).map(markOfRow);
    const hashes = new Map(rows.map(({ seq, hash }) => [seq, hash]));
    for (const mark of marks) {
      if (isSignedWith(this.options.key, mark)) compare(found, mark, hashes.get(mark.seq));
      else found.problem = forgedMark(mark);
      if (found.problem !== null) return;
      found.checkpoints += 1;
      found.signed = mark.seq;
    }
    const witnessed = witness === null ? undefined : hashes.get(witness.seq);
    if (witness !== null && witnessed !== undefined) confirm(found, witness, { seq: witness.seq, hash: witnessed });
    if (found.problem !== null) return;
    found.first ??= rows[0]?.seq ?? null;
    found.head = head;
    found.events += rows.length;
    if (broken !== null) found.problem = brokenChain(broken);
  }

  /**
   * Returns a signed checkpoint of the verified head; null for an empty log. It is not stored: a later verification only
   * needs its signature.
   */
  private async signHead({ head }: Findings): Promise<Mark | null> {
    const { db, key, clock, epoch } = this.options;
    if (head.seq === GENESIS.seq) return null;
    return signMark(key, { kind: 'checkpoint', epoch: await epoch(db), ...head, time: clock.now() });
  }
}

const begin = (cut: Mark | null): Findings => {
  const head: ChainPlace = cut === null ? GENESIS : { seq: cut.seq, hash: cut.hash };
  return { first: null, head, events: 0, checkpoints: 0, signed: head.seq, isConfirmed: false, problem: null };
};

/** Returns true when the signed hash equals the event's current hash; records the problem otherwise. */
function compare(found: Findings, mark: Mark, hash: string | undefined): boolean {
  if (hash !== mark.hash) found.problem ??= rewritten(mark, found.signed);
  return hash === mark.hash;
}

/** Compares the external checkpoint with its event once the walk has reached it. */
function confirm(found: Findings, witness: Mark, place: ChainPlace): void {
  if (witness.seq === place.seq) found.isConfirmed = compare(found, witness, place.hash);
}

const checkpointReport = (mark: Mark): NonNullable<AuditVerification['checkpoint']> => ({
  epoch: mark.epoch,
  seq: mark.seq,
  hash: mark.hash,
  signed_at: toTimestamp(mark.time),
  text: checkpointText(mark),
});

function sinceReport(found: Findings, { epoch, seq }: Mark): AuditVerification['since'] {
  const isPruned = found.problem === null && !found.isConfirmed;
  return { epoch, seq, found: found.isConfirmed ? 'confirmed' : isPruned ? 'pruned' : 'not_confirmed' };
}

/** Returns the problem of a truncated log, one with a checkpoint beyond its last event; else null. */
function endProblem({ head }: Findings, marks: readonly (Mark | null)[]): AuditProblem | null {
  const beyond = marks.find((mark) => mark !== null && mark.seq > head.seq);
  return beyond ? cutTail(head.seq, beyond) : null;
}
