/** The secrets of one session with which its clients come back, and which of them stands for the pen. */
import { createHash } from 'node:crypto';
import type { ResumeKey } from '../session-book.js';
import type { ResumeSecrets } from './resume-secrets.js';

const DOMAIN = 'orch-terminal-resume-v1';

/** As the store has it. */
export const resumeHash = (secret: string): string => createHash('sha256').update(DOMAIN).update(secret).digest('hex');

export interface ResumeKeysOptions {
  readonly sessionId: string;
  readonly secrets: ResumeSecrets;
  /** Of the one who wrote last, as the store has it. */
  readonly pen: ResumeKey | null;
}

export class ResumeKeys {
  private readonly options: ResumeKeysOptions;
  private penKey: ResumeKey | null;

  constructor(options: ResumeKeysOptions) {
    this.options = options;
    this.penKey = options.pen;
  }

  /** Whoever wrote last, and may go on unless somebody else has begun to. */
  get pen(): ResumeKey | null {
    return this.penKey;
  }

  /** A new secret. */
  issue(operatorId: string): string {
    return this.options.secrets.issue(this.options.sessionId, operatorId);
  }

  givePen(key: ResumeKey | null): void {
    this.penKey = key;
  }

  /** The operator whose secret it is; null for none of this session. */
  ownerOf(secret: string): string | null {
    if (this.penKey !== null && resumeHash(secret) === this.penKey.hash) return this.penKey.operatorId;
    return this.options.secrets.ownerOf(this.options.sessionId, secret);
  }
}
