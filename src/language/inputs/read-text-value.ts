/** Reads the value of an input from a text, such as that of `--set`, by the type of the input. */
import { MistakeList, textLines } from '../diagnostic.js';
import { dataOf } from '../located.js';
import { readYaml } from '../read-yaml.js';
import type { Input } from './input.js';

/**
 * Returns the value as it would be written in a value set. A text that is no value of the type stays a text, which `settle`
 * refuses with its reason.
 */
export function readTextValue(text: string, { declared, isSecret }: Input): unknown {
  if (isSecret || declared === 'string') return text;
  if (declared === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  if (declared === 'integer' || declared === 'number')
    return /^-?\d{1,17}(\.\d{1,17})?$/.test(text) ? Number(text) : text;
  const mistakes = new MistakeList();
  const node = readYaml(text, textLines(text), mistakes, { noun: declared, begin: declared });
  return node === null || mistakes.failed ? text : dataOf(node);
}
