/** Schema builders for all rooms, and shapes that the agent link, the store and the API share. */
import * as Type from 'typebox';

/** Accepts the value or null. */
export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** Makes a member optional; null means the same as an absent member. */
export const optional = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));

/** Schema keyword of members that null clears, for code that reads the schema as data. */
export const NULL_CLEARS = 'x-null-clears';

/** Makes a member of a change optional: an absent member keeps the stored value, null clears it. */
export const clearable = <T extends Type.TSchema>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()], { [NULL_CLEARS]: true }));

/** An object that refuses unknown members. */
export const closed = <P extends Type.TProperties>(properties: P, options: Type.TObjectOptions = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options });

const bytes = (description: string) => nullable(Type.Integer({ minimum: 0, description }));

/** One measurement of a machine. A value that the machine does not report is null. */
export const MetricsSampleSchema = closed({
  collected_at: Type.Integer({ minimum: 0, description: 'Unix time in seconds, by the clock of the agent' }),
  cpu_usage: nullable(
    Type.Number({ minimum: 0, maximum: 100, description: 'Percent of all processors since the sample before' }),
  ),
  memory_used: bytes('Bytes that are not available to programs'),
  memory_total: bytes('Bytes'),
  disk_used: bytes('Bytes of the file system that holds the system'),
  disk_total: bytes('Bytes'),
  uptime: nullable(Type.Integer({ minimum: 0, description: 'Seconds since the machine was started' })),
});

export type MetricsSample = Type.Static<typeof MetricsSampleSchema>;

const LIMITS = { entries: 64, length: 1_024 } as const;
const ENTRY = '^[A-Za-z_][A-Za-z0-9_]{0,63}=[^\\u0000-\\u001f\\u007f-\\u009f]*$';

/** Environment variables that a client sends to a terminal session. The agent decides which of them it accepts. */
export const EnvironmentSchema = Type.Array(Type.String({ maxLength: LIMITS.length, pattern: ENTRY }), {
  maxItems: LIMITS.entries,
  description: 'NAME=value, as far as the agent accepts it (remote_terminal.accept_env)',
});

const SENT = /^(?:LANG|LC_[A-Z]+|COLORTERM)$/;
const ALLOWED = new RegExp(ENTRY, 'u');

/** Returns the variables that a client sends from its own environment: language and terminal colours. */
export const sentEnvironment = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.entries(env)
    .filter(([name, value]) => SENT.test(name) && value !== undefined && value !== '')
    .map(([name, value]) => `${name}=${value}`)
    .filter((entry) => entry.length <= LIMITS.length && ALLOWED.test(entry))
    .slice(0, LIMITS.entries);
