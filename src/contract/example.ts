/** An example of a request and its answer, recorded from a running orchestrator. */
import type { JsonValue } from '../kernel/json.js';

export interface Example {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: JsonValue;
  readonly status: number;
  /** Text for an answer that is no JSON; absent for one without a body. */
  readonly answer?: JsonValue;
}
