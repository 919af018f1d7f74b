/** Where an enrolment token comes from: standard input or a question, a file, or the command line. */
import { Fault } from '../../../kernel/fault.js';
import type { Context } from '../../context.js';
import { readTextFile } from '../../read-text.js';

/** @param given `-`, `@FILE` or the token */
export async function readToken(context: Context, given: string | undefined): Promise<string | undefined> {
  if (given === undefined) return undefined;
  const text = (await read(context, given)).trim();
  if (text === '') throw new Fault('usage', `--token ${given} holds nothing`);
  return text;
}

async function read({ prompt, readInput }: Context, given: string): Promise<string> {
  if (given === '-') return prompt.possible ? prompt.secret('Enrolment token:', 'pipe it in') : readInput();
  return given.startsWith('@') ? readTextFile(given.slice(1)) : given;
}
