/**
 * A signed place in the audit log: "in this epoch, at that time, the event of that number had that hash". The hash stands for
 * every event before it, so whoever keeps the text elsewhere can tell later whether any of them was changed or is gone.
 */
import type { AuditMarkRow } from '../store/audit-marks.js';
import type { AuditKey } from './audit-key.js';
import type { ChainPlace } from './verify-chain.js';

/** A checkpoint, or the last event that was pruned, to which the first one that is left is chained. */
export type MarkKind = 'checkpoint' | 'cut';

export interface Mark extends ChainPlace {
  readonly kind: MarkKind;
  /** Of the store; grows when it is put back to an earlier state. */
  readonly epoch: number;
  /** Unix milliseconds. */
  readonly time: number;
  /** That checks the signature, 64 hex digits. */
  readonly publicKey: string;
  /** Base64url. */
  readonly signature: string;
}

/** The first word of the text, so that a signature of one kind is none of the other. */
const HEADS: Readonly<Record<MarkKind, string>> = { checkpoint: 'orch-checkpoint-v1', cut: 'orch-audit-cut-v1' };

const TEXT =
  /^orch-checkpoint-v1\.([1-9]\d{0,14})\.([1-9]\d{0,14})\.(\d{1,15})\.([0-9a-f]{64})\.([0-9a-f]{64})\.([A-Za-z0-9_-]{86})$/;

export function signMark(key: AuditKey, place: Omit<Mark, 'publicKey' | 'signature'>): Mark {
  const unsigned = { ...place, publicKey: key.publicKey };
  return { ...unsigned, signature: key.sign(signedText(unsigned)) };
}

/** Whether the very key that is in use has signed it. */
export const isSignedWith = (key: AuditKey, mark: Mark): boolean =>
  mark.publicKey === key.publicKey && key.verify(signedText(mark), mark.signature);

/** `orch-checkpoint-v1.EPOCH.SEQ.TIME.HASH.PUBLIC_KEY.SIGNATURE`; all before the last dot is what is signed. */
export const checkpointText = (mark: Mark): string => `${signedText(mark)}.${mark.signature}`;

/** Null for what is no text of a checkpoint; the signature is not looked at. */
export function parseCheckpoint(text: string): Mark | null {
  const [, epoch, seq, time, hash, publicKey, signature] = TEXT.exec(text.trim()) ?? [];
  if (hash === undefined || publicKey === undefined || signature === undefined) return null;
  const numbers = { epoch: Number(epoch), seq: Number(seq), time: Number(time) };
  return { kind: 'checkpoint', ...numbers, hash, publicKey, signature };
}

export const rowOfMark = ({ publicKey, ...mark }: Mark): AuditMarkRow => ({ ...mark, public_key: publicKey });

export const markOfRow = ({ kind, public_key, ...row }: AuditMarkRow): Mark => ({
  ...row,
  kind: kind === 'cut' ? 'cut' : 'checkpoint',
  publicKey: public_key,
});

const signedText = ({ kind, epoch, seq, time, hash, publicKey }: Omit<Mark, 'signature'>): string =>
  [HEADS[kind], epoch, seq, time, hash, publicKey].join('.');
