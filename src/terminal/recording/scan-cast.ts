/**
 * Verifies a recording against its checkpoints. Each checkpoint holds the output offset and the hash of the file before it. Data
 * after the last checkpoint was never acknowledged as stored, and a crash may have cut it.
 */
import { createHash, type Hash } from 'node:crypto';
import { Fault } from '../../kernel/fault.js';
import type { CastPosition } from './cast-encoder.js';
import {
  type CastEvent,
  type CastHead,
  type CastStream,
  type Checkpoint,
  parseEvent,
  parseHead,
  parseSize,
} from './cast-format.js';
import { castLines, isWhole } from './read-cast.js';

/** State of a recording at the end of its last checkpoint. */
export interface ScannedCast extends CastPosition {
  readonly head: CastHead;
  readonly cols: number;
  readonly rows: number;
  /** Size of the file up to the end of the last checkpoint, in bytes. */
  readonly size: number;
  /** Size of the whole file in bytes. */
  readonly fileSize: number;
  /** Hex SHA-256 of the whole file. */
  readonly sha256: string;
}

/** Receives the events between two checkpoints, without these, once the second one is verified. */
export type OnStored = (events: readonly CastEvent[]) => Promise<void> | void;

/**
 * Scans a recording and returns its state at the last checkpoint.
 * @param chunks content of the plain file
 * @param onStored receives all verified events in order; the scan awaits it
 * @throws Fault `transcript_invalid` when a checkpoint does not match, a line before it is not an event, or no checkpoint exists
 */
export async function scanCast(chunks: AsyncIterable<Uint8Array>, onStored?: OnStored): Promise<ScannedCast> {
  const scan = new Scan(onStored !== undefined);
  for await (const line of castLines(chunks)) {
    const stored = scan.take(line);
    if (stored !== null && stored.length > 0) await onStored?.(stored);
  }
  return scan.end();
}

/** Maximum distance of two checkpoints in bytes. The recorder writes them far more often. */
const MAX_UNCHECKED_BYTES = 32 * 1024 * 1024;

class Scan {
  private readonly hash: Hash = createHash('sha256');
  private head: CastHead | null = null;
  private last: Omit<ScannedCast, 'fileSize' | 'sha256'> | null = null;
  private size = 0;
  private offset = 0;
  /** Length of the last output in bytes, until its exact bytes replace it. */
  private outputLength = 0;
  private at = 0;
  private stream: CastStream = 'out';
  private readonly omitted = new Set<CastStream>();
  private cols = 0;
  private rows = 0;
  private readonly isFollowed: boolean;
  /** Events since the last checkpoint, if `isFollowed`. */
  private readonly unchecked: CastEvent[] = [];

  constructor(isFollowed: boolean) {
    this.isFollowed = isFollowed;
  }

  /** Takes a line. Returns the events since the checkpoint before when the line is a checkpoint, else null. */
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

  /** Takes the line of an event. Returns true for a checkpoint. */
  private takeEvent(line: Buffer): boolean {
    // Only the last line may be incomplete.
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
    } else if (event.code === 'd') {
      this.offset += event.data.bytes;
      this.omitted.add(this.stream);
    } else if (event.code === 's') {
      this.stream = event.data;
    } else if (event.code === 'r') {
      const size = parseSize(event.data);
      this.cols = size?.cols ?? this.cols;
      this.rows = size?.rows ?? this.rows;
    }
  }

  private remember(event: CastEvent): void {
    if (this.size - (this.last?.size ?? 0) > MAX_UNCHECKED_BYTES) throw damaged(this.size);
    this.unchecked.push(event);
  }

  private keep(): void {
    const { head, offset, at, stream, cols, rows, size } = this;
    const omitted = new Set(this.omitted);
    if (head !== null) this.last = { head, offset, at, stream, omitted, cols, rows, size, hash: this.hash.copy() };
  }
}

/** @param size size of the file in bytes up to the end of the line that does not match */
const damaged = (size: number): Fault =>
  new Fault('transcript_invalid', `the recording was changed or damaged before byte ${size}`, {
    hint: 'orch leaves the file as it is; keep it to investigate the damage',
  });
