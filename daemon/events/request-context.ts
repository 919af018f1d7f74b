/** Who asks, for whatever writes: the actor of the audit event and the id of the request. */
import type { Party } from './domain-event.js';

export interface RequestContext {
  readonly actor: Party;
  /** Also in the log line; ends up in the audit event's metadata as `request_id`. */
  readonly requestId: string;
  /** Address of the client, null for the orchestrator itself. */
  readonly address: string | null;
}
