/** Reads property lists in XML, as tools of macOS write them. */

/** Numbers, dates and data stay text; `true` and `false` are the words. */
export type PlistValue = string | readonly PlistValue[] | ReadonlyMap<string, PlistValue>;

const MAX_DEPTH = 32;
/** An element that begins, ends or is empty, with the text that follows it. */
const PIECE = /<(\/?)([a-z]+)[^<>]*?(\/?)>([^<]*)/gy;
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

interface Piece {
  readonly name: string;
  readonly is: 'start' | 'end' | 'empty';
  readonly text: string;
}

/** The value of a property list; null for what is none. */
export function parsePlist(text: string): PlistValue | null {
  const start = text.indexOf('<plist');
  const reader = new Reader(start < 0 ? [] : piecesOf(text.slice(start)));
  return reader.take('plist', 'start') ? reader.value(0) : null;
}

class Reader {
  private readonly pieces: readonly Piece[];
  private at = 0;

  constructor(pieces: readonly Piece[]) {
    this.pieces = pieces;
  }

  take(name: string, is: Piece['is']): boolean {
    const piece = this.pieces[this.at];
    if (piece?.name !== name || piece.is !== is) return false;
    this.at += 1;
    return true;
  }

  value(depth: number): PlistValue | null {
    const piece = this.pieces[this.at];
    if (piece === undefined || piece.is === 'end' || depth > MAX_DEPTH) return null;
    this.at += 1;
    const { name } = piece;
    if (piece.is === 'empty') return name === 'array' ? [] : name === 'dict' ? new Map() : emptyOf(name);
    if (name === 'array') return this.list(depth);
    if (name === 'dict') return this.members(depth);
    return this.take(name, 'end') ? unescaped(piece.text) : null;
  }

  private list(depth: number): PlistValue | null {
    const values: PlistValue[] = [];
    while (!this.take('array', 'end')) {
      const value = this.value(depth + 1);
      if (value === null) return null;
      values.push(value);
    }
    return values;
  }

  private members(depth: number): PlistValue | null {
    const members = new Map<string, PlistValue>();
    while (!this.take('dict', 'end')) {
      const key = this.pieces[this.at]?.name === 'key' ? this.value(depth + 1) : null;
      const value = key === null ? null : this.value(depth + 1);
      if (typeof key !== 'string' || value === null) return null;
      members.set(key, value);
    }
    return members;
  }
}

const emptyOf = (name: string): string => (name === 'true' || name === 'false' ? name : '');

/** Ends at the first thing that no property list holds. */
function piecesOf(text: string): readonly Piece[] {
  return [...text.matchAll(PIECE)].map(([, slash, name = '', end, following = '']) => ({
    name,
    is: slash ? 'end' : end ? 'empty' : 'start',
    text: following,
  }));
}

const unescaped = (text: string): string =>
  text.replace(/&(?:#([0-9]{1,7})|#x([0-9a-fA-F]{1,6})|([a-z]+));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    const code = Number.parseInt(decimal ?? hex, decimal === undefined ? 16 : 10);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
