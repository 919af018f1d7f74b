/** What is said over `control.sock`: one request and one answer, each a line of JSON. */
import * as Type from 'typebox';
import { closed } from '../src/kernel/schema.js';

export const CONTROL_VERBS = ['rotate-secrets-key', 'backup', 'clock'] as const;
export type ControlVerb = (typeof CONTROL_VERBS)[number];

export const ControlRequestSchema = Type.Union([
  closed({ verb: Type.Literal('rotate-secrets-key') }),
  closed({
    verb: Type.Literal('clock'),
    /** Take the clock as right, instead of only telling of it. */
    accept: Type.Boolean(),
  }),
  closed({
    verb: Type.Literal('backup'),
    /** An absolute path, as the orchestrator sees it. */
    file: Type.String({ minLength: 1, maxLength: 4096 }),
    /** Take the place of a file of that name. */
    force: Type.Boolean(),
  }),
]);
export type ControlRequest = Type.Static<typeof ControlRequestSchema>;
export type ControlRequestOf<V extends ControlVerb> = Extract<ControlRequest, { verb: V }>;

export const ControlAnswerSchema = Type.Union([
  closed({ ok: Type.Literal(true), result: Type.Record(Type.String(), Type.Unknown()) }),
  closed({
    ok: Type.Literal(false),
    error: closed({
      code: Type.String(),
      message: Type.String(),
      hint: Type.Union([Type.String(), Type.Null()]),
    }),
  }),
]);
export type ControlAnswer = Type.Static<typeof ControlAnswerSchema>;

/** Longest line of either side in characters. */
export const MAX_LINE = 64 * 1024;

/** In the data directory, which only its owner may enter. */
export const CONTROL_SOCKET = 'control.sock';
