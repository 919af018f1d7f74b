/** `--watch` of lists: reads a list again when the audit log tells of a change, and from time to time. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../client/api-client.js';
import { followEvents } from '../client/follow-events.js';
import { type FaultCode, isFault, messageOf } from '../kernel/fault.js';
import type { Context } from './context.js';
import { flag } from './options.js';
import type { Outcome } from './outcome.js';

export const watchOption = flag('follow changes, until Ctrl-C', { short: 'w' });

interface WatchedList {
  /** Reads the list. Its outcome has `records`. */
  readonly read: (context: Context) => Promise<Outcome>;
  /** Category of the audit events that change the list; null for all. */
  readonly category: string | null;
}

/** Milliseconds between two readings while the audit log tells of changes, and without it. */
const WITH_EVENTS = 10_000;
const WITHOUT_EVENTS = 2_000;
/** Milliseconds after an event in which others are waited for, because changes come in groups. */
const SETTLING = 250;

/** Faults that may pass, so that the list goes on. */
const PASSING: readonly FaultCode[] = ['unreachable', 'shutting_down', 'rate_limited', 'store_unavailable'];

/** Yields the list now and after each change. Ends when the command is interrupted. Throws the fault of the first reading. */
export async function* watchList(
  context: Context,
  api: ApiClient,
  { read, category }: WatchedList,
): AsyncIterable<Outcome> {
  const ending = new AbortController();
  const signal = AbortSignal.any([context.signal, ending.signal]);
  // The notes of a single list, such as that more records exist, would come again with each reading.
  const silent: Context = { ...context, note: () => {} };
  const changes = new Changes(api, { category, signal });
  let isLost = false;
  try {
    yield { ...(await read(context)), watched: true };
    while (!signal.aborted) {
      await changes.next();
      if (signal.aborted) return;
      const list = await readAgain(read, silent);
      if ('lost' in list) {
        if (!isLost) context.note(`The connection was lost, trying again: ${messageOf(list.lost)}`);
        isLost = true;
        continue;
      }
      if (isLost) context.note('Connected again.');
      isLost = false;
      yield { ...list, watched: true };
    }
  } finally {
    ending.abort();
  }
}

/** Reads the list, or returns the fault that may pass. Throws any other. */
async function readAgain(read: WatchedList['read'], context: Context): Promise<Outcome | { readonly lost: unknown }> {
  try {
    return await read(context);
  } catch (error) {
    if (!context.signal.aborted && !isFault(error, ...PASSING)) throw error;
    return { lost: error };
  }
}

interface ChangesOptions {
  readonly category: string | null;
  readonly signal: AbortSignal;
}

/** Waits for audit events. Without them, such as with an older orchestrator, for a short time. */
class Changes {
  private readonly signal: AbortSignal;
  private pause = WITH_EVENTS;
  private wake: (() => void) | null = null;
  private isChanged = false;

  constructor(api: ApiClient, { category, signal }: ChangesOptions) {
    this.signal = signal;
    void this.follow(api, category);
  }

  /** Resolves after an event or a pause. */
  async next(): Promise<void> {
    if (!this.isChanged) {
      const waking = new AbortController();
      this.wake = () => waking.abort();
      const ending = AbortSignal.any([this.signal, waking.signal]);
      await sleep(this.pause, undefined, { signal: ending }).catch(() => undefined);
      this.wake = null;
    }
    if (this.isChanged) await sleep(SETTLING, undefined, { signal: this.signal }).catch(() => undefined);
    this.isChanged = false;
  }

  private async follow(api: ApiClient, category: string | null): Promise<void> {
    const { signal } = this;
    const change = () => {
      this.isChanged = true;
      this.wake?.();
    };
    try {
      // What a missing event was about is unknown, so the list is read again.
      const following = followEvents(api, 'streamEvents', { query: { category }, signal }, { onGap: change });
      for await (const _event of following) change();
    } catch {
      this.pause = WITHOUT_EVENTS;
      this.wake?.();
    }
  }
}
