/**
 * A signed place in the audit log: "in this epoch, at that time, the event of that number had that hash". The hash stands for
 * every event before it, so whoever keeps the text elsewhere can tell later whether any of them was changed or is gone.
 */
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { AuditMarkRow } from '../core/audit-store.js';
import type { ChainPlace } from './verify-chain.js';

/** A checkpoint, or the last event that was pruned, to which the first one that is left is chained. */
type MarkKind = 'checkpoint' | 'cut';

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

/** The Ed25519 key that signs places in the audit log, and nothing else. */
export class AuditKey {
  /** 64 hex digits. */
  readonly publicKey: string;
  private readonly privateKey: KeyObject;
  private readonly verifyingKey: KeyObject;

  constructor(privateKey: KeyObject) {
    this.privateKey = privateKey;
    this.verifyingKey = createPublicKey(privateKey);
    this.publicKey = Buffer.from(this.verifyingKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('hex');
  }

  /** 86 characters of base64url. */
  sign(text: string): string {
    return sign(null, Buffer.from(text), this.privateKey).toString('base64url');
  }

  /** Whether this key has signed the text. */
  verify(text: string, signature: string): boolean {
    return verify(null, Buffer.from(text), this.verifyingKey, Buffer.from(signature, 'base64url'));
  }
}
