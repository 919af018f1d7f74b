/** Wires terminal sessions with recordings, screens and the rest of the orchestrator. */
import type { KeyObject } from 'node:crypto';
import type { Clock } from '../src/kernel/clock.js';
import type { NewId } from '../src/kernel/ids.js';
import type { Logger } from '../src/kernel/logger.js';
import type { Service } from '../src/kernel/service.js';
import type { Settings } from '../src/settings/serve.js';
import type { EventBus } from './core/event-bus.js';
import type { UnitOfWork } from './core/unit-of-work.js';
import type { Queryable } from './database/schema.js';
import { epochBegun } from './engine/epoch.js';
import { createTerminals } from './terminal/create-terminals.js';
import { createScreens } from './terminal/emulator/screens.js';
import { type TerminalLink, terminalRules } from './terminal/live-sessions.js';
import { createRecordings } from './terminal/recordings/recordings.js';
import { takeUpStrays } from './terminal/recordings/stray-recordings.js';
import { Transcripts } from './terminal/recordings/transcripts.js';
import { resumeKeyOf } from './terminal/session/resume.js';

export interface TerminalWiringOptions {
  readonly db: Queryable;
  readonly uow: UnitOfWork;
  readonly bus: EventBus;
  readonly link: TerminalLink;
  readonly settings: () => Settings;
  readonly clock: Clock;
  /** Returns the Unix milliseconds that ages are computed from. */
  readonly ageTime: () => number;
  readonly newId: NewId;
  readonly randomBytes: (count: number) => Buffer;
  /** Private key of the orchestrator. */
  readonly privateKey: KeyObject;
  readonly logger: Logger;
}

export function wireTerminals(options: TerminalWiringOptions) {
  const { bus, db, uow, clock, logger, settings } = options;
  const dataDir = settings().data_dir;
  const recordings = createRecordings({
    dataDir,
    clock,
    logger,
    maxBytes: settings()['terminal.transcript_max_bytes'],
    minFreeBytes: settings()['terminal.disk_floor_bytes'],
  });
  const screens = createScreens({ logger });
  const resumeKey = resumeKeyOf(options.privateKey);
  const room = createTerminals({ ...options, resumeKey, recordings, screens, rules: () => terminalRules(settings()) });
  const transcripts = new Transcripts({
    db,
    uow,
    dataDir,
    clock,
    ageTime: options.ageTime,
    logger,
    durableSize: (sessionId) => recordings.durableSize(sessionId),
    days: () => settings()['retention.transcripts_days'],
  });
  const { terminals } = room;
  bus.subscribe(['operator.removed'], ({ target }) => terminals.operatorRemoved(target.id));
  const isActive = (sessionId: string) => terminals.isActive(sessionId);
  const stopping = new AbortController();
  const { signal } = stopping;
  const tidy = async () => {
    await terminals.restored();
    await takeUpStrays({ db, uow, logger, dataDir, isActive, since: () => epochBegun(db), signal });
    await recordings.tidy(isActive);
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
  return { ...room, transcripts, service };
}

export type WiredTerminals = ReturnType<typeof wireTerminals>;
