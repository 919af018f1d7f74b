/**
 * One event of a recording, a line each: output `o`, size `r`, mark `m` and exit `x` as asciicast has them, and three codes of
 * our own that other players pass over:
 *   `b`  the exact bytes, in base64, of the output right before it, whose text holds replacement characters
 *   `s`  which of a command's streams the output from here on is of
 *   `h`  so much output is in the file so far, and the SHA-256 of the file before this line
 */
import * as Type from 'typebox';
import { validator } from '../kernel/validator.js';

/** Which of a program's streams wrote it; a terminal has but one. */
export type CastStream = 'out' | 'err';

/** What an `h` event tells. */
export interface Checkpoint {
  readonly offset: number;
  readonly sha256: string;
}

export type CastEvent =
  /** `at` is in seconds from the start. */
  | { readonly at: number; readonly code: 'o' | 'b' | 'r' | 'm' | 'x'; readonly data: string }
  | { readonly at: number; readonly code: 's'; readonly data: CastStream }
  | { readonly at: number; readonly code: 'h'; readonly data: Checkpoint }
  /** Of other recorders and later versions; to be passed over. */
  | { readonly at: number; readonly code: 'other' };

const TextCode = Type.Enum(['o', 'b', 'r', 'm', 'x']);
const Time = Type.Number({ minimum: 0 });
const EventSchema = Type.Union([
  Type.Tuple([Time, TextCode, Type.String()]),
  Type.Tuple([Time, Type.Literal('s'), Type.Enum(['out', 'err'])]),
  Type.Tuple([
    Time,
    Type.Literal('h'),
    Type.Object({
      offset: Type.Integer({ minimum: 0 }),
      sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    }),
  ]),
]);
const check = validator(EventSchema);

/** Null for what is no event. */
export function parseEvent(line: string): CastEvent | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (!Array.isArray(value) || typeof value[0] !== 'number' || typeof value[1] !== 'string') return null;
  const [at, code] = value;
  if (!/^[obrmxsh]$/.test(code)) return { at, code: 'other' };
  // Output is nearly all of a file.
  if (code === 'o' && value.length === 3 && typeof value[2] === 'string' && at >= 0)
    return { at, code, data: value[2] };
  return check.check(value) ? ({ at, code, data: value[2] } as CastEvent) : null;
}

/** What a terminal might obey, or a program take for the end of a line, though JSON lets it stand. */
const UNQUOTED = /[\x7f-\x9f\u2028\u2029]/g;

/**
 * The line of an event, with its end; shown on a terminal it does nothing.
 * @param isPlain the data is ASCII without DEL: nothing has to be looked for in it
 */
export function eventLine(at: number, code: string, data: unknown, isPlain = false): string {
  const json = JSON.stringify(data);
  if (isPlain) return `[${at},"${code}",${json}]\n`;
  const text = UNQUOTED.test(json) ? json.replace(UNQUOTED, escapeUnit) : json;
  UNQUOTED.lastIndex = 0;
  return `[${at},"${code}",${text}]\n`;
}

const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Columns and rows of an `r` event, `80x24`; null for what is none. */
export function parseSize(data: string): { readonly cols: number; readonly rows: number } | null {
  const [, cols, rows] = /^(\d{1,5})x(\d{1,5})$/.exec(data) ?? [];
  return cols === undefined || rows === undefined ? null : { cols: Number(cols), rows: Number(rows) };
}
