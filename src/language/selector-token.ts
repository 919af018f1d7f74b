/** The words and signs of a selector with their places. */

export interface SelectorToken {
  readonly type: 'word' | '=' | '==' | '!=' | '!' | ',' | '(' | ')' | '*' | 'unknown' | 'end';
  readonly text: string;
  /** From 0. */
  readonly offset: number;
}

/** A word is a key or a value: anything but white space, control characters, quotes and the signs of the grammar. */
const TOKEN = /(?<word>[^\s\u0000-\u001f\u007f-\u009f"'`=!,()*<>]+)|(?<sign>==|!=|[=!,()*])|(?<unknown>\S)/gu;

const SIGNS = ['=', '==', '!=', '!', ',', '(', ')', '*'] as const;

export function selectorTokens(text: string): readonly SelectorToken[] {
  const tokens: SelectorToken[] = [];
  for (const { 0: found, index, groups } of text.matchAll(TOKEN)) {
    const sign = SIGNS.find((candidate) => candidate === groups?.sign);
    tokens.push({ type: groups?.word !== undefined ? 'word' : (sign ?? 'unknown'), text: found, offset: index });
  }
  return tokens;
}
