/** Puts together what a command is given. */
import type { ApiClient } from '../client/api-client.js';
import type { Context } from './context.js';
import type { Globals } from './global-options.js';
import type { InterruptWatch } from './interrupts.js';
import { createPrompt } from './prompt.js';
import { readText } from './read-text.js';
import type { Printer } from './render/printer.js';
import { createProgress } from './render/progress.js';
import type { CliOptions } from './run.js';

export interface SessionOptions extends Omit<CliOptions, 'argv' | 'interrupts'> {
  readonly globals: Globals;
  readonly printer: Printer;
  /** Null for programs that handle signals themselves. */
  readonly interrupts: InterruptWatch | null;
}

export interface Session {
  readonly context: Context;
  /** Closes what the command opened. */
  close(): void;
}

export function createContext(options: SessionOptions): Session {
  const { env, clock, stdin, stdout, stderr, programs, globals, printer, interrupts } = options;
  const signal = interrupts?.signal ?? new AbortController().signal;
  const interrupt: Context['interrupt'] = (by) => interrupts?.abort(by);
  let client: Promise<ApiClient> | undefined;
  const context: Context = {
    env,
    clock,
    globals,
    programs,
    streams: { stdin, stdout, stderr },
    signal,
    color: printer.color,
    prompt: createPrompt({ stdin, stderr, yes: globals.yes, signal, interrupt: () => interrupt('SIGINT') }),
    progress: createProgress({ stderr, paint: printer.errorPaint, shown: printer.forPeople, clock }),
    api: () => {
      client ??= import('./connect/connect-api.js').then(({ connectApi }) => connectApi(context));
      return client;
    },
    note: printer.note,
    warn: printer.warn,
    present: async (view) => {
      if (printer.forPeople || context.prompt.possible) await printer.present(view);
    },
    readInput: () => readText(stdin, 'standard input', signal),
    interrupt,
    onInterrupt: (listener) => interrupts?.redirect(listener) ?? (() => {}),
  };
  return { context, close: () => void client?.then((open) => open.close()).catch(() => {}) };
}
