/** The search index of the site, which the page's script reads with the same options. */
import MiniSearch from 'minisearch';
import { SEARCH_OPTIONS } from './site/search-options.js';

/** Letters of a section that a result shows. */
const EXCERPT = 160;

/** Returns the index of the sections of all pages, in the library's serialised form. */
export function searchIndex(pages) {
  const index = new MiniSearch(SEARCH_OPTIONS);
  index.addAll(
    pages.flatMap(({ title, output, sections }) =>
      sections
        .filter(({ anchor, text }) => anchor === '' || text.trim() !== '' || sections.length > 1)
        .map(({ anchor, heading, text }) => ({
          id: anchor === '' ? output : `${output}#${anchor}`,
          title,
          heading,
          text,
          excerpt: text.replaceAll(/\s+/g, ' ').trim().slice(0, EXCERPT),
        })),
    ),
  );
  return index.toJSON();
}
