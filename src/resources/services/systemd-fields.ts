/** Fields that become lines of a unit file, and their rules. */
import * as Type from 'typebox';
import { optional } from '../../kernel/schema.js';
import { problemOfUnixPath } from '../unix/unix-path.js';

/** User and group names that systemd accepts, and numeric IDs. */
const ACCOUNT_PATTERN = '^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,255}$';

/** What the process of a unit runs as and in. */
export const processFields = {
  user: optional(Type.String({ pattern: ACCOUNT_PATTERN, description: 'User that it runs as; root unless given' })),
  group: optional(
    Type.String({ pattern: ACCOUNT_PATTERN, description: "Group that it runs as; the user's unless given" }),
  ),
  working_directory: optional(Type.String({ minLength: 1, description: 'Absolute path of its working directory' })),
  environment: optional(
    Type.Record(Type.String(), Type.String(), {
      additionalProperties: false,
      description: 'Its environment variables',
    }),
  ),
};

const CONTROL = /[\u0000-\u001f\u007f]/;
/** Environment variables may also hold tabs and line breaks. */
const CONTROL_IN_VALUE = /[\u0000-\u0008\u000b-\u001f\u007f]/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const SURROGATE = /\p{Surrogate}/u;

export function problemOfLine(text: string): string | null {
  if (text.trim() === '') return 'must not be blank';
  if (CONTROL.test(text)) return 'must be one line without control characters';
  if (SURROGATE.test(text)) return 'is not valid Unicode text';
  // A final backslash would continue on the next line of the unit file.
  return /(?:^|[^\\])(?:\\\\)*\\$/.test(text) ? 'must not end with a backslash' : null;
}

export function problemOfDirectory(path: string): string | null {
  if (path === '/') return null;
  if (path !== path.trim()) return 'must not begin or end with a blank';
  return problemOfUnixPath(path) ?? problemOfLine(path);
}

export function problemOfVariable(name: string, value: string): string | null {
  if (!VARIABLE.test(name)) return 'a variable name is made of letters, digits and "_" and does not begin with a digit';
  if (CONTROL_IN_VALUE.test(value)) return `${name} holds a control character, which systemd does not take`;
  return SURROGATE.test(value) ? `${name} is not valid Unicode text` : null;
}
