/** Fits the texts of the help to the width of a terminal: breaks between words only. */
import { type Line, type LinesView, linesOf, styled } from '../outcome.js';
import type { OutputStream } from '../render/streams.js';

/** Columns of the help where the terminal's width is unknown, and the most and fewest that it uses. */
const USUAL = 80;
const WIDEST = 100;
const NARROWEST = 40;

const INDENT = '  ';
const GAP = '  ';

/** Returns the columns of the help on a stream. */
export function helpWidth({ isTTY, columns }: Pick<OutputStream, 'isTTY' | 'columns'>): number {
  const known = isTTY === true && columns !== undefined && columns > 0 ? columns : USUAL;
  return Math.max(NARROWEST, Math.min(known, WIDEST));
}

/** Returns the text in lines of at most `width` columns. A longer word has a line of its own. */
export function wrapWords(text: string, width: number): readonly string[] {
  return join(text.split(' '), { width, last: width, between: ' ' });
}

/** Joins entries to paragraphs, and wraps each. An entry that does not end a sentence continues in the next entry. */
export function paragraphs(entries: readonly string[], width: number): LinesView {
  const all: string[] = [];
  let open = false;
  for (const entry of entries) {
    all.push(open ? `${all.pop() ?? ''} ${entry}` : entry);
    open = !/[.!?]["”)]?$/.test(entry);
  }
  // Indented further lines show where the next paragraph begins.
  const hanging = all.length > 1 ? INDENT : '';
  return linesOf(
    all.flatMap((paragraph) =>
      wrapWords(paragraph, width - hanging.length).map((line, index) => (index === 0 ? line : hanging + line)),
    ),
  );
}

/** Returns a command line in lines of at most `width` columns, continued as in a shell. Quoted words stay whole. */
export function wrapCommand(line: string, width: number): readonly string[] {
  const words = line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
  return join(words, { width: width - CONTINUED.length, last: width, between: ' ' }).map((part, index, parts) =>
    index < parts.length - 1 ? `${part}${CONTINUED}` : part,
  );
}

const CONTINUED = ' \\';

interface Joining {
  readonly width: number;
  /** Columns of the last line. */
  readonly last: number;
  readonly between: string;
}

function join(words: readonly string[], { width, last, between }: Joining): readonly string[] {
  const all: string[] = [];
  let current: string | undefined;
  for (const [index, word] of words.entries()) {
    const longer: string = current === undefined ? word : `${current}${between}${word}`;
    const room = index === words.length - 1 ? last : width;
    if (current !== undefined && longer.length > room) {
      all.push(current);
      current = word;
    } else current = longer;
  }
  return current === undefined ? [] : [...all, current];
}

/**
 * Returns terms with their meanings beside them. A term that would leave its meaning too little room stands on a line of
 * its own.
 */
export function terms(rows: readonly (readonly [term: string, meaning: string])[], width: number): LinesView {
  const most = Math.floor((width - INDENT.length - GAP.length) * 0.42);
  const fitting = rows.map(([term]) => term.length).filter((length) => length <= most);
  const column = Math.max(0, ...fitting);
  // Without a fitting term all meanings stand below their terms.
  const beside = INDENT + ' '.repeat(fitting.length === 0 ? 4 : column) + GAP;
  return linesOf(
    rows.flatMap(([term, meaning]): readonly Line[] => {
      const [first = '', ...rest] = wrapWords(meaning, width - beside.length);
      const below = rest.map((line) => beside + line);
      if (term.length > column) return [INDENT + term, beside + first, ...below];
      return [INDENT + term.padEnd(column) + GAP + first, ...below];
    }),
  );
}

/** Returns example command lines, each behind the prompt of a shell. */
export function examples(all: readonly string[], width: number): LinesView {
  return linesOf(
    all.flatMap((example) =>
      wrapCommand(example, width - 6).map(
        (line, index): Line => (index === 0 ? [INDENT, styled('dim', '$ '), line] : `${INDENT}    ${line}`),
      ),
    ),
  );
}
