/** What the parts of one session share once its program runs. */
import type { Clock } from '../../../src/kernel/clock.js';
import type { Logger } from '../../../src/kernel/logger.js';
import type { Exit, ExitReason } from '../../../src/terminal/exit.js';
import type { RequestContext } from '../../core/domain-event.js';
import type { SessionBook } from '../session-book.js';
import type { AgentEnd } from './agent-end.js';
import type { InputRelay } from './input-relay.js';
import type { OutputRelay } from './output-relay.js';
import type { People } from './people.js';
import type { ResumeKeys } from './resume-keys.js';
import type { Course } from './session-course.js';
import type { SessionFacts } from './session-facts.js';
import type { SessionRecording } from './session-recording.js';
import type { SessionWatch } from './session-watch.js';

export interface SessionCore {
  readonly facts: SessionFacts;
  readonly course: Course;
  readonly people: People;
  readonly keys: ResumeKeys;
  readonly agent: AgentEnd;
  readonly input: InputRelay;
  readonly relay: OutputRelay;
  readonly recording: SessionRecording;
  readonly watch: SessionWatch;
  readonly book: SessionBook;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends it, unless it has ended, with nobody waiting for that. */
  readonly end: (exit: Exit, by?: RequestContext) => void;
  /** The agent may send more, when it may. */
  readonly pace: () => void;
}

/** How a session ends that the orchestrator ends. */
export const exitOf = (reason: ExitReason): Exit => ({ code: null, signal: null, reason, final_offset: null });
