/** Which secrets a definition names. */
import { hasExpression, parseText } from './expression.js';

/** The names in every text of a value, whatever becomes of the text; they may be more than one agent needs. */
export function secretNames(value: unknown): ReadonlySet<string> {
  const names = new Set<string>();
  collect(value, names);
  return names;
}

function collect(value: unknown, names: Set<string>): void {
  if (typeof value === 'string') {
    if (!hasExpression(value)) return;
    for (const part of parseText(value).parts) {
      if (typeof part !== 'string' && part.from === 'secrets') names.add(part.name);
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) collect(member, names);
  }
}
