/** Checks what people send as secrets. No message holds a value. */
import { MAX_SECRET_BYTES } from '../../src/contract/secrets.js';
import { Fault } from '../../src/kernel/fault.js';
import { isSecretName } from '../../src/kernel/ids.js';
import { parseTimestamp } from '../http/parse-timestamp.js';

/** Throws `invalid_name`. */
export function checkName(name: string): void {
  if (isSecretName(name)) return;
  throw new Fault('invalid_name', `${JSON.stringify(name.slice(0, 200))} cannot be the name of a secret`, {
    hint: 'use 1 to 128 of A-Z a-z 0-9 _ . - and begin with a letter or _',
    errors: [{ path: '/name', message: 'must be 1 to 128 of A-Z a-z 0-9 _ . - and begin with a letter or _' }],
  });
}

/** Throws `invalid_body`. */
export function checkValue(value: string): void {
  const bytes = Buffer.byteLength(value, 'utf8');
  if (value === '')
    throw invalid(
      '/value',
      'is empty: a variable that is not set looks like that, and there is nothing in it to keep secret',
    );
  if (bytes > MAX_SECRET_BYTES) throw invalid('/value', `has ${bytes} bytes, and ${MAX_SECRET_BYTES} are the most`);
  if (/\p{Surrogate}/u.test(value)) throw invalid('/value', 'is not valid Unicode text');
}

/** Unix milliseconds. Throws `invalid_body`. */
export function readExpiry(text: string | null): number | null {
  if (text === null) return null;
  const time = parseTimestamp(text);
  if (time === null) throw invalid('/expires_at', 'is not an RFC 3339 timestamp such as 2030-01-31T12:00:00Z');
  return time;
}

const invalid = (path: string, message: string): Fault =>
  new Fault('invalid_body', `the body is not valid: ${path} ${message}`, { errors: [{ path, message }] });
