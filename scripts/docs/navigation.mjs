/** The order of the pages: sections, and within them pages or groups of pages. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const MARKDOWN_LINK = /\]\(((?:cli|kinds)\/[\w-]+\.md)\)/g;

/**
 * Returns the sections as `{title, items}`. An item is a page, or a group `{title, items}` of pages. Throws an Error for a page of
 * `docs/` that has no place.
 */
export function navigationOf(root, pages) {
  const byPath = new Map(pages.map((page) => [page.path, page]));
  const read = (name) => readFileSync(`${root}/docs/${name}`, 'utf8');
  const placed = new Set();
  const place = (path) => {
    const page = byPath.get(path);
    if (page === undefined) throw new Error(`the navigation names ${path}, which is not in the site`);
    placed.add(path);
    return page;
  };
  const list = (...names) => names.map(place);
  const docs = (...names) => list(...names.map((name) => `docs/${name}`));
  const present = (...names) => docs(...names.filter((name) => existsSync(`${root}/docs/${name}`)));
  const guides = existsSync(`${root}/docs/guides`)
    ? readdirSync(`${root}/docs/guides`).filter((name) => name.endsWith('.md'))
    : [];
  const commands = read('cli.md')
    .split(/^## /m)
    .slice(1)
    .map((section) => ({ title: section.split('\n')[0], items: docs(...linksOf(section)) }))
    .filter(({ items }) => items.length > 0);
  const sections = [
    { title: 'Start', items: docs('README.md', 'start.md', 'install.md') },
    { title: 'Concepts', items: docs('concepts.md', 'applying.md', 'security.md') },
    {
      title: 'Module language',
      items: [
        ...docs('how-do-i.md', 'modules.md', 'expressions.md', 'values.md', 'templates.md', 'absence.md'),
        ...docs('health-checks.md', 'facts.md', 'module-messages.md'),
        ...list('examples/README.md'),
      ],
    },
    { title: 'Kinds', items: docs('kinds.md', ...linksOf(read('kinds.md'))) },
    {
      title: 'Guides',
      items: docs(
        // The overview of the guides comes first.
        ...guides
          .sort((one, other) => (other === 'README.md') - (one === 'README.md') || one.localeCompare(other))
          .map((name) => `guides/${name}`),
        'terminal.md',
        'upgrading.md',
        'compatibility.md',
        'backup.md',
        'scale-out.md',
        'sizing.md',
        'windows-and-macos.md',
      ),
    },
    { title: 'CLI reference', items: [...docs('cli.md'), ...commands] },
    { title: 'API reference', items: docs('api') },
    {
      title: 'Reference',
      items: docs(
        'configuration.md',
        'reference/events.md',
        'reference/metrics.md',
        'errors.md',
        'reference/exit-statuses.md',
        'reference/json.md',
        'protocols/agent-link.md',
        'protocols/apply.md',
        'protocols/terminal.md',
        'protocols/forward.md',
        'protocols/copy.md',
        'protocols/limits.md',
      ),
    },
    { title: 'Glossary and FAQ', items: present('glossary.md', 'faq.md') },
    { title: 'Project', items: list('README.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md') },
  ].filter(({ items }) => items.length > 0);
  const lost = pages.filter(({ path }) => path.startsWith('docs/') && !placed.has(path)).map(({ path }) => path);
  if (lost.length > 0) throw new Error(`scripts/docs/navigation.mjs gives no place to ${lost.join(', ')}`);
  return sections;
}

/** Returns the pages that an index page links to in its tables, each once, in order. */
const linksOf = (text) => [...new Set([...text.matchAll(MARKDOWN_LINK)].map(([, path]) => path))];

/** Returns the pages of sections in reading order. */
export const pagesOf = (items) => items.flatMap((item) => ('items' in item ? pagesOf(item.items) : [item]));
