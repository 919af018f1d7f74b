/** What the filters of expressions do with values. Results are bounded. */
import { quoted } from './printable.js';
import { isList, isMap, isSound, textOf, type Value } from './values.js';
import { EvaluationError, type Work } from './work.js';

/** Maximum characters of a result. */
const MAX_FILTERED = 65_536;

/** Characters that a filter looks at in the time of a replaced place. */
const PLACE = 8;

export function bounded(length: number): void {
  if (length > MAX_FILTERED) throw new EvaluationError(`a filter gives more than ${MAX_FILTERED} characters`);
}

/** Returns a number if it is exact. */
export function exact(number: number): number {
  if (!isSound(number)) throw new EvaluationError('a filter gives a number that is too large');
  return number === 0 ? 0 : number;
}

/** Divides; a whole number by a whole number gives a whole number, rounded down, as in Liquid. */
export function divide(number: number, by: number): number {
  const quotient = number / nonZero(by);
  return Number.isInteger(number) && Number.isInteger(by) ? Math.floor(quotient) : quotient;
}

/** Returns the remainder of a division that rounds down. */
export function remainder(number: number, by: number): number {
  return number - nonZero(by) * Math.floor(number / by);
}

function nonZero(divisor: number): number {
  if (divisor === 0) throw new EvaluationError('a number is divided by 0');
  return divisor;
}

export function numberOf(text: string): number {
  const trimmed = text.trim();
  if (/^[-+]?\d+(\.\d+)?$/.test(trimmed) && isSound(Number(trimmed))) return Number(trimmed);
  throw new EvaluationError(`${quoted(text)} is no number`);
}

/** Compares numbers by size, and other values by the code units of their text. */
export function inOrder(a: Value, b: Value): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  const [left, right] = [textOf(a), textOf(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Returns one field of each element of a list. */
export function fieldOfEach(value: Value, field = ''): Value {
  return (isList(value) ? value : []).map((element) => {
    const found = isMap(element) && Object.hasOwn(element, field) ? element[field] : undefined;
    if (found === undefined) throw new EvaluationError(`an element has no ${quoted(field)}`);
    return found;
  });
}

/** Returns the number of elements, of members, or of the characters of a text. */
export function sizeOf(value: Value): number {
  if (isList(value)) return value.length;
  return isMap(value) ? Object.keys(value).length : charactersOf(textOf(value));
}

/** Counts code points: a pair of surrogates is one. */
function charactersOf(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) count += 1;
  return count;
}

/** Returns YAML in blocks; `space` is the indentation of the value. Starts with a line end if it has several lines. */
export function yamlOf(value: Value, space: string): string {
  if (isList(value) && value.length > 0) {
    return value.map((item) => `\n${space}- ${yamlOf(item, `${space}  `).replace(/^\n +/, '')}`).join('');
  }
  if (isMap(value) && Object.keys(value).length > 0) {
    const members = Object.entries(value).map(([name, member]) => {
      const written = yamlOf(member, `${space}  `);
      return `\n${space}${scalarOf(name)}:${written.startsWith('\n') ? '' : ' '}${written}`;
    });
    return members.join('');
  }
  return typeof value === 'string' ? scalarOf(value) : JSON.stringify(value);
}

/** Returns a text as a scalar that YAML 1.1 and 1.2 read as that text. */
const scalarOf = (text: string): string =>
  /^[A-Za-z_][\w./-]*$/.test(text) && !/^(?:y|n|yes|no|on|off|true|false|null)$/i.test(text)
    ? text
    : JSON.stringify(text);

/** Splits a text; an empty one has no parts. */
export function split(text: string, separator = ''): readonly string[] {
  return text === '' ? [] : text.split(separator);
}

/** Counts before it replaces, because each place takes the time of many characters. Throws `EvaluationError`. */
export function replace(text: string, part: string, by: string, work: Work): string {
  let found = 0;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) found += 1;
  work.read(found * PLACE);
  bounded(text.length + found * (by.length - part.length));
  // Half the time of `replaceAll`.
  return text.split(part).join(by);
}

export function joined(items: readonly string[], separator: string): string {
  bounded(items.reduce((sum, { length }) => sum + length, 0) + Math.max(0, items.length - 1) * separator.length);
  return items.join(separator);
}

/** Indents every line but the first, which stands where the expression stands. Empty lines stay empty. */
export function indent(text: string, count = '0'): string {
  const lines = text.split('\n');
  bounded(text.length + lines.length * Number(count));
  const space = ' '.repeat(Number(count));
  return lines.map((line, index) => (index === 0 || line === '' ? line : space + line)).join('\n');
}

/**
 * Returns a whole number from 0 to below `count`, always the same for a text, and evenly spread over many texts: FNV-1a
 * of its UTF-16 units, whose bits the last step of MurmurHash3 mixes, because that of like texts differ in few.
 */
export function spread(text: string, count = '1'): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return String(((hash ^ (hash >>> 16)) >>> 0) % Number(count));
}

/** Compares versions number by number: "12.10" is at least "12.4". Texts between the numbers do not count. */
export function isAtLeast(version: string, wanted = ''): boolean {
  const [have, need] = [numbersOf(version), numbersOf(wanted)];
  for (const [index, number] of need.entries()) {
    const own = have[index] ?? 0n;
    if (own !== number) return own > number;
  }
  return true;
}

const numbersOf = (version: string): readonly bigint[] => (version.match(/\d+/g) ?? []).slice(0, 16).map(toNumber);

const toNumber = (digits: string): bigint => BigInt(digits.slice(0, 64));
