/** Ctrl-C while operations run: once leaves them running, twice cancels them. SIGTERM and SIGHUP leave them at once. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../../client/api-client.js';
import { Fault, messageOf } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import type { Interrupt } from '../interrupts.js';

interface Leaving {
  /** Aborts the streams. */
  readonly signal: AbortSignal;
  /** Rejects with `cancelled` once the operator has left; never resolves. */
  readonly promise: Promise<never>;
  /** True after the first Ctrl-C: no further agent starts, even while a second Ctrl-C may follow. */
  readonly interrupted: boolean;
  stop(): void;
}

/** Milliseconds in which the second Ctrl-C cancels. */
const SECOND_CHANCE = 2000;

/** Time window of the second Ctrl-C in words. */
export const WITHIN = `within ${SECOND_CHANCE / 1000} seconds`;

/** Work that continues when the operator leaves. */
interface Leavable {
  /** Prints how to watch and cancel the work. `last` if no second Ctrl-C can follow. */
  tell(last: boolean): void;
  cancel(): Promise<void>;
}

/**
 * Watches for Ctrl-C during applies.
 * @param running IDs of the running operations, read on each Ctrl-C
 * @param several true if further agents may start
 */
export const leaveOrCancel = (
  context: Context,
  api: ApiClient,
  running: ReadonlySet<string>,
  several: boolean,
): Leaving =>
  leaving(context, {
    tell: (last) => {
      if (several) context.note('No further agent begins.');
      tellHowToGoOn(context, running, last);
    },
    cancel: () => cancelAll(context, api, running),
  });

export function leaving(context: Context, work: Leavable): Leaving {
  const streams = new AbortController();
  // Each agent of a run has a stream.
  setMaxListeners(0, streams.signal);
  const second = new AbortController();
  let stopped = false;
  let reject: (reason: Fault) => void = () => {};
  const promise = new Promise<never>((_resolve, fail) => {
    reject = fail;
  });
  // It may be rejected after the race against it has ended.
  promise.catch(() => {});
  const end = (by: Interrupt) => {
    reject(new Fault('cancelled', 'interrupted'));
    streams.abort();
    context.interrupt(by);
  };
  const tell = (last: boolean) => {
    context.progress.end();
    work.tell(last);
  };
  const leave = async () => {
    tell(false);
    await sleep(SECOND_CHANCE, undefined, { signal: second.signal }).catch(() => {});
    if (stopped) return;
    if (second.signal.aborted) await work.cancel();
    end('SIGINT');
  };
  let presses = 0;
  const stopListening = context.onInterrupt((by) => {
    if (by !== 'SIGINT') {
      if (presses === 0) tell(true);
      return end(by);
    }
    presses += 1;
    if (presses === 1) void leave();
    else if (presses === 2) second.abort();
    else end(by);
  });
  return {
    signal: streams.signal,
    promise,
    get interrupted() {
      return presses > 0;
    },
    stop: () => {
      stopListening();
      // All work ended before a second Ctrl-C.
      if (second.signal.aborted) return;
      stopped = true;
      second.abort();
    },
  };
}

function tellHowToGoOn({ note }: Context, running: ReadonlySet<string>, last: boolean): void {
  if (running.size === 0) note('Interrupted. Operations in progress continue; see: orch ops');
  for (const id of running) {
    note(`Operation ${id} goes on without you.`);
    note(`  watch it:  orch ops watch ${id}`);
    note(`  cancel it: orch ops cancel ${id}`);
  }
  if (running.size > 0 && !last) note(`Press Ctrl-C again ${WITHIN} to cancel.`);
}

async function cancelAll({ note, warn }: Context, api: ApiClient, running: ReadonlySet<string>): Promise<void> {
  for (const operation_id of running) {
    try {
      await api.call('cancelOperation', { params: { operation_id } });
      note(`Operation ${operation_id} is being cancelled: it stops at the next resource.`);
    } catch (error) {
      warn(`operation ${operation_id} could not be cancelled: ${messageOf(error)}`);
    }
  }
}
