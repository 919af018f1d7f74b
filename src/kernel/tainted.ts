/**
 * Text that contains secrets. `mask*` hides parts whose position is known; `scrubber` removes known values from text in
 * which their position is unknown, as a second line of defence.
 */

/** A part of a text that comes from a secret: `start` inclusive, `end` exclusive, in UTF-16 code units. */
export interface Span {
  readonly start: number;
  readonly end: number;
  /** Name of the secret. */
  readonly secret: string;
  /** Four hex digits of a keyed hash of the value. They show that the value changed without revealing it. */
  readonly tag: string;
}

/** Returns the placeholder of a secret's value in everything that is shown, logged or stored. */
export const maskOf = (span: Pick<Span, 'secret' | 'tag'>): string => `‹secret ${span.secret} #${span.tag}›`;

/** Replaces every span by its mask. Spans are ordered and do not overlap. */
export function mask(text: string, spans: readonly Span[] | undefined): string {
  if (!spans?.length) return text;
  let shown = '';
  let from = 0;
  for (const span of spans) {
    shown += text.slice(from, span.start) + maskOf(span);
    from = span.end;
  }
  return shown + text.slice(from);
}

const MASKED = '‹masked›';
const MASKED_LINE = '‹masked line›';

/** Masks every line of a text whose secrets have unknown positions. */
export const maskLines = (text: string): string => eachLine(text, () => MASKED_LINE);

/** Masks every line that does not also occur in `known`, a text without secrets. */
export function maskForeignLines(text: string, known: string): string {
  const lines = new Set(known.split('\n'));
  return eachLine(text, (line) => (lines.has(line) ? line : MASKED_LINE));
}

/**
 * Masks a text from the machine with the spans of its wanted counterpart. Lines that the counterpart has without a secret
 * stay visible. A line that matches the literal parts around a secret shows only those parts. Every other line is masked,
 * and so is every line without a counterpart. Without spans the text is returned unchanged.
 */
export function maskCounterpart(text: string, spans: readonly Span[] | undefined, counterpart?: string): string {
  if (!spans?.length) return text;
  if (counterpart === undefined) return maskLines(text);
  const { clean, tainted } = linesOf(counterpart, spans);
  return eachLine(text, (line) => (clean.has(line) ? line : maskLine(line, tainted)));
}

function eachLine(text: string, show: (line: string) => string): string {
  if (text === '') return text;
  const ending = text.endsWith('\n') ? '\n' : '';
  const lines = (ending ? text.slice(0, -1) : text).split('\n');
  return lines.map(show).join('\n') + ending;
}

/** A line with secrets, and the literal parts before, between and after them. */
interface TaintedLine {
  readonly text: string;
  readonly masked: string;
  readonly literals: readonly string[];
}

interface KnownLines {
  readonly clean: ReadonlySet<string>;
  readonly tainted: readonly TaintedLine[];
}

function linesOf(text: string, spans: readonly Span[]): KnownLines {
  const clean = new Set<string>();
  const tainted: TaintedLine[] = [];
  let start = 0;
  let next = 0;
  for (const line of text.split('\n')) {
    const end = start + line.length;
    while (next < spans.length && (spans[next] as Span).end <= start) next += 1;
    const inside: Span[] = [];
    for (let at = next; at < spans.length && (spans[at] as Span).start <= end; at += 1) inside.push(spans[at] as Span);
    if (inside.length === 0) clean.add(line);
    else if (inside.every((span) => span.start >= start && span.end <= end)) tainted.push(cut(line, start, inside));
    start = end + 1;
  }
  return { clean, tainted };
}

function cut(line: string, start: number, spans: readonly Span[]): TaintedLine {
  const own = spans.map((span) => ({ ...span, start: span.start - start, end: span.end - start }));
  const literals = own.map((span, index) => line.slice(own[index - 1]?.end ?? 0, span.start));
  return { text: line, masked: mask(line, own), literals: [...literals, line.slice(own.at(-1)?.end)] };
}

function maskLine(line: string, tainted: readonly TaintedLine[]): string {
  const same = tainted.find(({ text }) => text === line);
  if (same) return same.masked;
  const fitting = tainted.find(({ literals }) => literals.some((literal) => literal !== '') && fits(line, literals));
  return fitting ? fitting.literals.join(MASKED) : MASKED_LINE;
}

/** Returns true when the line contains the literal parts in order, the first at its start and the last at its end. */
function fits(line: string, literals: readonly string[]): boolean {
  const first = literals[0] ?? '';
  const last = literals.at(-1) ?? '';
  if (!line.startsWith(first) || !line.endsWith(last) || line.length < first.length + last.length) return false;
  let from = first.length;
  for (const literal of literals.slice(1, -1)) {
    const at = line.indexOf(literal, from);
    if (at < 0) return false;
    from = at + literal.length;
  }
  return from <= line.length - last.length;
}

/** A value that must not be shown, and the text shown in its place. */
export interface Scrubbed {
  readonly value: string;
  readonly shown: string;
}

/** Shorter values also occur as common words. */
export const MIN_SCRUBBED_LENGTH = 6;

/** Minimum length at which a line of a multi-line value is also searched for alone. */
const MIN_SCRUBBED_LINE = 12;

/**
 * Returns a function that replaces the values in a text: plain, in base64, URL-encoded and JSON-escaped. It ignores values
 * of fewer than `MIN_SCRUBBED_LENGTH` characters.
 */
export function scrubber(secrets: Iterable<Scrubbed>): (text: string) => string {
  const forms = allForms(secrets);
  return (text) => scrub(text, forms);
}

/**
 * Returns a function that scrubs a text whose middle was left out. It also removes the start of a value before the gap
 * and the end of a value after it.
 */
export function gapScrubber(secrets: Iterable<Scrubbed>): (before: string, behind: string) => [string, string] {
  const forms = allForms(secrets);
  return (before, behind) => [withoutBeginning(scrub(before, forms), forms), withoutEnd(scrub(behind, forms), forms)];
}

type Forms = readonly (readonly [form: string, shown: string])[];

const scrub = (text: string, forms: Forms): string =>
  forms.reduce((rest, [form, shown]) => rest.replaceAll(form, () => shown), text);

/** Returns all forms of all values, longest first, so that a form is replaced before any form inside it. */
function allForms(secrets: Iterable<Scrubbed>): Forms {
  const shownFor = new Map<string, string>();
  for (const { value, shown } of secrets) {
    // Programs strip the line end of a value from a file, and show single lines of it.
    for (const text of [value, value.trimEnd(), ...longLinesOf(value)]) {
      if (text.length < MIN_SCRUBBED_LENGTH) continue;
      for (const form of formsOf(text)) if (!shownFor.has(form)) shownFor.set(form, shown);
    }
  }
  return [...shownFor].sort(([a], [b]) => b.length - a.length);
}

/** A shorter piece of a value reveals next to nothing. */
const MIN_PIECE = 4;

/** Replaces the longest start of a form at the end of the text. */
function withoutBeginning(text: string, forms: Forms): string {
  const [length, shown] = longest(forms, (form) => overlap(text.slice(-form.length), form));
  return length === 0 ? text : text.slice(0, -length) + shown;
}

/** Replaces the longest end of a form at the start of the text. */
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

/** Returns the length of the longest suffix of `one` that is a prefix of `other`. */
function overlap(one: string, other: string): number {
  for (let length = Math.min(one.length, other.length); length > 0; length -= 1) {
    if (one.endsWith(other.slice(0, length))) return length;
  }
  return 0;
}

/** Returns the long lines of a multi-line value. */
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

/** Returns the base64 digits that depend on these bytes alone, when `offset` other bytes precede them. */
function base64Inside(bytes: readonly number[], offset: number): string {
  const digits = base64Of([...Array.from({ length: offset }, () => 0), ...bytes]);
  return digits.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
}

/** Encodes UTF-8 without platform modules. */
const bytesOf = (text: string): readonly number[] =>
  [...encodeURIComponent(text).matchAll(/%([0-9A-F]{2})|(.)/g)].map(([, hex, plain = '']) =>
    hex === undefined ? plain.charCodeAt(0) : Number.parseInt(hex, 16),
  );

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Encodes base64 without padding, so that a search finds it with and without. */
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
