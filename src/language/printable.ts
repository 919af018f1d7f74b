/** Makes text from outside safe to show: it cannot move the cursor, or hide or reorder text. */

// C0 except the tab, DEL, C1, line and paragraph separators, the byte order mark, bidirectional controls, lone surrogates.
const UNSAFE =
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const MAX_SHOWN = 60;

/** Replaces each unsafe character by a visible sign of the same width; keeps tabs. */
export function printable(text: string): string {
  return text.replace(UNSAFE, (character) => {
    const code = character.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? '\u2421' : '\ufffd';
  });
}

/** Formats a value for a message: printable, on one line, at most 60 characters. */
export function shortened(text: string): string {
  const cut = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN - 1)}…` : text;
  return printable(cut).replaceAll('\t', '␉');
}

/** Formats a value like `shortened`, in double quotes. */
export const quoted = (text: string): string => `"${shortened(text)}"`;

/** A resource as messages name it. */
export interface ResourceName {
  readonly kind: string;
  readonly identity: string;
}

/** Returns both identities in quotes, behind their kinds when they are equal: a user and its group often are. */
export const namesApart = (a: ResourceName, b: ResourceName): readonly [string, string] =>
  a.identity === b.identity
    ? [`${a.kind} ${quoted(a.identity)}`, `${b.kind} ${quoted(b.identity)}`]
    : [quoted(a.identity), quoted(b.identity)];
