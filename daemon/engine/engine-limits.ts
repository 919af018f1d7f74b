/** Limits of the engine (`docs/protocols/limits.md`). Times are milliseconds of the monotonic clock. */
import type { Settings } from '../../src/settings/serve.js';

export interface EngineLimits {
  /** Maximum number of plans, applies and drift checks in progress on all agents together. */
  readonly operations: number;
  /** Time that an apply waits for delivery. */
  readonly dispatch: number;
  /** Time that an operation in progress at the last stop waits for its agent. */
  readonly recovery: number;
  /** Time after a start in which agents of an interrupted rollout are expected back before they count as offline. */
  readonly returning: number;
  /** Silence after which an agent times out, unless it is connected and works on an apply. */
  readonly silence: number;
  /** Silence after which an agent that is connected and works on an apply times out. */
  readonly workSilence: number;
  /** Time that a plan or drift check waits for another one of the same agent. */
  readonly turn: number;
  /** Maximum number of plans and drift checks that wait for their turn on one agent. */
  readonly waiting: number;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;

export const ENGINE_LIMITS: EngineLimits = {
  operations: 256,
  dispatch: 10 * MINUTE,
  recovery: 15 * MINUTE,
  returning: 2 * MINUTE,
  silence: 60 * SECOND,
  workSilence: 15 * MINUTE,
  turn: 10 * SECOND,
  waiting: 16,
};

/** Reads the limits that an operator may set. */
export const engineLimits = (settings: Settings) => ({
  operations: settings['limits.operations'],
  dispatch: settings['limits.dispatch_secs'] * 1000,
});
