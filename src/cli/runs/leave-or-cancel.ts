/** Ctrl-C during an apply or a rollout: once leaves it running, twice cancels it. SIGTERM and SIGHUP leave it at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import type { Interrupt } from '../interrupts.js';

interface Leaving {
  /** Aborts the stream. */
  readonly signal: AbortSignal;
  /** Rejects with `cancelled` once the operator has left; never resolves. */
  readonly promise: Promise<never>;
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

/** Watches for Ctrl-C while work runs that continues without the operator. */
export function leaving(context: Context, work: Leavable): Leaving {
  const stream = new AbortController();
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
    stream.abort();
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
    signal: stream.signal,
    promise,
    stop: () => {
      stopListening();
      // All work ended before a second Ctrl-C.
      if (second.signal.aborted) return;
      stopped = true;
      second.abort();
    },
  };
}
