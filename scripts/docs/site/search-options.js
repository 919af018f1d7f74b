/** Options of the search index, the same when it is built and when it is read. */

/** Returns the form in which a word is found: in small letters, the same for singular and plural. */
export function formOf(word) {
  const singular = word.toLowerCase().replace(/(?<=..[^siu])s$/, '');
  // For "statuses" and "status", and therefore for "machines" and "machine".
  return singular.replace(/(?<=...)e$/, '');
}

export const SEARCH_OPTIONS = {
  fields: ['title', 'heading', 'text'],
  storeFields: ['title', 'heading', 'excerpt'],
  // Names such as `drift.max_concurrent` are found by their words.
  tokenize: (text) => text.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== ''),
  processTerm: formOf,
  searchOptions: {
    boost: { title: 2, heading: 4 },
    prefix: (word) => word.length > 2,
    weights: { fuzzy: 0.1, prefix: 0.3 },
  },
};
