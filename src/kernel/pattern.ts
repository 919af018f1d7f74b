/** Patterns of inputs and of lines, in the syntax of RE2: their time grows only with the text. */
import { RE2JS, RE2JSException } from 're2js';

/** Maximum characters of a pattern. */
const MAX_PATTERN = 512;

export interface Pattern {
  readonly source: string;
  /** Returns true if the pattern matches anywhere in a text. */
  test(text: string): boolean;
}

/** Returns a compiled pattern, or what is wrong with it. */
export function readPattern(source: string): Pattern | string {
  if (source.length > MAX_PATTERN) return `a pattern has at most ${MAX_PATTERN} characters`;
  try {
    const pattern = RE2JS.compile(source);
    return { source, test: (text) => pattern.matcher(text).find() };
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    const reason = error.message.replace(/^error parsing regexp: /, '');
    return `this is no pattern (${reason}); patterns follow the syntax of RE2, without look-around and back-references`;
  }
}
