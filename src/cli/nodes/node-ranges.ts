/** Ranges in the names of nodes: `web[01-20]`, `db[1,3,7-9].site`. */
import { Fault } from '../../kernel/fault.js';

/** The most names that one word stands for. */
const MOST_NAMES = 10_000;
const RANGE = /^([^[\]]*)\[([^[\]]*)\](.*)$/s;
const PART = /^(\d{1,9})(?:-(\d{1,9}))?$/;

/** Whether the text holds a range; no name of an agent has a bracket. */
export const isRange = (text: string): boolean => /[[\]]/.test(text);

/**
 * Returns the names in order. A number keeps the leading zeros of the first one: `[08-10]` is 08, 09, 10. Several brackets give every
 * combination. Throws `usage` for a range that is malformed, runs backwards or stands for too many names.
 */
export function expandRanges(text: string): readonly string[] {
  if (!isRange(text)) return [text];
  const [, before = '', list = '', after = ''] = RANGE.exec(text) ?? [];
  if (list === '') throw malformed(text);
  const heads = list.split(',').flatMap((part) => numbersOf(part, text).map((number) => before + number));
  const tails = expandRanges(after);
  if (heads.length * tails.length > MOST_NAMES) throw tooMany(text);
  return heads.flatMap((head) => tails.map((tail) => head + tail));
}

function numbersOf(part: string, text: string): readonly string[] {
  const [, first, last = first] = PART.exec(part.trim()) ?? [];
  if (first === undefined || last === undefined || Number(first) > Number(last)) throw malformed(text);
  const length = Number(last) - Number(first) + 1;
  if (length > MOST_NAMES) throw tooMany(text);
  return Array.from({ length }, (_, index) => String(Number(first) + index).padStart(first.length, '0'));
}

const malformed = (text: string): Fault =>
  new Fault('usage', `"${text}" is no range of nodes`, {
    hint: 'write ranges such as "web[01-20]" or "db[1,3,7-9]", in quotes',
  });

const tooMany = (text: string): Fault =>
  new Fault('usage', `"${text}" stands for more than ${MOST_NAMES} nodes`, { hint: 'choose by tags: --selector' });
