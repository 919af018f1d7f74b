/** The note that identifies a backup, stored in the `meta` table of the copied store. */
import * as Type from 'typebox';
import { closed } from '../../src/kernel/schema.js';
import { validator } from '../../src/kernel/validator.js';

const BackupNoteSchema = closed({
  /** Creation time of the backup, in Unix milliseconds. */
  made_at: Type.Integer({ minimum: 0 }),
  /** Version of the program that made the backup. */
  version: Type.String({ maxLength: 64 }),
  /** Public key of the orchestrator, hex; agents pin it. */
  public_key: Type.String({ pattern: '^[0-9a-f]{64}$' }),
});
export type BackupNote = Type.Static<typeof BackupNoteSchema>;

/** Key of the note in `meta`. No store in use has it. */
export const NOTE_KEY = 'backup';

/**
 * Key in `meta` of the public key, hex, of the orchestrator that the store belongs to. An empty value lets the store
 * adopt another key.
 */
export const IDENTITY_KEY = 'identity';

const notes = validator(BackupNoteSchema);

/** Parses a note; returns null without a valid one, as in a file that was copied by hand. */
export function parseNote(text: string | null): BackupNote | null {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return notes.check(value) ? value : null;
  } catch {
    return null;
  }
}
