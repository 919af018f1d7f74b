/**
 * The lines of a recording, which is an asciicast v2 file: a header, then one event a line. Output `o`, size `r`, mark `m` and
 * exit `x` are standard. Four codes are our own, and other players skip them:
 *   `b`  exact bytes in base64 of the output right before it, whose text contains replacement characters
 *   `s`  the stream of a command that the following output belongs to
 *   `d`  output that is not kept: the number of its bytes and their SHA-256
 *   `h`  checkpoint: the output offset so far, and the SHA-256 of the file before this line
 */
import * as Type from 'typebox';
import { Fault } from '../../kernel/fault.js';
import { nullable, optional } from '../../kernel/schema.js';
import { validator } from '../../kernel/validator.js';

/** The session that a recording of `orch` belongs to. */
const SessionSchema = Type.Object({
  session: Type.String(),
  node: Type.String(),
  node_name: nullable(Type.String()),
  operator: Type.String(),
  /** Null for a command. */
  shell: nullable(Type.String()),
  /** Null for a shell. */
  command: nullable(Type.Array(Type.String())),
});
export type CastSession = Type.Static<typeof SessionSchema>;

/** Accepts additional members, which other recorders write. */
const HeadSchema = Type.Object({
  version: Type.Literal(2),
  width: Type.Integer({ minimum: 0, maximum: 65_535 }),
  height: Type.Integer({ minimum: 0, maximum: 65_535 }),
  /** Unix seconds. */
  timestamp: optional(Type.Number()),
  env: optional(Type.Record(Type.String(), nullable(Type.String()))),
  /** Absent in files of other recorders. */
  orch: optional(SessionSchema),
});
export type CastHead = Type.Static<typeof HeadSchema>;

const checkHead = validator(HeadSchema);

export interface NewCast {
  readonly cols: number;
  readonly rows: number;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly term: string;
  readonly session: CastSession;
}

/** Returns the header line with its line feed. It contains no environment variables except TERM and SHELL. */
export function headLine({ cols, rows, openedAt, term, session }: NewCast): string {
  const env = { TERM: term, ...(session.shell === null ? {} : { SHELL: session.shell }) };
  const timestamp = Math.floor(openedAt / 1000);
  const head: CastHead = { version: 2, width: cols, height: rows, timestamp, env, orch: session };
  return `${JSON.stringify(head)}\n`;
}

/** Parses the header line. Throws Fault `transcript_invalid`. */
export function parseHead(line: string): CastHead {
  try {
    const head: unknown = JSON.parse(line);
    if (checkHead.check(head)) return head;
  } catch {}
  throw new Fault('transcript_invalid', 'this is not a recording: its first line is not an asciicast v2 header', {
    hint: 'use an asciicast version 2 file, plain or gzipped',
  });
}

/** Stream of a program that output belongs to. A terminal has only `out`. */
export type CastStream = 'out' | 'err';

/** Data of an `h` event. */
export interface Checkpoint {
  readonly offset: number;
  readonly sha256: string;
}

/** Data of a `d` event. */
export interface OmittedOutput {
  readonly bytes: number;
  readonly sha256: string;
}

export type CastEvent =
  /** `at` is the time in seconds since the start. */
  | { readonly at: number; readonly code: 'o' | 'b' | 'r' | 'm' | 'x'; readonly data: string }
  | { readonly at: number; readonly code: 's'; readonly data: CastStream }
  | { readonly at: number; readonly code: 'd'; readonly data: OmittedOutput }
  | { readonly at: number; readonly code: 'h'; readonly data: Checkpoint }
  /** An event of another recorder or a later version; readers skip it. */
  | { readonly at: number; readonly code: 'other' };

const TextCode = Type.Enum(['o', 'b', 'r', 'm', 'x']);
const Time = Type.Number({ minimum: 0 });
const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
const EventSchema = Type.Union([
  Type.Tuple([Time, TextCode, Type.String()]),
  Type.Tuple([Time, Type.Literal('s'), Type.Enum(['out', 'err'])]),
  Type.Tuple([Time, Type.Literal('d'), Type.Object({ bytes: Type.Integer({ minimum: 1 }), sha256: Sha256 })]),
  Type.Tuple([Time, Type.Literal('h'), Type.Object({ offset: Type.Integer({ minimum: 0 }), sha256: Sha256 })]),
]);
const check = validator(EventSchema);

/** Parses the line of an event. Returns null when the line is not an event. */
export function parseEvent(line: string): CastEvent | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (!Array.isArray(value) || typeof value[0] !== 'number' || typeof value[1] !== 'string') return null;
  const [at, code] = value;
  if (!/^[obrmxsdh]$/.test(code)) return { at, code: 'other' };
  // Most lines are output, so they skip the schema check.
  if (code === 'o' && value.length === 3 && typeof value[2] === 'string' && at >= 0)
    return { at, code, data: value[2] };
  return check.check(value) ? ({ at, code, data: value[2] } as CastEvent) : null;
}

/** Characters that JSON allows unescaped, but that a terminal may obey or a program may read as a line end. */
const UNQUOTED = /[\x7f-\x9f\u2028\u2029]/g;

/**
 * Returns the line of an event with its line feed. The line is harmless when a terminal shows it.
 * @param isPlain the data is ASCII without DEL, so it needs no search for unsafe characters
 */
export function eventLine(at: number, code: string, data: unknown, isPlain = false): string {
  const json = JSON.stringify(data);
  if (isPlain) return `[${at},"${code}",${json}]\n`;
  const text = UNQUOTED.test(json) ? json.replace(UNQUOTED, escapeUnit) : json;
  UNQUOTED.lastIndex = 0;
  return `[${at},"${code}",${text}]\n`;
}

const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Parses the data of an `r` event, such as `80x24`. Returns null when it is not a size. */
export function parseSize(data: string): { readonly cols: number; readonly rows: number } | null {
  const [, cols, rows] = /^(\d{1,5})x(\d{1,5})$/.exec(data) ?? [];
  return cols === undefined || rows === undefined ? null : { cols: Number(cols), rows: Number(rows) };
}
