/** Names in a sentence. */

/** Names that are shown; of more, the number. */
const SHOWN = 5;

export function listed(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).join(', ');
  return names.length > SHOWN ? `${shown} and ${names.length - SHOWN} more` : shown;
}
