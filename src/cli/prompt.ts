/** Questions at the terminal. They go to standard error and are asked only on a terminal. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Fault } from '../kernel/fault.js';
import type { InputStream, OutputStream } from './render/streams.js';
import { sanitizeLine } from './render/terminal-text.js';

interface PromptOptions {
  readonly stdin: InputStream;
  readonly stderr: OutputStream;
  /** True with `--yes`. */
  readonly yes: boolean;
  readonly signal: AbortSignal;
  /** Called when a question is left: by Ctrl-C or Ctrl-D, or because the terminal was lost. */
  interrupt(by: 'SIGINT' | 'SIGHUP'): void;
}

export function createPrompt({ stdin, stderr, yes, signal, interrupt }: PromptOptions): Prompt {
  const possible = stdin.isTTY === true && stderr.isTTY === true;
  const terminal = { input: stdin, output: stderr, signal };
  const left = (cause?: unknown): Fault => {
    interrupt(stdin.readableEnded ? 'SIGHUP' : 'SIGINT');
    return new Fault('cancelled', 'interrupted at a question', { cause });
  };
  const ask = async <T>(instead: string, question: string, answer: (prompts: Prompts) => Promise<T>): Promise<T> => {
    if (!possible) throw noTerminal(question, instead);
    const prompts = await import('@inquirer/prompts');
    if (!(await dropTypedAhead(stdin, signal))) throw left();
    try {
      return await answer(prompts);
    } catch (error) {
      if (!isLeft(error)) throw error;
      throw left(error);
    }
  };
  const confirm: Prompt['confirm'] = (question, instead) =>
    ask(instead, question, (prompts) => prompts.confirm({ message: clean(question), default: false }, terminal));
  return {
    possible,
    confirm,
    consent: async (question) => {
      if (yes || (await confirm(question, 'add --yes to skip the question'))) return;
      throw new Fault('cancelled', 'not confirmed, nothing was changed');
    },
    text: (question, standard) =>
      ask('', question, (prompts) => {
        const answer = { message: clean(question), ...(standard === undefined ? {} : { default: standard }) };
        return prompts.input(answer, terminal);
      }),
    choose: (question, choices) =>
      ask('', question, (prompts) => prompts.select({ message: clean(question), choices: [...choices] }, terminal)),
    edit: (question, { text, ending, instead }, problemOf) =>
      ask(instead, question, (prompts) => {
        const validate = (edited: string) => problemOf(edited) ?? true;
        const file = { default: text, postfix: ending, waitForUserInput: false, validate };
        return prompts.editor({ message: clean(question), ...file }, terminal);
      }),
    secret: (question, instead) =>
      ask(instead, question, (prompts) => prompts.password({ message: clean(question) }, terminal)),
  };
}

type Prompts = typeof import('@inquirer/prompts');

const CTRL_C = '\u0003';
/** Event-loop turns without input after which no input is pending. The first may end before the terminal is polled. */
const QUIET_TURNS = 3;

/**
 * Drops all input typed before the question appears, because it was meant for another program, such as the shell.
 * Leaves the terminal in raw mode, which also makes an unfinished line readable. The question needs raw mode anyway.
 * Returns false, with raw mode off, if Ctrl-C was pressed meanwhile.
 */
async function dropTypedAhead(stdin: InputStream, signal: AbortSignal): Promise<boolean> {
  let quietTurns = 0;
  let interrupted = false;
  const drop = (typed: Buffer | string) => {
    quietTurns = 0;
    interrupted ||= typed.includes(CTRL_C);
  };
  stdin.setRawMode?.(true);
  stdin.on('data', drop);
  // A listener alone does not start a stream again that an earlier question or screen has paused.
  stdin.resume();
  while (quietTurns < QUIET_TURNS && !interrupted && !signal.aborted) {
    quietTurns += 1;
    await nextTurn();
  }
  stdin.off('data', drop);
  stdin.pause();
  if (!interrupted && !signal.aborted) return true;
  stdin.setRawMode?.(false);
  return false;
}

const clean = (question: string): string => question.split('\n').map(sanitizeLine).join('\n');

const noTerminal = (question: string, instead: string): Fault =>
  new Fault('confirmation_required', `this needs an answer, and there is no terminal to ask on: ${question}`, {
    hint: instead,
  });

/** Returns whether the library threw because of Ctrl-C or a closed terminal. */
const isLeft = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'ExitPromptError' || error.name === 'AbortPromptError');

/** Questions to the operator at the terminal. */
/** A text for an editor. */
export interface EditedText {
  readonly text: string;
  /** End of the name of the file, by which the editor knows its language. */
  readonly ending: string;
  /** Advice for a run without a terminal. */
  readonly instead: string;
}

export interface Prompt {
  /** True if standard input and standard error are a terminal. */
  readonly possible: boolean;
  /** Asks yes or no. Throws `confirmation_required` with the hint `instead` where there is no terminal. */
  confirm(question: string, instead: string): Promise<boolean>;
  /** Asks for consent, which `--yes` gives in advance. Throws `cancelled` on a no, and like `confirm`. */
  consent(question: string): Promise<void>;
  /** Asks for a text; an empty answer gives `standard`. Call it only where `possible`. */
  text(question: string, standard?: string): Promise<string>;
  /** Asks to choose one of a few words. Call it only where `possible`. */
  choose<const C extends string>(question: string, choices: readonly C[]): Promise<C>;
  /**
   * Opens a text in the editor of the operator (VISUAL, EDITOR) and returns what it was left as. Throws like `confirm`.
   * @param problemOf returns why the text cannot be taken, and the operator may edit it again; null for one that can
   */
  edit(question: string, text: EditedText, problemOf: (text: string) => string | null): Promise<string>;
  /** Asks for a text without echoing it. Throws like `confirm`. */
  secret(question: string, instead: string): Promise<string>;
}
