/**
 * Validators of the orchestrator's frames. The bundle contains them compiled, without the schemas and their library, which would
 * take most of the start-up time of a terminal.
 */
import { type Check, validator } from '../../kernel/validator.js';
import { type Exit, ExitSchema } from '../../terminal/exit.js';
import { type ServerNote, ServerNoteSchema, type SnapshotHead, SnapshotHeadSchema } from '../../terminal/notes.js';

export const serverNotes: Check<ServerNote> = validator(ServerNoteSchema);
export const exits: Check<Exit> = validator(ExitSchema);
export const snapshotHeads: Check<SnapshotHead> = validator(SnapshotHeadSchema);
