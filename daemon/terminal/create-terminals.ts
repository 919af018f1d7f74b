/** Terminal sessions with their relay, screens and recordings. */
import type { KeyObject } from 'node:crypto';
import type { Service } from '../../src/kernel/service.js';
import type { Core } from '../core/core.js';
import type { Queryable } from '../database/schema.js';
import { createScreens, type Screens } from './emulator/screens.js';
import { ClientEndpoint, createAgentEndpoint, Refusals } from './endpoints.js';
import { type TerminalLink, type TerminalRules, terminalRules } from './live-sessions.js';
import type { Recordings } from './recordings/recorder.js';
import { createRecordings } from './recordings/recordings.js';
import { adoptStrayRecordings } from './recordings/stray-recordings.js';
import { Transcripts } from './recordings/transcripts.js';
import { ResumeSecrets, resumeKeyOf } from './session/resume.js';
import { SessionFactory } from './session-factory.js';
import { SessionStore } from './session-store.js';
import type { SocketTimes } from './terminal-socket.js';
import { Terminals } from './terminals.js';
import { Tickets } from './tickets.js';

export type TerminalParts = ReturnType<typeof createTerminals>;

/**
 * Makes the parts; `service` starts and stops them in order.
 * @param own `privateKey` of the orchestrator, from which resume secrets are derived; `since` returns when the epoch of the store
 *   began, in Unix milliseconds, 0 for the first
 */
export function createTerminals(
  core: Core,
  own: {
    readonly link: TerminalLink;
    readonly privateKey: KeyObject;
    readonly since: (db: Queryable) => Promise<number>;
  },
) {
  const { bus, db, settings } = core;
  const dataDir = settings().data_dir;
  const recordings = createRecordings({
    ...core,
    dataDir,
    maxBytes: settings()['terminal.transcript_max_bytes'],
    minFreeBytes: settings()['terminal.disk_floor_bytes'],
  });
  const screens = createScreens(core);
  const resumeKey = resumeKeyOf(own.privateKey);
  const rules = () => terminalRules(settings());
  const relay = createRelay({ ...core, link: own.link, resumeKey, recordings, screens, rules });
  const transcripts = new Transcripts({
    ...core,
    dataDir,
    durableSize: (sessionId) => recordings.durableSize(sessionId),
    days: () => settings()['retention.transcripts_days'],
  });
  const { terminals } = relay;
  bus.subscribe(['operator.removed'], ({ target }) => terminals.operatorRemoved(target.id));
  bus.subscribe(['operator.rights_changed', 'operator.expired'], () => terminals.rightsChanged(null));
  bus.subscribe(['agent.tags_changed'], ({ target }) => terminals.rightsChanged(target.id));
  const isActive = (sessionId: string) => terminals.isActive(sessionId);
  const stopping = new AbortController();
  const { signal } = stopping;
  const tidy = async () => {
    await terminals.restored();
    await adoptStrayRecordings({ ...core, dataDir, isActive, since: () => own.since(db), signal });
    await recordings.cleanUp(isActive);
  };
  let tidying: Promise<void> = Promise.resolve();
  const service: Service = {
    name: terminals.name,
    start: async () => {
      await screens.start();
      await terminals.start();
      tidying = tidy();
    },
    stop: async () => {
      stopping.abort();
      await terminals.stop();
      await transcripts.stop();
      await recordings.stop();
      await tidying;
      await screens.stop();
    },
  };
  return { ...relay, transcripts, service };
}

interface RelayOptions extends Pick<Core, 'clock' | 'db' | 'logger' | 'newId' | 'randomBytes' | 'uow'> {
  /** See `resumeKeyOf`. */
  readonly resumeKey: Buffer;
  readonly link: TerminalLink;
  readonly recordings: Recordings;
  readonly screens: Screens;
  /** Returns the current rules; called for each decision. */
  readonly rules: () => TerminalRules;
  /** Milliseconds that an agent has to answer a request to start a program. */
  readonly timeoutMs?: number;
  readonly times?: SocketTimes;
}

/** Makes the relay between agents and clients, without screens and recordings of its own. */
export function createRelay(options: RelayOptions) {
  const { uow, clock, logger, randomBytes, resumeKey } = options;
  const store = new SessionStore({ uow, clock });
  const tickets = new Tickets(options);
  const refusals = new Refusals({ store, clock, logger });
  const parts = new SessionFactory(options);
  const resumeSecrets = new ResumeSecrets({ key: resumeKey, randomBytes });
  const terminals = new Terminals({ ...options, store, factory: parts, tickets, resumeSecrets });
  const door = { terminals, tickets, refusals, clock, logger, ...(options.times ? { times: options.times } : {}) };
  return { terminals, agentEndpoint: createAgentEndpoint(door), clientEndpoint: new ClientEndpoint(door) };
}
