/** Reads back what a recording holds of its session, for a relay that goes on with it. */

import { Backlog, type Piece } from '../../../src/terminal/backlog.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import type { CastStream } from '../../../src/terminal/recording/cast-format.js';
import { bytesOf, openCastFile, readCast } from '../../../src/terminal/recording/read-cast.js';
import { type ScannedCast, scanCast } from '../../../src/terminal/recording/scan-cast.js';

type Replayed = { readonly output: Buffer } | { readonly cols: number; readonly rows: number };

/**
 * Output and sizes in order.
 * @param size of the file up to where it counts, in bytes
 */
export async function* replayRecording(path: string, size: number): AsyncGenerator<Replayed> {
  const { items } = await readCast(await openCastFile(path, { length: size }));
  for await (const item of items) {
    if (item.kind === 'output') yield { output: bytesOf(item) };
    else if (item.kind === 'size') yield { cols: item.cols, rows: item.rows };
  }
}

export interface ScannedRecording {
  readonly scanned: ScannedCast;
  /** The newest output that counts, as much as is kept in a flood. */
  readonly tail: readonly Piece[];
}

/** Reads the file once. @throws Fault `transcript_invalid`, as `scanCast` does */
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
      // The exact bytes stand right behind the text that they replace.
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
    // Memory of its own: more than that would be handed to the other thread with it.
    yield { ...piece, bytes: Buffer.from(Uint8Array.from(piece.bytes).buffer) };
    at += piece.bytes.length;
  }
}
