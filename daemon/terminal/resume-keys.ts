/** The secrets of a session with which its clients come back, as hashes, and which of them stands for the pen. */
import { createHash } from 'node:crypto';
import type { ResumeKey } from './session-book.js';

/** Viewers that come and go leave one each. */
const MOST = 1_000;
const DOMAIN = 'orch-terminal-resume-v1';

export const resumeHash = (secret: string): string => createHash('sha256').update(DOMAIN).update(secret).digest('hex');

export class ResumeKeys {
  private readonly owners = new Map<string, string>();
  private penKey: ResumeKey | null;

  /** @param pen of the one who wrote last, as the store has it */
  constructor(pen: ResumeKey | null) {
    this.penKey = pen;
    if (pen !== null) this.owners.set(pen.hash, pen.operatorId);
  }

  /** Whoever wrote last, and may go on unless somebody else has begun to. */
  get pen(): ResumeKey | null {
    return this.penKey;
  }

  add(key: ResumeKey): void {
    this.owners.set(key.hash, key.operatorId);
    if (this.owners.size <= MOST) return;
    for (const hash of this.owners.keys()) {
      if (hash === this.penKey?.hash) continue;
      this.owners.delete(hash);
      return;
    }
  }

  givePen(key: ResumeKey | null): void {
    this.penKey = key;
  }

  /** The operator whose secret it is; null for none of this session. */
  ownerOf(hash: string): string | null {
    return this.owners.get(hash) ?? null;
  }
}
