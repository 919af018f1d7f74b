/** Makes the parts of the room of terminals and joins them. */
import type { Clock } from '../../src/kernel/clock.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { UnitOfWork } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';
import { createAgentDoor } from './agent-door.js';
import { ClientDoor } from './client-door.js';
import { PartsMaker } from './parts-maker.js';
import type { Recordings } from './recordings/recorder.js';
import { Refusals } from './refusals.js';
import type { Screens } from './screen.js';
import { ResumeSecrets } from './session/resume-secrets.js';
import { SessionBook } from './session-book.js';
import type { TerminalLink } from './terminal-link.js';
import type { TerminalRules } from './terminal-rules.js';
import type { SocketTimes } from './terminal-socket.js';
import { Terminals } from './terminals.js';
import { Tickets } from './tickets.js';

export interface CreateTerminalsOptions {
  readonly db: Queryable;
  readonly uow: UnitOfWork;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly randomBytes: (count: number) => Buffer;
  /** See `resumeKeyOf`. */
  readonly resumeKey: Buffer;
  readonly logger: Logger;
  readonly link: TerminalLink;
  readonly recordings: Recordings;
  readonly screens: Screens;
  /** As they are now; asked each time. */
  readonly rules: () => TerminalRules;
  /** How long an agent has to answer, in milliseconds. */
  readonly patience?: number;
  readonly times?: SocketTimes;
}

export function createTerminals(options: CreateTerminalsOptions) {
  const { uow, clock, logger, randomBytes, resumeKey } = options;
  const book = new SessionBook({ uow, clock });
  const tickets = new Tickets(options);
  const refusals = new Refusals({ book, clock, logger });
  const parts = new PartsMaker(options);
  const resumeSecrets = new ResumeSecrets({ key: resumeKey, randomBytes });
  const terminals = new Terminals({ ...options, book, parts, tickets, resumeSecrets });
  const door = { terminals, tickets, refusals, clock, logger, ...(options.times ? { times: options.times } : {}) };
  return { terminals, agentDoor: createAgentDoor(door), clientDoor: new ClientDoor(door) };
}
