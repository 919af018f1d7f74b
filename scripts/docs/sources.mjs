/** The files that become pages of the site, and the addresses of the pages. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname } from 'node:path';

/** The address of the reference of the API, which has no Markdown file. */
export const API_OUTPUT = 'api.html';

/** Folders whose files are in the site, and documents beside them. */
const FOLDERS = ['docs', 'examples'];
const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'LICENSE'];

const ASSETS = new Set(['.svg', '.png']);

/**
 * Returns the sources by their path in the repository.
 *
 * @returns {ReadonlyMap<string, {path: string, output: string, kind: 'markdown' | 'text' | 'folder' | 'asset', text: string}>}
 *   `text` is the content of a file, and the names of the files of a folder; it is empty for an asset
 */
export function findSources(root) {
  const below = FOLDERS.flatMap((folder) => [
    folder,
    ...readdirSync(`${root}/${folder}`, { recursive: true, encoding: 'utf8' }).map(
      (name) => `${folder}/${name.replaceAll('\\', '/')}`,
    ),
  ]);
  const all = [...DOCUMENTS, ...below].sort();
  const sources = new Map(all.map((path) => [path, sourceOf(root, path)]));
  // A folder with a README is shown by it.
  for (const [path, { kind }] of sources) {
    if (kind !== 'folder') continue;
    const own = sources.get(`${path}/README.md`);
    if (own !== undefined) sources.set(path, own);
    else if (path.startsWith('docs')) sources.delete(path);
  }
  return sources;
}

function sourceOf(root, path) {
  const file = `${root}/${path}`;
  if (statSync(file).isDirectory()) {
    return {
      path,
      output: `${siteDirectory(path)}index.html`,
      kind: 'folder',
      text: readdirSync(file).sort().join('\n'),
    };
  }
  if (ASSETS.has(extname(path))) return { path, output: siteName(path), kind: 'asset', text: '' };
  const text = readFileSync(file, 'utf8');
  if (path === 'README.md') return { path, output: 'readme.html', kind: 'markdown', text };
  if (path.endsWith('/README.md')) {
    return { path, output: `${siteDirectory(path.slice(0, -'/README.md'.length))}index.html`, kind: 'markdown', text };
  }
  if (path.endsWith('.md')) return { path, output: siteName(path).replace(/\.md$/, '.html'), kind: 'markdown', text };
  return { path, output: `${siteName(path)}.html`, kind: 'text', text };
}

/** Files of `docs/` are at the top of the site. */
const siteName = (path) => path.replace(/^docs\//, '');

const siteDirectory = (path) => (path === 'docs' ? '' : `${siteName(path)}/`);
