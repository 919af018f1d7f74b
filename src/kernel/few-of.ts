/** Names of a long list in a message. */

/** Maximum number of names in a message. */
const NAMED = 5;

/** Returns a text such as `a, b and 2 more`. */
export function fewOf(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${names.slice(0, NAMED).join(', ')}${more}`;
}
