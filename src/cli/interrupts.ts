/** What asks the command to end, Ctrl-C above all: aborts a signal, unless a command has asked to be told instead. */
import { setMaxListeners } from 'node:events';
import { EXIT } from './exit-status.js';

/** Ctrl-C, `kill` or the end of a service, and a terminal or an ssh connection that is gone. */
export const INTERRUPTS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export type Interrupt = (typeof INTERRUPTS)[number];

/** Calls the listener at each interrupt until the returned function is called. */
export type Interrupts = (listener: (interrupt: Interrupt) => void) => () => void;

/** The signals of this process. */
export const processInterrupts: Interrupts = (listener) => {
  const heard = INTERRUPTS.map((name) => ({ name, tell: () => listener(name) }));
  for (const { name, tell } of heard) process.on(name, tell);
  return () => {
    for (const { name, tell } of heard) process.off(name, tell);
  };
};

const STATUSES = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated, SIGHUP: EXIT.hungUp } as const;

export interface InterruptWatch {
  readonly signal: AbortSignal;
  /** The exit status of what came first; that of Ctrl-C while nothing came. */
  readonly status: number;
  /** Replaces the abort until the returned function is called. */
  redirect(listener: (interrupt: Interrupt) => void): () => void;
  abort(interrupt: Interrupt): void;
  stop(): void;
}

/** After the abort the next interrupt does what the system does by itself: it ends the process. */
export function watchInterrupts(interrupts: Interrupts = processInterrupts): InterruptWatch {
  const controller = new AbortController();
  // Every request to one of many agents listens to it.
  setMaxListeners(0, controller.signal);
  let listener: ((interrupt: Interrupt) => void) | null = null;
  let first: Interrupt | null = null;
  const abort = (interrupt: Interrupt) => {
    first ??= interrupt;
    stop();
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
