/** Where the value of a secret comes from: a file, the command line, standard input, or a question. */
import { Fault } from '../../../kernel/fault.js';
import type { Context } from '../../context.js';
import { readTextFile } from '../../read-text.js';

export interface ValueSources {
  readonly file: string | undefined;
  readonly value: string | undefined;
  /** `-` for standard input. */
  readonly source: string | undefined;
}

/** Whether a value is to be had without asking. Throws `usage` when there is more than one place for it. */
export function hasSource({ file, value, source }: ValueSources): boolean {
  if (source !== undefined && source !== '-') {
    throw new Fault('usage', 'a value is not given as a word of its own', {
      hint: 'use --file FILE, - for standard input, or leave it out to be asked',
    });
  }
  const given = [file, value, source].filter((one) => one !== undefined).length;
  if (given > 1) throw new Fault('usage', 'give the value only once: --file, --value or -');
  return given === 1;
}

/** Asks when there is no other source. */
export async function readValue(context: Context, name: string, sources: ValueSources): Promise<string> {
  const { file, value, source } = sources;
  if (value !== undefined) return value;
  if (file !== undefined) return fromFile(context, file);
  // The line end is that of echo, not of the secret.
  if (source === '-') return (await context.readInput()).replace(/\r?\n$/, '');
  return context.prompt.secret(`Value of ${name}:`, 'give it with --file FILE, or pipe it in and add -');
}

function fromFile(context: Context, file: string): string {
  const text = readTextFile(file);
  if (/^[^\n]*\n$/.test(text)) context.warn(`${file} ends with a line end, which is part of the value now.`);
  return text;
}
