/** What is said over `control.sock`: one request and one answer, each a line of JSON. */
import * as Type from 'typebox';
import { closed } from '../src/kernel/schema.js';

export const CONTROL_VERBS = ['rotate-secrets-key'] as const;
export type ControlVerb = (typeof CONTROL_VERBS)[number];

export const ControlRequestSchema = closed({ verb: Type.Enum(CONTROL_VERBS) });

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
