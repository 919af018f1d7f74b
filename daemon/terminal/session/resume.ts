/** Secrets with which clients resume a session, and the key of the writer among them. */

import { createHash, createHmac, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Core } from '../../core/core.js';
import type { ResumeKey } from '../session-store.js';

const HASH_DOMAIN = 'orch-terminal-resume-v1';

/** Returns the hash of a resume secret, as it is stored. */
export const resumeHash = (secret: string): string =>
  createHash('sha256').update(HASH_DOMAIN).update(secret).digest('hex');

interface ResumeKeysOptions {
  readonly sessionId: string;
  readonly secrets: ResumeSecrets;
  /** Stored key of the last writer. */
  readonly writer: ResumeKey | null;
}

export class ResumeKeys {
  private readonly options: ResumeKeysOptions;
  private penKey: ResumeKey | null;

  constructor(options: ResumeKeysOptions) {
    this.options = options;
    this.penKey = options.writer;
  }

  /** Key of the last writer, who may resume as the writer. */
  get writer(): ResumeKey | null {
    return this.penKey;
  }

  /** Creates a secret. */
  issue(operatorId: string): string {
    return this.options.secrets.issue(this.options.sessionId, operatorId);
  }

  setWriter(key: ResumeKey | null): void {
    this.penKey = key;
  }

  /** Returns the operator ID of a secret, or null when it is not a secret of this session. */
  ownerOf(secret: string): string | null {
    if (this.penKey !== null && resumeHash(secret) === this.penKey.hash) return this.penKey.operatorId;
    return this.options.secrets.ownerOf(this.options.sessionId, secret);
  }
}

interface ResumeSecretsOptions extends Pick<Core, 'randomBytes'> {
  /** Key from `resumeKeyOf`. */
  readonly key: Buffer;
}

const DOMAIN = 'orch-terminal-resume-v2';
const NONCE = 16;
/** Bytes of an operator ID, which is written in hex. */
const OPERATOR = 16;
const MAC = 32;

/** Derives the MAC key of resume secrets from the Ed25519 key of the orchestrator, so that it survives restarts. */
export function resumeKeyOf(privateKey: KeyObject): Buffer {
  const { d = '' } = privateKey.export({ format: 'jwk' });
  return Buffer.from(hkdfSync('sha256', Buffer.from(d, 'base64url'), '', DOMAIN, MAC));
}

/** Issues resume secrets. Each authenticates its operator and session by itself, so that it is valid after a restart unstored. */
export class ResumeSecrets {
  private readonly options: ResumeSecretsOptions;

  constructor(options: ResumeSecretsOptions) {
    this.options = options;
  }

  issue(sessionId: string, operatorId: string): string {
    const said = Buffer.concat([this.options.randomBytes(NONCE), Buffer.from(operatorId, 'hex')]);
    return Buffer.concat([said, this.macOf(sessionId, said)]).toString('base64url');
  }

  /** Returns the operator ID of a secret, or null when it is not a secret of this session. */
  ownerOf(sessionId: string, secret: string): string | null {
    const bytes = Buffer.from(secret, 'base64url');
    if (bytes.length !== NONCE + OPERATOR + MAC) return null;
    const said = bytes.subarray(0, NONCE + OPERATOR);
    if (!timingSafeEqual(bytes.subarray(NONCE + OPERATOR), this.macOf(sessionId, said))) return null;
    return said.toString('hex', NONCE);
  }

  private macOf(sessionId: string, said: Buffer): Buffer {
    return createHmac('sha256', this.options.key).update(`${DOMAIN}\0${sessionId}\0`).update(said).digest();
  }
}
