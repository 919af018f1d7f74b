/** Contexts for work that has the terminal of `orch top` for a while: shells, and questions with what follows a yes. */
import type { Context } from '../context.js';
import type { Interrupt } from '../interrupts.js';
import { createPrompt } from '../prompt.js';

interface Kept {
  readonly context: Context;
  /** Sends the interrupts that arrived meanwhile to the command. */
  pass(): void;
}

/** Returns a context for work with a listener of its own for interrupts, which keeps those that arrive. */
export function keepingInterrupts(context: Context): Kept {
  const interrupts: Interrupt[] = [];
  const onInterrupt: Context['onInterrupt'] = (listener) =>
    context.onInterrupt((interrupt) => {
      interrupts.push(interrupt);
      listener(interrupt);
    });
  return {
    context: { ...context, onInterrupt },
    pass: () => {
      for (const interrupt of interrupts) context.interrupt(interrupt);
    },
  };
}

interface Asking {
  readonly context: Context;
  /** Ends the listening for interrupts. */
  end(): void;
}

/**
 * Returns a context for work that asks. Ctrl-C ends this work and not the command; SIGTERM and SIGHUP end both. Its questions are
 * always asked, also with `--yes`, which would make one key change a machine.
 */
export function beginAsking(context: Context): Asking {
  const stop = new AbortController();
  const signal = AbortSignal.any([context.signal, stop.signal]);
  const interrupt: Context['interrupt'] = (by) => {
    stop.abort();
    if (by !== 'SIGINT') context.interrupt(by);
  };
  let release = context.onInterrupt(interrupt);
  const onInterrupt: Context['onInterrupt'] = (listener) => {
    context.onInterrupt(listener);
    return () => {
      release = context.onInterrupt(interrupt);
    };
  };
  const { stdin, stderr } = context.streams;
  const prompt = createPrompt({ stdin, stderr, yes: false, signal, interrupt });
  const globals = { ...context.globals, yes: false };
  return {
    context: { ...context, globals, prompt, signal, interrupt, onInterrupt },
    end: () => {
      context.progress.end();
      release();
    },
  };
}
