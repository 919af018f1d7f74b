/** Text that holds secrets: which parts came from which secret, and the one way to show it. */

/** A part of a text that came from a secret: `start` inclusive, `end` exclusive, in UTF-16 code units. */
export interface Span {
  readonly start: number;
  readonly end: number;
  /** Name of the secret. */
  readonly secret: string;
  /** Four hex digits of a keyed hash of the value: they tell whether it changed, not what it is. */
  readonly tag: string;
}

/** What stands in place of a secret's value wherever a text is shown, logged or stored. */
export const maskOf = (span: Pick<Span, 'secret' | 'tag'>): string => `‹secret ${span.secret} #${span.tag}›`;

/** The text with every span replaced by its mask. Spans are ordered and do not overlap. */
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

/** A text of which nobody knows where its secrets are: every line of it masked. */
export const maskLines = (text: string): string => eachLine(text, () => MASKED_LINE);

/** A text that may hold secrets of which nothing is known: lines that a text without secrets has too are shown, no other. */
export function maskForeignLines(text: string, known: string): string {
  const lines = new Set(known.split('\n'));
  return eachLine(text, (line) => (lines.has(line) ? line : MASKED_LINE));
}

/**
 * A text known only in the clear (what is on the machine now), masked with what is known of its counterpart. Lines that
 * the counterpart has without a secret are shown; of a line that fits around a secret only the literal text is shown;
 * every other line is masked as a whole, and so is every line when the counterpart itself is not given. A text without
 * tainted spans is returned as it is.
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

/** A line with secrets: its text, and the literal parts before, between and after them. */
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

/** Whether the literal parts stand in the line in their order, the first at its begin and the last at its end. */
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
