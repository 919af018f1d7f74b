/**
 * Checks what the orchestrator says on the socket of a terminal. The bundle holds them compiled, without the schemas and the library
 * that compiles them: most of a terminal's start would be theirs.
 */
import { type Validator, validator } from '../../kernel/validator.js';
import { type Exit, ExitSchema } from '../../terminal/exit.js';
import { type ServerNote, ServerNoteSchema, type SnapshotHead, SnapshotHeadSchema } from '../../terminal/notes.js';

export type Check<T> = Pick<Validator<T>, 'check'>;

export const serverNotes: Check<ServerNote> = validator(ServerNoteSchema);
export const exits: Check<Exit> = validator(ExitSchema);
export const snapshotHeads: Check<SnapshotHead> = validator(SnapshotHeadSchema);
