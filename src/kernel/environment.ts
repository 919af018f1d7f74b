/** Variables that an operator's end passes on to the programs of a session, each as `NAME=value`. */
import * as Type from 'typebox';

const LIMITS = { entries: 64, length: 1_024 } as const;
const ENTRY = '^[A-Za-z_][A-Za-z0-9_]{0,63}=[^\\u0000-\\u001f\\u007f-\\u009f]*$';

/** As it is sent: no control characters, and of bounded size. The agent chooses what it takes. */
export const EnvironmentSchema = Type.Array(Type.String({ maxLength: LIMITS.length, pattern: ENTRY }), {
  maxItems: LIMITS.entries,
  description: 'NAME=value, as far as the agent accepts it (remote_terminal.accept_env)',
});

const SENT = /^(?:LANG|LC_[A-Z]+|COLORTERM)$/;
const ALLOWED = new RegExp(ENTRY, 'u');

/** Returns what a client sends of its own environment: its language and the colours of its terminal. */
export const sentEnvironment = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.entries(env)
    .filter(([name, value]) => SENT.test(name) && value !== undefined && value !== '')
    .map(([name, value]) => `${name}=${value}`)
    .filter((entry) => entry.length <= LIMITS.length && ALLOWED.test(entry))
    .slice(0, LIMITS.entries);
