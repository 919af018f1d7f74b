/** The context of a running command: its environment, streams, prompt, progress and API client. */
import type { ApiClient } from '../client/api-client.js';
import type { Clock } from '../kernel/clock.js';
import type { Programs } from '../programs/programs.js';
import type { CliOptions } from './cli-options.js';
import type { Env } from './env.js';
import type { Globals } from './global-options.js';
import type { Interrupt, InterruptWatch } from './interrupts.js';
import type { Line, View } from './outcome.js';
import { createPrompt, type Prompt } from './prompt.js';
import type { Printer } from './render/printer.js';
import { createProgress, type Progress } from './render/progress.js';
import type { InputStream, OutputStream } from './render/streams.js';
import { readText } from './text-files.js';

export interface Context {
  readonly env: Env;
  readonly clock: Clock;
  readonly globals: Globals;
  readonly programs: Programs;
  /** For commands that relay the streams of remote programs; all other commands return an Outcome. */
  readonly streams: Streams;
  /** Aborted by Ctrl-C, SIGTERM and SIGHUP, except while an `onInterrupt` listener is registered. */
  readonly signal: AbortSignal;
  readonly prompt: Prompt;
  /** Live progress on standard error. */
  readonly progress: Progress;
  /** True if standard output gets colours. */
  readonly color: boolean;
  /** Returns the client of the chosen orchestrator. The first call connects; the client logs in on demand. */
  api(): Promise<ApiClient>;
  /** Prints one line on standard error. Prints nothing with `-o json` and `-o yaml`. */
  note(line: Line): void;
  warn(line: Line): void;
  /** Prints a view on standard error, as context for a question. */
  present(view: View): Promise<void>;
  /** Reads all of standard input as text. */
  readInput(): Promise<string>;
  /** Ends the command as if the signal had arrived, with its exit status: 130 for Ctrl-C. */
  interrupt(by: Interrupt): void;
  /** Sends Ctrl-C, SIGTERM and SIGHUP to the listener until the returned function is called. */
  onInterrupt(listener: (interrupt: Interrupt) => void): () => void;
}

/** The standard streams of the process. */
export interface Streams {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
}

/** Puts together what a command is given. */
interface SessionOptions extends Omit<CliOptions, 'argv' | 'interrupts'> {
  readonly globals: Globals;
  readonly printer: Printer;
  /** Null for commands that own their signals. */
  readonly interrupts: InterruptWatch | null;
}

export interface Session {
  readonly context: Context;
  /** Closes the API client if the command opened one. */
  close(): void;
}

export function createContext(options: SessionOptions): Session {
  const { env, clock, stdin, stdout, stderr, programs, globals, printer, interrupts } = options;
  const signal = interrupts?.signal ?? new AbortController().signal;
  const interrupt: Context['interrupt'] = (by) => interrupts?.abort(by);
  let client: Promise<ApiClient> | undefined;
  const progress = createProgress({ stderr, paint: printer.errorPaint, shown: printer.forPeople, clock });
  const context: Context = {
    env,
    clock,
    globals,
    programs,
    streams: { stdin, stdout, stderr },
    signal,
    color: printer.color,
    prompt: createPrompt({ stdin, stderr, yes: globals.yes, signal, interrupt }),
    progress,
    api: () => {
      client ??= import('./connect-api.js').then(({ connectApi }) => connectApi(context));
      return client;
    },
    // A line would stand behind the live one on the terminal.
    note: (line) => {
      progress.end();
      printer.note(line);
    },
    warn: (line) => {
      progress.end();
      printer.warn(line);
    },
    present: async (view) => {
      progress.end();
      if (printer.forPeople || context.prompt.possible) await printer.present(view);
    },
    readInput: () => readText(stdin, 'standard input', signal),
    interrupt,
    onInterrupt: (listener) => interrupts?.redirect(listener) ?? (() => {}),
  };
  return { context, close: () => void client?.then((open) => open.close()).catch(() => {}) };
}
