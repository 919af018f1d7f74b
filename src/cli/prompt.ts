/** Questions at the terminal. They go to standard error, and are never asked where nobody can answer. */
import { Fault } from '../kernel/fault.js';
import type { Prompt } from './context.js';
import type { InputStream, OutputStream } from './render/printer.js';
import { sanitizeLine } from './render/sanitize.js';

export interface PromptOptions {
  readonly stdin: InputStream;
  readonly stderr: OutputStream;
  /** `--yes` was given. */
  readonly yes: boolean;
  readonly signal: AbortSignal;
  /** Ctrl-C at a question. */
  interrupt(): void;
}

export function createPrompt({ stdin, stderr, yes, signal, interrupt }: PromptOptions): Prompt {
  const possible = stdin.isTTY === true && stderr.isTTY === true;
  const terminal = { input: stdin, output: stderr, signal };
  const ask = async <T>(instead: string, question: string, answer: () => Promise<T>): Promise<T> => {
    if (!possible) throw nobodyToAsk(question, instead);
    try {
      return await answer();
    } catch (error) {
      if (!isLeft(error)) throw error;
      interrupt();
      throw new Fault('cancelled', 'interrupted at a question', { cause: error });
    }
  };
  const confirm: Prompt['confirm'] = (question, instead) =>
    ask(instead, question, async () => {
      const prompts = await import('@inquirer/prompts');
      return prompts.confirm({ message: clean(question), default: false }, terminal);
    });
  return {
    possible,
    confirm,
    consent: async (question) => {
      if (yes || (await confirm(question, 'add --yes to do it without being asked'))) return;
      throw new Fault('cancelled', 'not confirmed, so nothing was changed');
    },
    text: (question, standard) =>
      ask('', question, async () => {
        const prompts = await import('@inquirer/prompts');
        const answer = { message: clean(question), ...(standard === undefined ? {} : { default: standard }) };
        return prompts.input(answer, terminal);
      }),
    choose: (question, choices) =>
      ask('', question, async () => {
        const prompts = await import('@inquirer/prompts');
        return prompts.select({ message: clean(question), choices: [...choices] }, terminal);
      }),
    secret: (question, instead) =>
      ask(instead, question, async () => {
        const prompts = await import('@inquirer/prompts');
        return prompts.password({ message: clean(question) }, terminal);
      }),
  };
}

const clean = (question: string): string => question.split('\n').map(sanitizeLine).join('\n');

const nobodyToAsk = (question: string, instead: string): Fault =>
  new Fault('confirmation_required', `this needs an answer, and there is no terminal to ask on: ${question}`, {
    hint: instead,
  });

/** The library throws when the person presses Ctrl-C or the terminal goes away. */
const isLeft = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'ExitPromptError' || error.name === 'AbortPromptError');
