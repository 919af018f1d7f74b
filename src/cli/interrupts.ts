/** Interrupts (Ctrl-C, SIGTERM, SIGHUP): they abort a signal, or go to a listener that the command registered. */
import { setMaxListeners } from 'node:events';
import { EXIT } from './exit-status.js';

/** Ctrl-C; `kill` or a service stop; a lost terminal or ssh connection. */
export const INTERRUPTS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export type Interrupt = (typeof INTERRUPTS)[number];

/** Calls the listener on each interrupt until the returned function is called. */
export type Interrupts = (listener: (interrupt: Interrupt) => void) => () => void;

/** Interrupts from the signals of this process. */
const processInterrupts: Interrupts = (listener) => {
  const heard = INTERRUPTS.map((name) => ({ name, tell: () => listener(name) }));
  for (const { name, tell } of heard) process.on(name, tell);
  return () => {
    for (const { name, tell } of heard) process.off(name, tell);
  };
};

const STATUSES = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated, SIGHUP: EXIT.hungUp } as const;

export interface InterruptWatch {
  readonly signal: AbortSignal;
  /** Exit status of the first interrupt; that of Ctrl-C if there was none. */
  readonly status: number;
  /** Sends interrupts to the listener instead of aborting, until the returned function is called. */
  redirect(listener: (interrupt: Interrupt) => void): () => void;
  abort(interrupt: Interrupt): void;
  stop(): void;
}

/** Watches for interrupts. After the abort it stops listening, so the next interrupt ends the process. */
export function watchInterrupts(interrupts: Interrupts = processInterrupts): InterruptWatch {
  const controller = new AbortController();
  // Each request of a fleet command adds a listener.
  setMaxListeners(0, controller.signal);
  let listener: ((interrupt: Interrupt) => void) | null = null;
  let first: Interrupt | null = null;
  const abort = (interrupt: Interrupt) => {
    first ??= interrupt;
    // Deferred, because signal-exit kills the process when it finds no listener beside its own.
    process.nextTick(stop);
    controller.abort();
  };
  const stop = interrupts((interrupt) => (listener ? listener(interrupt) : abort(interrupt)));
  return {
    signal: controller.signal,
    get status() {
      return STATUSES[first ?? 'SIGINT'];
    },
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
