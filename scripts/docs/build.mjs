/**
 * Builds the documentation site: `node scripts/docs/build.mjs [DIRECTORY]`, by default into `dist/docs/`. The pages are the Markdown
 * files of `docs/`, the examples and the project's own documents, and the reference of the API. The site works from `file://`: it
 * loads nothing from another host, and its search runs in the page.
 */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { apiPage } from '../../dist/src/contract/api-page.js';
import { CONTRACT } from '../../dist/src/contract/contract.js';
import { openApiDocument } from '../../dist/src/contract/openapi.js';
import { VERSION } from '../../dist/src/kernel/version.js';
import { layout } from './layout.mjs';
import { createRenderer } from './markdown.mjs';
import { navigationOf } from './navigation.mjs';
import { searchIndex } from './search.mjs';
import { API_OUTPUT, findSources } from './sources.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const site = fileURLToPath(new URL('site/', import.meta.url));
const out = resolve(process.argv[2] ?? `${root}dist/docs`);

const sources = findSources(root);
const render = createRenderer(sources);
const api = apiPage(openApiDocument(CONTRACT, { version: VERSION }));
const apiSections = api.operations.map(({ id, title, summary }) => ({
  anchor: id,
  heading: `${title}: ${summary}`,
  text: id,
}));
const pages = [
  ...[...new Set(sources.values())].filter(({ kind }) => kind !== 'asset').map(render),
  {
    path: 'docs/api',
    output: API_OUTPUT,
    title: 'API reference',
    html: api.body,
    style: api.style,
    script: api.script,
    contents: [],
    sections: [{ anchor: '', heading: '', text: 'HTTP API, OpenAPI' }, ...apiSections],
  },
];
const navigation = navigationOf(root, pages);

rmSync(out, { recursive: true, force: true });
for (const page of pages) write(page.output, layout(page, navigation, VERSION));
for (const { kind, path, output } of sources.values()) {
  if (kind === 'asset') write(output, null, path);
}
write('assets/search-index.js', `window.orchSearchIndex=${JSON.stringify(searchIndex(pages))};\n`);
write('assets/site.css', null, `${site}site.css`);
buildSync({
  entryPoints: [`${site}site.js`],
  outfile: `${out}/assets/site.js`,
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2020',
  logLevel: 'warning',
});
process.stdout.write(`${pages.length} pages in ${out}; open ${out}/index.html\n`);

/** Writes a file of the site, with this text or as a copy. */
function write(output, text, from) {
  const file = `${out}/${output}`;
  mkdirSync(dirname(file), { recursive: true });
  if (text === null) cpSync(resolve(root, from), file);
  else writeFileSync(file, text);
}
