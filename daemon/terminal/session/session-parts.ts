/** What a session begins with once its program runs, or goes on with after a restart of the orchestrator. */
import type { Piece } from '../../../src/terminal/backlog.js';
import type { Screen } from '../screen.js';
import type { ProgramFacts } from './session-facts.js';
import type { SessionRecording } from './session-recording.js';

/** Columns and rows. */
export interface Size {
  readonly cols: number;
  readonly rows: number;
}

export interface SessionParts {
  readonly size: Size;
  readonly program: ProgramFacts;
  readonly recording: SessionRecording;
  readonly screen: Screen | null;
  /** Offset of the first byte of output that comes. */
  readonly start: number;
  /** Output just before that, for those who come back. */
  readonly tail: readonly Piece[];
  /** False until the agent has said where it is: after a restart nobody else knows. */
  readonly isInStep: boolean;
}
