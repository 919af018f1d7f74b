/** Options of the search index, the same when it is built and when it is read. */
export const SEARCH_OPTIONS = {
  fields: ['title', 'heading', 'text'],
  storeFields: ['title', 'heading', 'excerpt'],
  // Names such as `drift.max_concurrent` are found by their words.
  tokenize: (text) => text.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== ''),
  searchOptions: {
    boost: { title: 6, heading: 3 },
    prefix: true,
    fuzzy: (word) => (word.length > 4 ? 0.15 : false),
    combineWith: 'AND',
  },
};
