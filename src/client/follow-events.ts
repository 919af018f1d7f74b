/** Follows a stream of events over broken connections, restarts of the orchestrator and sessions that end. */
import { setTimeout } from 'node:timers/promises';
import type { Contract } from '../contract/contract.js';
import type { EventOf } from '../contract/route.js';
import { isFault } from '../kernel/fault.js';
import type { FaultCode } from '../kernel/fault-code.js';
import type { ApiClient } from './api-client.js';
import type { EventArguments, EventRouteId, ReceivedEvent } from './request.js';

export interface FollowEvents {
  /** Told once when the stream is lost, with the reason, and when it goes on. */
  onLost?(error: unknown): void;
  onResumed?(): void;
}

/** What may be over soon. */
const PASSING: readonly FaultCode[] = ['unreachable', 'shutting_down', 'rate_limited', 'store_unavailable', 'internal'];
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Events one after the other, none twice and none left out. Throws what the first attempt to connect fails with, and later
 * what does not pass: an operator who was removed, wrong parameters.
 */
export async function* followEvents<I extends EventRouteId>(
  api: ApiClient,
  id: I,
  ...[input, follow = {}]: [...EventArguments<I>, FollowEvents?]
): AsyncGenerator<EventOf<Contract[I]>> {
  let lastEventId = input.lastEventId ?? null;
  let events: AsyncIterable<ReceivedEvent<I>> | null = await api.events(id, input);
  let failures = 0;
  let isLost = false;
  for (;;) {
    try {
      events ??= await api.events(id, { ...input, lastEventId });
      if (isLost) follow.onResumed?.();
      isLost = false;
      failures = 0;
      for await (const { id: place, data } of events) {
        lastEventId = place;
        if (data !== null) yield data;
      }
    } catch (error) {
      // A session that ends in the middle of the stream is renewed by the next attempt; one that cannot be is refused there.
      const isOver = events !== null && isFault(error, 'unauthenticated');
      if (input.signal?.aborted || !(isOver || isFault(error, ...PASSING))) throw error;
      if (!isOver && !isLost) follow.onLost?.(error);
      isLost ||= !isOver;
    }
    events = null;
    failures += 1;
    await setTimeout(pauseAfter(failures), undefined, { signal: input.signal });
  }
}

const pauseAfter = (failures: number): number => Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS);
