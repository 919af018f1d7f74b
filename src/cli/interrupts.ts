/** Ctrl-C: aborts a signal, unless a command has asked to be told instead. */

/** Calls the listener at each interrupt until the returned function is called. */
export type Interrupts = (listener: () => void) => () => void;

/** SIGINT of this process. */
export const processInterrupts: Interrupts = (listener) => {
  process.on('SIGINT', listener);
  return () => process.off('SIGINT', listener);
};

export interface InterruptWatch {
  readonly signal: AbortSignal;
  /** Replaces the abort until the returned function is called. */
  redirect(listener: () => void): () => void;
  abort(): void;
  stop(): void;
}

/** After the abort the next interrupt does what the system does by itself: it ends the process. */
export function watchInterrupts(interrupts: Interrupts = processInterrupts): InterruptWatch {
  const controller = new AbortController();
  let listener: (() => void) | null = null;
  const abort = () => {
    stop();
    controller.abort();
  };
  const stop = interrupts(() => (listener ? listener() : abort()));
  return {
    signal: controller.signal,
    redirect: (replacement) => {
      listener = replacement;
      return () => {
        listener = null;
      };
    },
    abort,
    stop,
  };
}
