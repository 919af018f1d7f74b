/** What a backup says of itself, in the `meta` of the store that it holds. */
import * as Type from 'typebox';
import { closed } from '../../src/kernel/schema.js';
import { validator } from '../../src/kernel/validator.js';

const BackupNoteSchema = closed({
  /** Unix milliseconds. */
  made_at: Type.Integer({ minimum: 0 }),
  /** Of the program. */
  version: Type.String({ maxLength: 64 }),
  /** Of the orchestrator, hex: agents have pinned it. */
  public_key: Type.String({ pattern: '^[0-9a-f]{64}$' }),
});
export type BackupNote = Type.Static<typeof BackupNoteSchema>;

/** In `meta`. No store in use has it. */
export const NOTE_KEY = 'backup';

/** In `meta`: the public key of the orchestrator that the store belongs to, hex; empty when it may take another one. */
export const IDENTITY_KEY = 'identity';

const notes = validator(BackupNoteSchema);

/** Null for what is none, as in a file that was copied by hand. */
export function parseNote(text: string | null): BackupNote | null {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return notes.check(value) ? value : null;
  } catch {
    return null;
  }
}
