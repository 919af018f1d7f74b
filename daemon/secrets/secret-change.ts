/** What a change makes of a secret's row. */
import type { UpdateSecret } from '../../src/contract/secrets.js';
import { isFault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import type { Party } from '../core/domain-event.js';
import type { Keyring } from './keyring.js';
import { readRestriction } from './restriction.js';
import { readExpiry } from './secret-input.js';
import { belongingOf } from './secret-record.js';
import type { SecretRow } from './secret-store.js';

/** Columns as they are stored; what is left out stays. */
export interface Change {
  readonly description?: string | null;
  readonly expires_at?: number | null;
  readonly restriction_json?: string | null;
}

const FIELDS = [
  ['description', 'the description'],
  ['expires_at', 'the expiry'],
  ['restriction_json', 'the restriction'],
] as const satisfies readonly (readonly [keyof Change, string])[];

/** Throws `invalid_body`, `invalid_restriction`, `invalid_selector`. */
export function readChange({ description, expires_at, restriction }: Omit<UpdateSecret, 'value'>): Change {
  return {
    ...(description === undefined ? {} : { description }),
    ...(expires_at === undefined ? {} : { expires_at: readExpiry(expires_at) }),
    ...(restriction === undefined ? {} : { restriction_json: textOf(readRestriction(restriction)) }),
  };
}

export interface ChangeOptions extends Pick<Core, 'clock'> {
  readonly change: Change;
  /** The new value; null leaves the old one. */
  readonly value: string | null;
  readonly actor: Party;
  readonly keyring: Keyring;
}

export interface Changed {
  readonly row: SecretRow;
  /** What is another one now, in words; empty when the row is as it was. */
  readonly changed: readonly string[];
}

/**
 * Seals every version anew, so that an older value does not fit a newer row.
 * Throws `secrets_locked` when the old value is to stay and cannot be read.
 */
export function applyChange(before: SecretRow, { change, value, actor, clock, keyring }: ChangeOptions): Changed {
  const isNewValue = value !== null && value !== readable(before, keyring);
  const fields = FIELDS.filter(([column]) => change[column] !== undefined && change[column] !== before[column]);
  const changed = [...(isNewValue ? ['the value'] : []), ...fields.map(([, name]) => name)];
  if (changed.length === 0) return { row: before, changed };
  const row_version = before.row_version + 1;
  const text = isNewValue ? value : keyring.open(before, belongingOf(before));
  const sealed = keyring.seal(text, belongingOf({ ...before, row_version }));
  const isSameExpiry = change.expires_at === undefined || change.expires_at === before.expires_at;
  const expiry_told = isSameExpiry ? before.expiry_told : 0;
  const updated = { row_version, expiry_told, updated_at: clock.now(), updated_by: actor.id };
  return { row: { ...before, ...change, ...sealed, ...updated }, changed };
}

/** Null for a value that cannot be read any more, which a new one repairs. */
function readable(row: SecretRow, keyring: Keyring): string | null {
  try {
    return keyring.open(row, belongingOf(row));
  } catch (error) {
    if (isFault(error, 'secrets_locked')) return null;
    throw error;
  }
}

const textOf = (value: object | null): string | null => (value === null ? null : JSON.stringify(value));
