/** The Ed25519 key that signs places in the audit log, and nothing else. */
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

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
