/** Makes the event of something that was done at somebody's request. */
import type { JsonObject } from '../../src/kernel/json.js';
import type { DomainEvent } from './domain-event.js';
import type { RequestContext } from './request-context.js';

/** The actor is the one who asks; the metadata gets the `request_id`. */
export const eventOfRequest = (
  context: RequestContext,
  event: Omit<DomainEvent, 'actor' | 'metadata'> & { readonly metadata?: JsonObject },
): DomainEvent => ({
  ...event,
  actor: context.actor,
  metadata: { ...event.metadata, request_id: context.requestId },
});
