/** Reads output back from a recording: while it is written, and when a session continues after a restart. */
import { closeSync, openSync, readSync } from 'node:fs';
import { Backlog, type Piece } from '../../../src/terminal/backlog.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import { type CastStream, parseEvent } from '../../../src/terminal/recording/cast-format.js';
import { bytesOf, openCastFile, readCast } from '../../../src/terminal/recording/read-cast.js';
import { type ScannedCast, scanCast } from '../../../src/terminal/recording/scan-cast.js';

interface RecordedOutputOptions {
  readonly path: string;
  /** Position in the file at which a line starts. */
  readonly position: number;
  /** Offset of the first output after the position. */
  readonly offset: number;
}

/** Bytes per read. */
const PORTION = 128 * 1024;
/** Replacement for invalid UTF-8; the next line may have the exact bytes. */
const REPLACEMENT = '\ufffd';

/** Reads the output of an active recording. Keeps the file open, so that it survives renames. */
export class RecordedOutput {
  private readonly descriptor: number;
  private position: number;
  private rest: Buffer = Buffer.alloc(0);
  /** Offset of the next returned output. */
  offset: number;

  /** Opens the file. Throws the system error. */
  constructor({ path, position, offset }: RecordedOutputOptions) {
    this.descriptor = openSync(path, 'r');
    this.position = position;
    this.offset = offset;
  }

  /** Returns the next output in order; empty when the file has no more yet. */
  next(): readonly Buffer[] {
    const chunk = Buffer.allocUnsafe(PORTION);
    const count = readSync(this.descriptor, chunk, 0, PORTION, this.position);
    if (count === 0) return [];
    this.position += count;
    const text = Buffer.concat([this.rest, chunk.subarray(0, count)]);
    const outputs: Buffer[] = [];
    let from = 0;
    let doubtful: number | null = null;
    for (let end = text.indexOf(10); end >= 0; end = text.indexOf(10, from)) {
      const event = parseEvent(text.toString('utf8', from, end));
      if (event?.code === 'b' && doubtful !== null) outputs.push(Buffer.from(event.data, 'base64'));
      else if (doubtful !== null) outputs.push(this.textOf(text, doubtful, from));
      doubtful = null;
      if (event?.code === 'o' && event.data.includes(REPLACEMENT)) doubtful = from;
      else if (event?.code === 'o') outputs.push(Buffer.from(event.data, 'utf8'));
      from = end + 1;
    }
    this.rest = text.subarray(doubtful ?? from);
    for (const { length } of outputs) this.offset += length;
    return outputs;
  }

  close(): void {
    closeSync(this.descriptor);
  }

  private textOf(text: Buffer, from: number, to: number): Buffer {
    const event = parseEvent(text.toString('utf8', from, to - 1));
    return Buffer.from(event?.code === 'o' ? event.data : '', 'utf8');
  }
}

type Replayed = { readonly output: Buffer } | { readonly cols: number; readonly rows: number };

/**
 * Yields output and sizes in order.
 * @param size valid bytes of the file
 */
export async function* replayRecording(path: string, size: number): AsyncGenerator<Replayed> {
  const { items } = await readCast(await openCastFile(path, { length: size }));
  for await (const item of items) {
    if (item.kind === 'output') yield { output: bytesOf(item) };
    else if (item.kind === 'size') yield { cols: item.cols, rows: item.rows };
  }
}

interface ScannedRecording {
  readonly scanned: ScannedCast;
  /** Newest valid output, as much as is kept in a flood. */
  readonly tail: readonly Piece[];
}

/** Scans a recording in one pass. Throws Fault `transcript_invalid` like `scanCast`. */
export async function scanRecording(path: string): Promise<ScannedRecording> {
  const kept = new Backlog();
  let stream: CastStream = 'out';
  const keep = (bytes: Buffer) => {
    kept.append(bytes, stream);
    kept.dropBefore(kept.end - TERMINAL_LIMITS.floodBacklog);
  };
  const scanned = await scanCast(await openCastFile(path), (events) => {
    for (const [index, event] of events.entries()) {
      if (event.code === 's') stream = event.data;
      // Output before it cannot be continued.
      else if (event.code === 'd') kept.restart(kept.end + event.data.bytes);
      // The exact bytes follow the text that they replace.
      else if (event.code === 'b') keep(Buffer.from(event.data, 'base64'));
      else if (event.code === 'o' && events[index + 1]?.code !== 'b') keep(Buffer.from(event.data, 'utf8'));
    }
  });
  return { scanned, tail: [...piecesOf(kept)] };
}

function* piecesOf(kept: Backlog): Generator<Piece> {
  for (let at = kept.start; at < kept.end; ) {
    const piece = kept.read(at, kept.length);
    if (piece === null) return;
    // A copy, because the whole underlying buffer would be transferred to the other thread.
    yield { ...piece, bytes: Buffer.from(Uint8Array.from(piece.bytes).buffer) };
    at += piece.bytes.length;
  }
}
