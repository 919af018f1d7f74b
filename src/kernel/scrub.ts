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
  const shownFor = new Map<string, string>();
  for (const { value, shown } of secrets) {
    // A value from a file ends with a line end, which programs take off; of several lines they show one.
    for (const text of [value, value.trimEnd(), ...longLinesOf(value)]) {
      if (text.length < MIN_SCRUBBED_LENGTH) continue;
      for (const form of formsOf(text)) if (!shownFor.has(form)) shownFor.set(form, shown);
    }
  }
  // What contains another one goes first.
  const forms = [...shownFor].sort(([a], [b]) => b.length - a.length);
  return (text) => forms.reduce((rest, [form, shown]) => rest.replaceAll(form, () => shown), text);
}

/** Lines that are no common words, of a value that has several. */
const longLinesOf = (value: string): readonly string[] =>
  value.trimEnd().includes('\n') ? value.split(/\r?\n/).filter((line) => line.length >= MIN_SCRUBBED_LINE) : [];

function formsOf(value: string): readonly string[] {
  const escaped = JSON.stringify(value).slice(1, -1);
  const text = value.replaceAll(/\p{Surrogate}/gu, '\ufffd');
  const base64 = base64Of(bytesOf(text));
  const encoded = encodeURIComponent(text);
  return [
    value,
    escaped,
    escaped.replaceAll('/', '\\/'),
    base64,
    base64.replaceAll('+', '-').replaceAll('/', '_'),
    encoded,
    encoded.replaceAll('%20', '+'),
    encoded.replaceAll(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase()),
  ];
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
