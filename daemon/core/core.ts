/** The tools that every part of the orchestrator may use: made once, passed on as they are. They hold no keys and no parts. */
import type { Clock } from '../../src/kernel/clock.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Settings } from '../../src/settings/serve.js';
import type { Queryable } from '../database/schema.js';
import type { EventBus } from './event-bus.js';
import type { UnitOfWork } from './unit-of-work.js';

/** A part names the tools that it uses: `Pick<Core, 'db' | 'uow'>`. */
export interface Core {
  /** For reads outside of a unit of work. */
  readonly db: Queryable;
  /** The only way to write. */
  readonly uow: UnitOfWork;
  /** Publishes events after their commit. */
  readonly bus: EventBus;
  readonly clock: Clock;
  /** Returns Unix milliseconds that only confirmed time moves on; the age of stored things is judged by it. */
  readonly ageTime: () => number;
  /** Returns a ULID above every ULID in the store. */
  readonly newId: NewId;
  /** Returns that many bytes of a cryptographic source. */
  readonly randomBytes: (count: number) => Buffer;
  readonly logger: Logger;
  /** The settings as they are now; read at each use, because some change while the orchestrator runs. */
  readonly settings: () => Settings;
}
