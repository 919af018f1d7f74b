/** Follows a stream of events across broken connections, restarts of the orchestrator and ended sessions. */
import { setTimeout } from 'node:timers/promises';
import type { Contract } from '../contract/contract.js';
import type { EventOf, GapOf } from '../contract/route.js';
import { type FaultCode, isFault } from '../kernel/fault.js';
import type { ApiClient, EventArguments, EventRouteId, ReceivedEvent } from './api-client.js';
import { retryAfterMs } from './http-messages.js';

interface FollowEvents<I extends EventRouteId> {
  /** Called once when the stream is lost, with the reason, and once when it resumes. */
  onLost?(error: unknown): void;
  onResumed?(): void;
  /** Called when events are missing before the next one, because the orchestrator no longer has them. */
  onGap?(gap: GapOf<Contract[I]>): void;
}

/** Faults that may pass. */
const PASSING: readonly FaultCode[] = ['unreachable', 'shutting_down', 'rate_limited', 'store_unavailable', 'internal'];
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Yields every event once, in order. Throws the fault of the first attempt to connect, and later any fault that does not
 * pass, such as for a removed operator or wrong parameters.
 */
export async function* followEvents<I extends EventRouteId>(
  api: ApiClient,
  id: I,
  ...[input, follow = {}]: [...EventArguments<I>, FollowEvents<I>?]
): AsyncGenerator<EventOf<Contract[I]>> {
  let lastEventId = input.lastEventId ?? null;
  let events: AsyncIterable<ReceivedEvent<I>> | null = await api.events(id, input);
  let failures = 0;
  let isLost = false;
  for (;;) {
    let advised = 0;
    try {
      events ??= await api.events(id, { ...input, lastEventId });
      if (isLost) follow.onResumed?.();
      isLost = false;
      failures = 0;
      for await (const { id: place, data, gap } of events) {
        if (place !== '') lastEventId = place;
        if (gap !== null) follow.onGap?.(gap);
        if (data !== null) yield data;
      }
    } catch (error) {
      // The next attempt renews a session that ended during the stream, or fails when it cannot.
      const isExpired = events !== null && isFault(error, 'unauthenticated');
      if (input.signal?.aborted || !(isExpired || isFault(error, ...PASSING))) throw error;
      if (!isExpired && !isLost) follow.onLost?.(error);
      isLost ||= !isExpired;
      advised = retryAfterMs(error, 0);
    }
    events = null;
    failures += 1;
    await setTimeout(Math.max(pauseAfter(failures), advised), undefined, { signal: input.signal });
  }
}

const pauseAfter = (failures: number): number => Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS);
