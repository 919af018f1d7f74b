/** Blanks that look like spaces in an indentation and are none for YAML. */

const NAMES: Readonly<Record<string, string>> = {
  '\u00a0': 'no-break space',
  '\u202f': 'narrow no-break space',
  '\u200b': 'zero-width space',
  '\u3000': 'ideographic space',
};

/** Returns advice about such a blank; null for every other character. */
export function blankAdvice(letter: string): string | null {
  const name = NAMES[letter];
  if (name === undefined) return null;
  const code = letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
  return `a ${name} (U+${code}) stands in the indentation; YAML is indented with spaces, so replace it`;
}
