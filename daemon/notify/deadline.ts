/** A signal that aborts after a time, or when the one it is made from does. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Whether the time was up. */
  isOver(): boolean;
  /** To be called when nobody waits any more. */
  clear(): void;
}

export function deadlineOf(ms: number, outer: AbortSignal): Deadline {
  const controller = new AbortController();
  let over = false;
  const timer = setTimeout(() => {
    over = true;
    controller.abort(new Error('the time is up'));
  }, ms);
  const abort = () => controller.abort(outer.reason);
  outer.addEventListener('abort', abort);
  if (outer.aborted) abort();
  return {
    signal: controller.signal,
    isOver: () => over,
    clear: () => {
      clearTimeout(timer);
      outer.removeEventListener('abort', abort);
    },
  };
}
