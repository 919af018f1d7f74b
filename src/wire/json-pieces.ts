/** JSON of large values piece by piece, because the text of a megabyte costs the event loop ten milliseconds and more. */
import { roughSize } from './parts.js';

/** Minimum characters of each piece but the last; a piece is at most about twice as long, without what escapes add. */
export const PIECE_CHARACTERS = 64 * 1024;

/** Yields the JSON of a value in pieces. Its members must not change before the end. */
export function* jsonPieces(value: unknown): Generator<string, void, undefined> {
  let piece = '';
  for (const text of textsOf(value)) {
    piece += text;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

function* textsOf(value: unknown): Generator<string, void, undefined> {
  if (typeof value === 'string') yield* textsOfString(value);
  else if (typeof value !== 'object' || value === null || roughSize(value) <= PIECE_CHARACTERS) {
    yield JSON.stringify(value) ?? 'null';
  } else if (Array.isArray(value)) {
    yield '[';
    for (const [index, item] of value.entries()) {
      if (index > 0) yield ',';
      yield* textsOf(item);
    }
    yield ']';
  } else {
    let before = '{';
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue;
      yield `${before}${JSON.stringify(name)}:`;
      before = ',';
      yield* textsOf(member);
    }
    yield before === '{' ? '{}' : '}';
  }
}

function* textsOfString(value: string): Generator<string, void, undefined> {
  yield '"';
  for (let from = 0; from < value.length; ) {
    const end = from + PIECE_CHARACTERS;
    // The halves of a character must stay together: JSON writes a half as an escape.
    const to = isFirstHalf(value.charCodeAt(end - 1)) ? end + 1 : end;
    yield JSON.stringify(value.slice(from, to)).slice(1, -1);
    from = to;
  }
  yield '"';
}

const isFirstHalf = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;
