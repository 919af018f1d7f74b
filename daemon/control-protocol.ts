/** The protocol of `control.sock`: one request and one answer per connection, each a line of JSON. */
import * as Type from 'typebox';
import { closed } from '../src/kernel/schema.js';

export const CONTROL_VERBS = ['rotate-secrets-key', 'backup', 'clock'] as const;
export type ControlVerb = (typeof CONTROL_VERBS)[number];

export const ControlRequestSchema = Type.Union([
  closed({ verb: Type.Literal('rotate-secrets-key') }),
  closed({
    verb: Type.Literal('clock'),
    /** True accepts the wall clock as correct; false only reports on it. */
    accept: Type.Boolean(),
  }),
  closed({
    verb: Type.Literal('backup'),
    /** Absolute path on the orchestrator's host. */
    file: Type.String({ minLength: 1, maxLength: 4096 }),
    /** True overwrites an existing file. */
    force: Type.Boolean(),
    /** True sends the backup over this connection to the command, which writes the file itself. */
    stream: Type.Optional(Type.Boolean()),
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

/** Maximum length of a request or an answer in characters. */
export const MAX_LINE = 64 * 1024;

/** File name within the data directory, which only its owner may enter. */
export const CONTROL_SOCKET = 'control.sock';
