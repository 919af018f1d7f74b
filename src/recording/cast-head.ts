/** The first line of a recording (asciicast v2): the size, when it began, and what of. */
import * as Type from 'typebox';
import { Fault } from '../kernel/fault.js';
import { nullable, optional } from '../kernel/schema.js';
import { validator } from '../kernel/validator.js';

/** What a recording of ours knows of its session. */
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

/** Members that others write beside these are let through. */
const HeadSchema = Type.Object({
  version: Type.Literal(2),
  width: Type.Integer({ minimum: 0, maximum: 65_535 }),
  height: Type.Integer({ minimum: 0, maximum: 65_535 }),
  /** Unix seconds. */
  timestamp: optional(Type.Number()),
  env: optional(Type.Record(Type.String(), nullable(Type.String()))),
  /** Absent in files that others made. */
  orch: optional(SessionSchema),
});
export type CastHead = Type.Static<typeof HeadSchema>;

const check = validator(HeadSchema);

export interface NewCast {
  readonly cols: number;
  readonly rows: number;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly term: string;
  readonly session: CastSession;
}

/** The line, with its end. Of the environment only TERM and SHELL are told. */
export function headLine({ cols, rows, openedAt, term, session }: NewCast): string {
  const env = { TERM: term, ...(session.shell === null ? {} : { SHELL: session.shell }) };
  const timestamp = Math.floor(openedAt / 1000);
  const head: CastHead = { version: 2, width: cols, height: rows, timestamp, env, orch: session };
  return `${JSON.stringify(head)}\n`;
}

/** @throws Fault `transcript_invalid` */
export function parseHead(line: string): CastHead {
  try {
    const head: unknown = JSON.parse(line);
    if (check.check(head)) return head;
  } catch {}
  throw new Fault('transcript_invalid', 'this is no recording: its first line is no header of asciicast v2', {
    hint: 'only files of asciicast version 2 can be read, plain or gzipped',
  });
}
