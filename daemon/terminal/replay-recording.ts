/** Reads back what a recording holds of its session, for a relay that goes on with it. */
import { openCastFile } from '../../src/recording/open-cast-file.js';
import { bytesOf, readCast } from '../../src/recording/read-cast.js';
import { Backlog, type Piece } from '../../src/terminal/backlog.js';
import { TERMINAL_LIMITS } from '../../src/terminal/limits.js';

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

/** The newest output, as much as is kept in a flood. */
export async function tailOf(path: string, { size }: { readonly size: number }): Promise<readonly Piece[]> {
  const { items } = await readCast(await openCastFile(path, { length: size }));
  const kept = new Backlog();
  for await (const item of items) {
    if (item.kind !== 'output') continue;
    kept.append(bytesOf(item), item.stream);
    kept.dropBefore(kept.end - TERMINAL_LIMITS.floodBacklog);
  }
  return [...piecesOf(kept)];
}

function* piecesOf(kept: Backlog): Generator<Piece> {
  for (let at = kept.start; at < kept.end; ) {
    const piece = kept.read(at, kept.length);
    if (piece === null) return;
    yield piece;
    at += piece.bytes.length;
  }
}
