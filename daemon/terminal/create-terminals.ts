/** Creates the parts of terminal sessions and connects them. */
import type { Clock } from '../../src/kernel/clock.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { UnitOfWork } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';
import type { Screens } from './emulator/screens.js';
import { ClientEndpoint, createAgentEndpoint, Refusals } from './endpoints.js';
import type { TerminalLink, TerminalRules } from './live-sessions.js';
import type { Recordings } from './recordings/recorder.js';
import { ResumeSecrets } from './session/resume.js';
import { SessionFactory } from './session-factory.js';
import { SessionStore } from './session-store.js';
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
  /** Returns the current rules; called for each decision. */
  readonly rules: () => TerminalRules;
  /** Milliseconds that an agent has to answer a request to start a program. */
  readonly timeoutMs?: number;
  readonly times?: SocketTimes;
}

export function createTerminals(options: CreateTerminalsOptions) {
  const { uow, clock, logger, randomBytes, resumeKey } = options;
  const book = new SessionStore({ uow, clock });
  const tickets = new Tickets(options);
  const refusals = new Refusals({ store: book, clock, logger });
  const parts = new SessionFactory(options);
  const resumeSecrets = new ResumeSecrets({ key: resumeKey, randomBytes });
  const terminals = new Terminals({ ...options, store: book, factory: parts, tickets, resumeSecrets });
  const door = { terminals, tickets, refusals, clock, logger, ...(options.times ? { times: options.times } : {}) };
  return { terminals, agentEndpoint: createAgentEndpoint(door), clientEndpoint: new ClientEndpoint(door) };
}
