/** What Ctrl-C does while operations run: once leaves them running, twice cancels them. SIGTERM and SIGHUP leave them at once. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../../client/api-client.js';
import { Fault, messageOf } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import type { Interrupt } from '../interrupts.js';

export interface Leaving {
  /** Ends the streams. */
  readonly signal: AbortSignal;
  /** Rejects with Fault `cancelled` once the person has left; never resolves. */
  readonly promise: Promise<never>;
  /** Ctrl-C was pressed: what has not begun does not begin any more, although the person may still choose. */
  readonly interrupted: boolean;
  stop(): void;
}

/** How long the second Ctrl-C has, in milliseconds. */
const SECOND_CHANCE = 2000;

/** When the second Ctrl-C counts, for a message that stays on the screen. */
export const WITHIN = `within ${SECOND_CHANCE / 1000} seconds`;

/** What goes on when the person leaves. */
export interface Leavable {
  /** Says how to watch it and how to cancel it. `last`: nobody is there to press Ctrl-C again. */
  tell(last: boolean): void;
  cancel(): Promise<void>;
}

/**
 * @param running the operations that are known to run; read at each Ctrl-C
 * @param several there are more agents, which begin one after the other
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
  // One stream for each agent of a run.
  setMaxListeners(0, streams.signal);
  const second = new AbortController();
  let stopped = false;
  let reject: (reason: Fault) => void = () => {};
  const promise = new Promise<never>((_resolve, fail) => {
    reject = fail;
  });
  // It may be rejected when nobody races against it any more.
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
      // Everything has ended before the person chose.
      if (second.signal.aborted) return;
      stopped = true;
      second.abort();
    },
  };
}

function tellHowToGoOn({ note }: Context, running: ReadonlySet<string>, last: boolean): void {
  if (running.size === 0) note('Interrupted. What has begun goes on; see: orch ops');
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
