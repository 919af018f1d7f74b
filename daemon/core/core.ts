/** Tools that every part of the orchestrator may use. They are created once and hold neither keys nor parts. */
import type { Clock } from '../../src/kernel/clock.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Settings } from '../../src/settings/serve.js';
import type { Queryable } from '../database/schema.js';
import type { EventBus } from './event-bus.js';
import type { UnitOfWork } from './unit-of-work.js';

/** Each part declares the tools it uses: `Pick<Core, 'db' | 'uow'>`. */
export interface Core {
  /** Connection for reads outside a unit of work. */
  readonly db: Queryable;
  /** The only way to write to the store. */
  readonly uow: UnitOfWork;
  /** Bus that publishes events after their commit. */
  readonly bus: EventBus;
  readonly clock: Clock;
  /** Returns Unix milliseconds that advance only with confirmed time; used to judge the age of stored data. */
  readonly ageTime: () => number;
  /** Returns a ULID above every ULID in the store. */
  readonly newId: NewId;
  /** Returns `count` bytes from a cryptographic source. */
  readonly randomBytes: (count: number) => Buffer;
  readonly logger: Logger;
  /** Returns the current settings. Call it at each use, because some settings change at runtime. */
  readonly settings: () => Settings;
}
