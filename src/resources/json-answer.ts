/** Reads JSON answers of programs with varying shapes; unexpected values count as absent. */

/** Returns a list as ConvertTo-Json writes it: a single member may stand alone, and a list may be wrapped with its count. */
function listOf(value: unknown): readonly unknown[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value;
  if (isRecord(value) && Array.isArray(value.value) && typeof value.Count === 'number') return value.value;
  return [value];
}

/** Returns the members of a list that are objects. */
export const recordsOf = (value: unknown): readonly Readonly<Record<string, unknown>>[] =>
  listOf(value).filter(isRecord);

/** Returns the members of a list that are texts. */
export const textsOf = (value: unknown): readonly string[] =>
  listOf(value).filter((item): item is string => typeof item === 'string');

/** Returns a text, or an empty one for any other value, such as null. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
