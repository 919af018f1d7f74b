/** The kind of terminal that one types at, as the API takes it. */

/** Null for none, and for what is no name of a terminal. */
export const openableTerm = (term: string | undefined): string | null =>
  term !== undefined && /^[A-Za-z0-9][A-Za-z0-9+._-]{0,63}$/.test(term) ? term : null;
