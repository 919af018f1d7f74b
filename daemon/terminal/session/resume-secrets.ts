/**
 * The secrets with which clients come back to a session. Each says by itself whose it is and of which session, so that it is good
 * after a restart of the orchestrator although nothing of it was stored.
 */
import { createHmac, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';

export interface ResumeSecretsOptions {
  /** See `resumeKeyOf`. */
  readonly key: Buffer;
  readonly randomBytes: (count: number) => Buffer;
}

const DOMAIN = 'orch-terminal-resume-v2';
const NONCE = 16;
/** Of the operator's ID, which is that in hex. */
const OPERATOR = 16;
const MAC = 32;

/** As long as the orchestrator keeps its identity it is the same. @param privateKey of the orchestrator, Ed25519 */
export function resumeKeyOf(privateKey: KeyObject): Buffer {
  const { d = '' } = privateKey.export({ format: 'jwk' });
  return Buffer.from(hkdfSync('sha256', Buffer.from(d, 'base64url'), '', DOMAIN, MAC));
}

export class ResumeSecrets {
  private readonly options: ResumeSecretsOptions;

  constructor(options: ResumeSecretsOptions) {
    this.options = options;
  }

  issue(sessionId: string, operatorId: string): string {
    const said = Buffer.concat([this.options.randomBytes(NONCE), Buffer.from(operatorId, 'hex')]);
    return Buffer.concat([said, this.macOf(sessionId, said)]).toString('base64url');
  }

  /** The ID of the operator whom it was given to; null for none of this session. */
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
