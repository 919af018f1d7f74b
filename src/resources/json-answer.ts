/** Reads answers in JSON of programs whose shapes are not quite fixed: what is not as expected counts as not there. */

/** A list as ConvertTo-Json writes it: a single one may stand alone, and some lists stand in an object with their count. */
export function listOf(value: unknown): readonly unknown[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value;
  if (isRecord(value) && Array.isArray(value.value) && typeof value.Count === 'number') return value.value;
  return [value];
}

/** The members of a list that are objects. */
export const recordsOf = (value: unknown): readonly Readonly<Record<string, unknown>>[] =>
  listOf(value).filter(isRecord);

/** The members of a list that are texts. */
export const textsOf = (value: unknown): readonly string[] =>
  listOf(value).filter((item): item is string => typeof item === 'string');

/** A text; empty for all else, as where Windows says null. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
