/**
 * Signs and parses checkpoints: statements that an event of the audit log had a hash, with epoch and time. The hash covers
 * every earlier event, so a checkpoint kept elsewhere reveals later that any of them was changed or removed.
 */
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { AuditMarkRow } from '../core/audit-store.js';
import type { ChainPlace } from './chain-place.js';

/** A checkpoint, or a cut: the last pruned event, which the first remaining event is chained to. */
type MarkKind = 'checkpoint' | 'cut';

/** A signed place in the audit log. */
export interface Mark extends ChainPlace {
  readonly kind: MarkKind;
  /** Epoch of the store, which grows when the store is restored to an earlier state. */
  readonly epoch: number;
  /** Unix milliseconds. */
  readonly time: number;
  /** Public key of the signature, 64 hex digits. */
  readonly publicKey: string;
  /** Signature in base64url. */
  readonly signature: string;
}

/** First word of the signed text, so that a signature of one kind is not valid for the other. */
const HEADS: Readonly<Record<MarkKind, string>> = { checkpoint: 'orch-checkpoint-v1', cut: 'orch-audit-cut-v1' };

const TEXT =
  /^orch-checkpoint-v1\.([1-9]\d{0,14})\.([1-9]\d{0,14})\.(\d{1,15})\.([0-9a-f]{64})\.([0-9a-f]{64})\.([A-Za-z0-9_-]{86})$/;

export function signMark(key: AuditKey, place: Omit<Mark, 'publicKey' | 'signature'>): Mark {
  const unsigned = { ...place, publicKey: key.publicKey };
  return { ...unsigned, signature: key.sign(signedText(unsigned)) };
}

/** Returns true when `key`, the key in use, signed the mark. */
export const isSignedWith = (key: AuditKey, mark: Mark): boolean =>
  mark.publicKey === key.publicKey && key.verify(signedText(mark), mark.signature);

/** Returns `orch-checkpoint-v1.EPOCH.SEQ.TIME.HASH.PUBLIC_KEY.SIGNATURE`; the part before the last dot is signed. */
export const checkpointText = (mark: Mark): string => `${signedText(mark)}.${mark.signature}`;

/** Parses a checkpoint; returns null for other text. Does not verify the signature. */
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

/** The Ed25519 key that signs marks of the audit log and nothing else. */
export class AuditKey {
  /** Public key, 64 hex digits. */
  readonly publicKey: string;
  private readonly privateKey: KeyObject;
  private readonly verifyingKey: KeyObject;

  constructor(privateKey: KeyObject) {
    this.privateKey = privateKey;
    this.verifyingKey = createPublicKey(privateKey);
    this.publicKey = Buffer.from(this.verifyingKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('hex');
  }

  /** Returns the signature, 86 characters of base64url. */
  sign(text: string): string {
    return sign(null, Buffer.from(text), this.privateKey).toString('base64url');
  }

  /** Returns true when this key signed the text. */
  verify(text: string, signature: string): boolean {
    return verify(null, Buffer.from(text), this.verifyingKey, Buffer.from(signature, 'base64url'));
  }
}
