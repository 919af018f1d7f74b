/** Users and groups of macOS, read from the property lists that `dscl` prints of the local directory. */
import type { Command } from '../command.js';
import { parseUnixId, type UnixGroup, type UnixUser } from './unix-accounts.js';

const readAll = (path: string, ...keys: readonly string[]): Command => ({
  argv: ['dscl', '-plist', '.', '-readall', path, 'RecordName', ...keys],
});

/** Reads only the needed attributes, because a record can hold pictures. */
export const READ_MAC_USERS = readAll('/Users', 'UniqueID', 'PrimaryGroupID', 'NFSHomeDirectory', 'UserShell');
export const READ_MAC_GROUPS = readAll('/Groups', 'PrimaryGroupID', 'GroupMembership');

/** Returns null for other text than `dscl` prints. */
export function parseMacUsers(text: string): readonly UnixUser[] | null {
  return (
    recordsOf(text)?.map((record) => ({
      name: record.first('RecordName') ?? '',
      uid: numberOf(record.first('UniqueID')),
      gid: numberOf(record.first('PrimaryGroupID')),
      home: record.first('NFSHomeDirectory'),
      shell: record.first('UserShell'),
      isLocal: true,
    })) ?? null
  );
}

export function parseMacGroups(text: string): readonly UnixGroup[] | null {
  return (
    recordsOf(text)?.map((record) => ({
      name: record.first('RecordName') ?? '',
      gid: numberOf(record.first('PrimaryGroupID')),
      members: record.all('GroupMembership'),
      isLocal: true,
    })) ?? null
  );
}

interface MacRecord {
  /** Returns all values of an attribute; the first record name is the account's own, others are aliases. */
  all(attribute: string): readonly string[];
  first(attribute: string): string | null;
}

function recordsOf(text: string): readonly MacRecord[] | null {
  const list = parsePlist(text);
  if (!Array.isArray(list)) return null;
  return list.flatMap((record) => {
    if (!(record instanceof Map)) return [];
    const all = (attribute: string): readonly string[] => {
      const values: unknown = record.get(`dsAttrTypeStandard:${attribute}`);
      return Array.isArray(values) ? values.filter((value) => typeof value === 'string') : [];
    };
    return [{ all, first: (attribute: string) => all(attribute)[0] ?? null }];
  });
}

/** Parses an ID; macOS writes that of `nobody` as -2. */
function numberOf(digits: string | null): number | null {
  if (digits === null) return null;
  const id = parseUnixId(digits.startsWith('-') ? String(2 ** 32 - Number(digits.slice(1))) : digits);
  return id ?? null;
}

/** A value of an XML property list. Numbers, dates and data are text; booleans are the words `true` and `false`. */
type PlistValue = string | readonly PlistValue[] | ReadonlyMap<string, PlistValue>;

const MAX_DEPTH = 32;
/** A start, end or empty tag, with the text after it. */
const PIECE = /<(\/?)([a-z]+)[^<>]*?(\/?)>([^<]*)/gy;
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

interface Piece {
  readonly name: string;
  readonly is: 'start' | 'end' | 'empty';
  readonly text: string;
}

/** Returns the value of a property list; null for invalid text. */
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

/** Returns the tags up to the first invalid piece. */
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
