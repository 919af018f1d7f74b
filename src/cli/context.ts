/** What a command is given to work with. */
import type { ApiClient } from '../client/api-client.js';
import type { Clock } from '../kernel/clock.js';
import type { Globals } from './global-options.js';
import type { Interrupt, InterruptWatch } from './interrupts.js';
import type { Line, View } from './outcome.js';
import type { Programs } from './programs.js';
import { createPrompt } from './prompt.js';
import type { InputStream, OutputStream, Printer } from './render/printer.js';
import { createProgress, type Progress } from './render/progress.js';
import type { CliOptions } from './run.js';
import { readText } from './text-files.js';

export type Env = Readonly<Record<string, string | undefined>>;

export interface Context {
  readonly env: Env;
  readonly clock: Clock;
  readonly globals: Globals;
  readonly programs: Programs;
  /** For commands that hand through what remote programs read and write; every other answer is an Outcome. */
  readonly streams: Streams;
  /** Aborted by Ctrl-C, SIGTERM and SIGHUP, unless the command has asked to be told instead. */
  readonly signal: AbortSignal;
  readonly prompt: Prompt;
  /** Live progress on standard error. */
  readonly progress: Progress;
  /** Colours are wanted on standard output. */
  readonly color: boolean;
  /** The logged-in client of the chosen orchestrator; the first call connects. */
  api(): Promise<ApiClient>;
  /** One line on standard error, for people. */
  note(line: Line): void;
  warn(line: Line): void;
  /** Shows on standard error what a person needs before a question. */
  present(view: View): Promise<void>;
  /** All of standard input as text. */
  readInput(): Promise<string>;
  /** Ends the command as that signal does, with its exit status: 130 for Ctrl-C. */
  interrupt(by: Interrupt): void;
  /** Replaces what Ctrl-C, SIGTERM and SIGHUP do until the returned function is called. */
  onInterrupt(listener: (interrupt: Interrupt) => void): () => void;
}

/** The process's own. */
export interface Streams {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
}

/** Questions to the person at the terminal. */
export interface Prompt {
  /** Whether there is somebody to ask: standard input and standard error are a terminal. */
  readonly possible: boolean;
  /** Throws Fault `confirmation_required`, naming `instead`, when there is nobody to ask. */
  confirm(question: string, instead: string): Promise<boolean>;
  /** The same, and a "no" throws Fault `cancelled`. `--yes` answers it. */
  consent(question: string): Promise<void>;
  /** A text, `standard` when nothing is typed. Only where `possible`. */
  text(question: string, standard?: string): Promise<string>;
  /** One of a few words. Only where `possible`. */
  choose<const C extends string>(question: string, choices: readonly C[]): Promise<C>;
  /** A text that is not shown while it is typed. Throws like `confirm`. */
  secret(question: string, instead: string): Promise<string>;
}

/** Puts together what a command is given. */
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
      client ??= import('./connect-api.js').then(({ connectApi }) => connectApi(context));
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
