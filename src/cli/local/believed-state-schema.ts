/** The file that holds the believed state of `--local`. */
import * as Type from 'typebox';
import { closed, nullable } from '../../kernel/schema.js';
import { RemovalSchema, SpanSchema } from '../../resources/desired.js';
import { ListenerSchema } from '../../resources/listeners.js';

const AppliedSchema = closed({
  ...RemovalSchema.properties,
  /** Spans of masked secrets, by path in the body. */
  taint: Type.Optional(Type.Record(Type.String(), Type.Array(SpanSchema))),
  operation_id: Type.String(),
  /** Resources that react when it goes. */
  listeners: Type.Optional(Type.Array(ListenerSchema)),
});
export type Applied = Type.Static<typeof AppliedSchema>;

export const BelievedStateSchema = closed({
  version: Type.Literal(1),
  /** Hex key of the hash that tells secret values apart. */
  mask_key: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  /** ID of the last apply that changed the state; null if none has. */
  operation_id: nullable(Type.String()),
  /** Resources in the order of application. */
  applied: Type.Array(AppliedSchema),
});
export type BelievedState = Type.Static<typeof BelievedStateSchema>;
