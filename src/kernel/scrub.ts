/** A net under the masking of secrets: takes known values out of a text of which nobody knows where they are. */

/** A value that must not be shown, and what is shown for it. */
export interface Scrubbed {
  readonly value: string;
  readonly shown: string;
}

/** Shorter values are common words too. */
export const MIN_SCRUBBED_LENGTH = 6;

/** A line of a value of several lines is looked for by itself from that length on. */
const MIN_SCRUBBED_LINE = 12;

/**
 * Makes the function that replaces the values wherever they stand in a text: as they are, in base64, URL-encoded and as in
 * a JSON string. Values of fewer than `MIN_SCRUBBED_LENGTH` characters are left alone.
 */
export function scrubber(secrets: Iterable<Scrubbed>): (text: string) => string {
  const forms = allForms(secrets);
  return (text) => scrub(text, forms);
}

/**
 * Makes the function that does the same to a text of which the middle was left out: what stands before and behind the gap
 * may also be the beginning and the end of a value that the cut went through.
 */
export function gapScrubber(secrets: Iterable<Scrubbed>): (before: string, behind: string) => [string, string] {
  const forms = allForms(secrets);
  return (before, behind) => [withoutBeginning(scrub(before, forms), forms), withoutEnd(scrub(behind, forms), forms)];
}

type Forms = readonly (readonly [form: string, shown: string])[];

const scrub = (text: string, forms: Forms): string =>
  forms.reduce((rest, [form, shown]) => rest.replaceAll(form, () => shown), text);

/** What contains another one goes first. */
function allForms(secrets: Iterable<Scrubbed>): Forms {
  const shownFor = new Map<string, string>();
  for (const { value, shown } of secrets) {
    // A value from a file ends with a line end, which programs take off; of several lines they show one.
    for (const text of [value, value.trimEnd(), ...longLinesOf(value)]) {
      if (text.length < MIN_SCRUBBED_LENGTH) continue;
      for (const form of formsOf(text)) if (!shownFor.has(form)) shownFor.set(form, shown);
    }
  }
  return [...shownFor].sort(([a], [b]) => b.length - a.length);
}

/** A shorter piece of a value tells next to nothing. */
const MIN_PIECE = 4;

/** The longest beginning of a form that the text ends with is taken out. */
function withoutBeginning(text: string, forms: Forms): string {
  const [length, shown] = longest(forms, (form) => overlap(text.slice(-form.length), form));
  return length === 0 ? text : text.slice(0, -length) + shown;
}

/** The longest end of a form that the text begins with is taken out. */
function withoutEnd(text: string, forms: Forms): string {
  const [length, shown] = longest(forms, (form) => overlap(form, text.slice(0, form.length)));
  return length === 0 ? text : shown + text.slice(length);
}

function longest(forms: Forms, lengthIn: (form: string) => number): readonly [length: number, shown: string] {
  let best: readonly [number, string] = [0, ''];
  for (const [form, shown] of forms) {
    const length = lengthIn(form);
    if (length >= MIN_PIECE && length > best[0]) best = [length, shown];
  }
  return best;
}

/** How many characters at the end of one text are those that the other one begins with. */
function overlap(one: string, other: string): number {
  for (let length = Math.min(one.length, other.length); length > 0; length -= 1) {
    if (one.endsWith(other.slice(0, length))) return length;
  }
  return 0;
}

/** Lines that are no common words, of a value that has several. */
const longLinesOf = (value: string): readonly string[] =>
  value.trimEnd().includes('\n') ? value.split(/\r?\n/).filter((line) => line.length >= MIN_SCRUBBED_LINE) : [];

function formsOf(value: string): readonly string[] {
  const escaped = JSON.stringify(value).slice(1, -1);
  const text = value.replaceAll(/\p{Surrogate}/gu, '\ufffd');
  const base64 = base64Of(bytesOf(text));
  const pieces = [0, 1, 2].map((offset) => base64Inside(bytesOf(text), offset));
  const encoded = encodeURIComponent(text);
  return [
    value,
    escaped,
    escaped.replaceAll('/', '\\/'),
    ...[base64, ...pieces].flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')]),
    ...LINE_LENGTHS.filter((length) => base64.length > length).map((length) => wrapped(base64, length)),
    encoded,
    encoded.replaceAll('%20', '+'),
    encoded.replaceAll(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase()),
  ];
}

/** Columns at which programs break lines of base64. */
const LINE_LENGTHS = [64, 76];

const wrapped = (text: string, length: number): string =>
  Array.from({ length: Math.ceil(text.length / length) }, (_, line) =>
    text.slice(line * length, (line + 1) * length),
  ).join('\n');

/** The digits that the bytes alone decide when so many others come before them, and whatever comes behind. */
function base64Inside(bytes: readonly number[], offset: number): string {
  const digits = base64Of([...Array.from({ length: offset }, () => 0), ...bytes]);
  return digits.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
}

/** UTF-8, by way of the only encoder that every JavaScript has. */
const bytesOf = (text: string): readonly number[] =>
  [...encodeURIComponent(text).matchAll(/%([0-9A-F]{2})|(.)/g)].map(([, hex, plain = '']) =>
    hex === undefined ? plain.charCodeAt(0) : Number.parseInt(hex, 16),
  );

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Without padding, so that it is found with and without. */
function base64Of(bytes: readonly number[]): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const [first = 0, second = 0, third = 0] = bytes.slice(at, at + 3);
    const group = (first << 16) | (second << 8) | third;
    const digits = Math.min(bytes.length - at, 3) + 1;
    for (let digit = 0; digit < digits; digit += 1) text += ALPHABET[(group >> (18 - 6 * digit)) & 63];
  }
  return text;
}
