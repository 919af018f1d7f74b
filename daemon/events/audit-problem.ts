/** What is wrong with an audit log, in words. */
import type { AuditProblem } from '../../src/contract/audit.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import type { Mark } from './checkpoint.js';
import type { ChainBreak } from './verify-chain.js';

const WHAT: Readonly<Record<ChainBreak['what'], (seq: number) => string>> = {
  altered: (seq) => `event ${seq} is not as it was written, or the one before it is another one`,
  missing: (seq) => `event ${seq} is missing`,
  out_of_order: (seq) => `event ${seq} is not at its place: another event stands there`,
};

export const brokenChain = ({ seq, id, what }: ChainBreak): AuditProblem => ({
  what,
  seq,
  id,
  detail: WHAT[what](seq),
});

/** @param last the event that is the last one now */
export const cutTail = (last: number, mark: Mark): AuditProblem => ({
  what: 'cut',
  seq: last + 1,
  id: null,
  detail:
    `the end of the log was cut off: it ends with event ${last}, and ${told(mark)} there was an event ${mark.seq}` +
    (mark.epoch > 1 ? `, in epoch ${mark.epoch} of the store` : ''),
});

/** @param signed the last event that a checkpoint before this one confirms */
export const rewritten = (mark: Mark, signed: number): AuditProblem => ({
  what: 'rewritten',
  seq: mark.seq,
  id: null,
  detail:
    `event ${mark.seq} is not the one that was signed on ${toTimestamp(mark.time)}: the log was written anew from some ` +
    `event after ${signed} on, or its end was cut off and other events took the place`,
});

export const forgedMark = (mark: Mark): AuditProblem => ({
  what: 'bad_signature',
  seq: mark.seq,
  id: null,
  detail:
    mark.kind === 'cut'
      ? `the log begins after event ${mark.seq}, and the note of its pruning is not signed with the audit key of this orchestrator`
      : `the checkpoint of event ${mark.seq} is not signed with the audit key of this orchestrator`,
});

export const foreignCheckpoint = (mark: Mark, publicKey: string): AuditProblem => ({
  what: 'bad_signature',
  seq: mark.seq,
  id: null,
  detail:
    mark.publicKey === publicKey
      ? 'the signature of the given checkpoint is wrong: its text was changed'
      : `the given checkpoint is signed with the key ${mark.publicKey}, and the audit key of this orchestrator is ${publicKey}: ` +
        'it is of another orchestrator, or the key was replaced (look for audit.key_changed in the log)',
});

const told = ({ time }: Mark): string => `on ${toTimestamp(time)}`;
