/** Bounds of the engine (`docs/protocols/limits.md`). Times are milliseconds of the monotonic clock. */
import type { Settings } from '../../src/settings/serve.js';

export interface EngineLimits {
  /** Plans, applies and drift checks in progress on all agents together. */
  readonly operations: number;
  /** How long an apply waits to be delivered. */
  readonly dispatch: number;
  /** How long an operation that was under way when the orchestrator stopped waits for its agent. */
  readonly recovery: number;
  /** An agent that says nothing for so long is not waited for, unless it is connected and works on an apply. */
  readonly silence: number;
  /** An agent that is connected and works on an apply, but reports nothing for so long, is not waited for. */
  readonly workSilence: number;
  /** How long a plan or drift check waits for another one of the same agent. */
  readonly turn: number;
  /** Plans and drift checks that wait for their turn on one agent. */
  readonly waiting: number;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;

export const ENGINE_LIMITS: EngineLimits = {
  operations: 256,
  dispatch: 10 * MINUTE,
  recovery: 15 * MINUTE,
  silence: 60 * SECOND,
  workSilence: 15 * MINUTE,
  turn: 10 * SECOND,
  waiting: 16,
};

/** Removals of one apply that need no `allow_removals`. */
export const REMOVAL_GUARD = 10;

/** Reads the bounds that an operator may set. */
export const engineLimits = (settings: Settings) => ({
  operations: settings['limits.operations'],
  dispatch: settings['limits.dispatch_secs'] * 1000,
});
