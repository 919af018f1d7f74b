/**
 * Checks a recording of ours against its own checkpoints: each tells how much output came before and the hash of everything in
 * the file before it. What follows the last one was never said to be stored; a crash may have torn it.
 */
import { createHash, type Hash } from 'node:crypto';
import { Fault } from '../kernel/fault.js';
import type { CastPlace } from './cast-encoder.js';
import { type CastEvent, type CastStream, type Checkpoint, parseEvent, parseSize } from './cast-event.js';
import { type CastHead, parseHead } from './cast-head.js';
import { castLines, isWhole } from './cast-lines.js';

/** A recording up to its last checkpoint, that included. */
export interface ScannedCast extends CastPlace {
  readonly head: CastHead;
  readonly cols: number;
  readonly rows: number;
  /** Bytes of the file up to there. */
  readonly size: number;
  /** Bytes of the whole file. */
  readonly fileSize: number;
  /** SHA-256 of the whole file, in hex. */
  readonly sha256: string;
}

/** Takes the events between two checkpoints once the second one fits; checkpoints themselves are not among them. */
export type OnStored = (events: readonly CastEvent[]) => Promise<void> | void;

/**
 * @param chunks of the plain file
 * @param onStored sees all that counts, in order, and is waited for
 * @throws Fault `transcript_invalid` when a checkpoint does not fit, something before it is no event, or there is none
 */
export async function scanCast(chunks: AsyncIterable<Uint8Array>, onStored?: OnStored): Promise<ScannedCast> {
  const scan = new Scan(onStored !== undefined);
  for await (const line of castLines(chunks)) {
    const stored = scan.take(line);
    if (stored !== null && stored.length > 0) await onStored?.(stored);
  }
  return scan.end();
}

/** Bytes of the file between two checkpoints of ours are far less. */
const MOST_UNCHECKED = 32 * 1024 * 1024;

class Scan {
  private readonly hash: Hash = createHash('sha256');
  private head: CastHead | null = null;
  private last: Omit<ScannedCast, 'fileSize' | 'sha256'> | null = null;
  private size = 0;
  private offset = 0;
  /** Of the last output, which its exact bytes replace. */
  private outputLength = 0;
  private at = 0;
  private stream: CastStream = 'out';
  private cols = 0;
  private rows = 0;
  private readonly isFollowed: boolean;
  /** Since the last checkpoint, when somebody wants them. */
  private readonly unchecked: CastEvent[] = [];

  constructor(isFollowed: boolean) {
    this.isFollowed = isFollowed;
  }

  /** Gives what is stored by now and was not given before, at a checkpoint; else null. */
  take(line: Buffer): readonly CastEvent[] | null {
    this.size += line.length;
    if (this.head === null) this.takeHead(line);
    else return this.takeEvent(line) ? this.unchecked.splice(0) : null;
    return null;
  }

  end(): ScannedCast {
    if (this.last === null) throw new Fault('transcript_invalid', 'the recording has no checkpoint');
    return { ...this.last, fileSize: this.size, sha256: this.hash.digest('hex') };
  }

  private takeHead(line: Buffer): void {
    this.head = parseHead(line.toString('utf8'));
    this.cols = this.head.width;
    this.rows = this.head.height;
    this.hash.update(line);
  }

  /** True for a checkpoint. */
  private takeEvent(line: Buffer): boolean {
    // A line that is whole was written as a whole; only the last one may be torn.
    const event = isWhole(line) ? parseEvent(line.toString('utf8')) : null;
    if (event === null && isWhole(line)) throw damaged(this.size);
    if (event?.code === 'h') this.check(event.data);
    else if (event !== null) this.follow(event);
    this.at = Math.max(this.at, event?.at ?? 0);
    this.hash.update(line);
    if (event?.code === 'h') this.keep();
    return event?.code === 'h';
  }

  private check({ offset, sha256 }: Checkpoint): void {
    if (offset !== this.offset || sha256 !== this.hash.copy().digest('hex')) throw damaged(this.size);
  }

  private follow(event: CastEvent): void {
    if (this.isFollowed) this.remember(event);
    if (event.code === 'o') {
      this.outputLength = Buffer.byteLength(event.data);
      this.offset += this.outputLength;
    } else if (event.code === 'b') {
      this.offset += Buffer.byteLength(event.data, 'base64') - this.outputLength;
    } else if (event.code === 's') {
      this.stream = event.data;
    } else if (event.code === 'r') {
      const size = parseSize(event.data);
      this.cols = size?.cols ?? this.cols;
      this.rows = size?.rows ?? this.rows;
    }
  }

  private remember(event: CastEvent): void {
    if (this.size - (this.last?.size ?? 0) > MOST_UNCHECKED) throw damaged(this.size);
    this.unchecked.push(event);
  }

  private keep(): void {
    const { head, offset, at, stream, cols, rows, size } = this;
    if (head !== null) this.last = { head, offset, at, stream, cols, rows, size, hash: this.hash.copy() };
  }
}

/** @param size bytes of the file up to the end of the line that does not fit */
const damaged = (size: number): Fault =>
  new Fault('transcript_invalid', `the recording was changed or damaged before byte ${size}`, {
    hint: 'it is left as it is; keep the file if that has to be looked into',
  });
