/** What a copy has moved: files, bytes, failures, and one hash for all. */
import { createHash } from 'node:crypto';
import { FORWARD_LIMITS } from '../terminal/forward-limits.js';

export interface CopySum {
  readonly files: number;
  readonly bytes: number;
  readonly failed: number;
  /** SHA-256 of the file, or of the lines `HASH  PATH` of several, in the order of the copy; null without a file. */
  readonly sha256: string | null;
}

export class CopyTally {
  private files = 0;
  private bytes = 0;
  private failures = 0;
  private only: string | null = null;
  private readonly reasons: string[] = [];
  private readonly list = createHash('sha256');

  /** Counts a file. @param path one character for each byte */
  add(path: string, sha256: string, bytes: number): void {
    this.files += 1;
    this.bytes += bytes;
    this.only = sha256;
    this.list.update(`${sha256}  ${path}\n`, 'latin1');
  }

  fail(): void {
    this.failures += 1;
  }

  /** Counts a path that was refused as a whole. */
  refuse(reason: string): void {
    this.fail();
    const { refusal, targets } = FORWARD_LIMITS;
    if (this.reasons.length < targets) this.reasons.push(reason.slice(0, refusal));
  }

  /** Why paths were refused, the first ones. */
  get refusals(): readonly string[] {
    return this.reasons;
  }

  get sum(): CopySum {
    const sha256 = this.files > 1 ? this.list.copy().digest('hex') : this.only;
    return { files: this.files, bytes: this.bytes, failed: this.failures, sha256 };
  }
}
