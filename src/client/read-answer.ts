/** Reads an answer: the body of a success, or the fault that it is. */
import { isFault } from '../kernel/fault.js';
import { faultOfProblem } from './problem-fault.js';
import { type TransportAnswer, textOf } from './transport.js';
import { notOurs } from './unreachable.js';

export const isSuccess = ({ status }: TransportAnswer): boolean => status >= 200 && status < 300;

export const mediaTypeOf = ({ headers }: TransportAnswer): string =>
  (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';

/** JSON as a value, other media as text, undefined for no body. Throws the fault of a failure. */
export async function readSuccess(answer: TransportAnswer, url: URL): Promise<unknown> {
  if (!isSuccess(answer)) throw await readFailure(answer, url);
  const text = await textOf(answer);
  if (text === '') return undefined;
  if (mediaTypeOf(answer) !== 'application/json') return text;
  const value = parseJson(text);
  if (value === undefined) throw notOurs(url, answer.status, 'with a body that is not JSON');
  return value;
}

/** The fault of an answer that is no success. */
export async function readFailure(answer: TransportAnswer, url: URL): Promise<Error> {
  try {
    const text = await textOf(answer);
    return faultOfProblem(parseJson(text)) ?? notOurs(url, answer.status, `with ${mediaTypeOf(answer) || 'nothing'}`);
  } catch (error) {
    if (isFault(error)) return error;
    throw error;
  }
}

/** Undefined when it is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
