/** Tags as people give them. */

/** `KEY` or `KEY=VALUE`; a value may hold further equals signs. */
export function parseTag(text: string): readonly [key: string, value: string] {
  const at = text.indexOf('=');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
