/** The documentation site: no dead link, nothing from another host, and a search that works from file://. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import MiniSearch from 'minisearch';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
// @ts-expect-error It is a script.
import { find } from '../scripts/docs/site/find.js';
// @ts-expect-error It is a script.
import { SEARCH_OPTIONS } from '../scripts/docs/site/search-options.js';
import { COMMANDS } from '../src/cli/commands/index.js';
import { CONTRACT } from '../src/contract/contract.js';
import { MODULE_KINDS } from '../src/resources/catalogue.js';
import { BROWSER, Page } from './support/browser.js';
import { itNeeding } from './support/needing.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = mkdtempSync(join(tmpdir(), 'orch-docs-'));
const urlOf = (page: string): string => {
  const [file = '', anchor] = page.split('#');
  return `${pathToFileURL(join(out, file)).href}${anchor === undefined ? '' : `#${anchor}`}`;
};

interface Question {
  readonly ask: string;
  readonly answers: readonly string[];
}

const QUESTIONS: readonly Question[] = parse(readFileSync(join(root, 'test/docs-questions.yaml'), 'utf8'));
const idsOf = (sections: readonly { readonly id: string }[]): readonly string[] => sections.map(({ id }) => id);

/** The index of the search, as a page loads it. */
let searched: MiniSearch;

/** Text of each page by its path in the site. */
const pages = new Map<string, string>();

beforeAll(() => {
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts/docs/build.mjs'), out], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`the site was not built: ${stderr}`);
  const script = readFileSync(join(out, 'assets/search-index.js'), 'utf8');
  searched = MiniSearch.loadJSON(script.slice(script.indexOf('{'), script.lastIndexOf('}') + 1), SEARCH_OPTIONS);
  for (const name of readdirSync(out, { recursive: true, encoding: 'utf8' })) {
    if (name.endsWith('.html')) pages.set(name, readFileSync(join(out, name), 'utf8'));
  }
});
afterAll(() => rmSync(out, { recursive: true, force: true }));

/** Returns the values of an attribute in a page, with character references resolved. */
const valuesOf = (html: string, attribute: string): readonly string[] =>
  [...html.matchAll(new RegExp(` ${attribute}="([^"]*)"`, 'g'))].map(([, value = '']) =>
    value.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
  );

const isElsewhere = (address: string): boolean => /^[a-z]+:/.test(address);

describe('the site', () => {
  it('has a page for each document, kind, command and operation', () => {
    const documents = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => name.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, '.html'));
    const kinds = [...MODULE_KINDS.keys()].map((kind) => `kinds/${kind}.html`);
    const commands = COMMANDS.filter(({ hidden }) => !hidden).map(
      ({ path }) => `cli/${path.replaceAll(' ', '-')}.html`,
    );
    expect([...documents, ...kinds, ...commands, 'api.html'].filter((page) => !pages.has(page))).toEqual([]);
    const anchors = valuesOf(pages.get('api.html') ?? '', 'id');
    expect(Object.keys(CONTRACT).filter((id) => !anchors.includes(id))).toEqual([]);
  });

  it('has no dead link and no dead anchor', () => {
    const anchors = new Map([...pages].map(([name, html]) => [name, new Set(valuesOf(html, 'id'))]));
    const dead: string[] = [];
    for (const [name, html] of pages) {
      for (const address of [...valuesOf(html, 'href'), ...valuesOf(html, 'src')]) {
        if (isElsewhere(address)) continue;
        const [path = '', anchor] = address.split('#');
        const target = path === '' ? name : posix.join(posix.dirname(name), decodeURI(path));
        const isThere = anchor ? anchors.get(target)?.has(decodeURIComponent(anchor)) : existsSync(join(out, target));
        if (!isThere) dead.push(`${name}: ${address}`);
      }
    }
    expect(dead).toEqual([]);
  });

  it('loads nothing from another host', () => {
    for (const [name, html] of pages) {
      const loaded = [...html.matchAll(/<(?:script|img|link|iframe)[^>]*? (?:src|href)="([^"]*)"/g)].map(
        ([, value]) => value,
      );
      expect(
        loaded.filter((address = '') => isElsewhere(address) || address.startsWith('//')),
        name,
      ).toEqual([]);
    }
    expect(readFileSync(join(out, 'assets/site.css'), 'utf8')).not.toMatch(/@import|url\(/);
  });

  describe('answers, among the first three, who asks', () => {
    it.each(QUESTIONS)('$ask', ({ ask, answers }) => {
      const found = idsOf(find(searched, ask, 3));
      expect(
        found.filter((id) => answers.includes(id)),
        `${ask} leads to ${found.join(' ')}`,
      ).not.toEqual([]);
    });

    it('about pages that are there', () => {
      const known = new Set(idsOf(searched.search(MiniSearch.wildcard)));
      expect(QUESTIONS.flatMap(({ answers }) => answers).filter((id) => !known.has(id))).toEqual([]);
    });
  });

  itNeeding(BROWSER)('is searched in a browser from file://, and requests only its own files', async () => {
    const page = await Page.open();
    await page.visit(urlOf('index.html'));
    await page.press('/');
    await page.type('metrics_token');
    await page.until(`document.querySelectorAll('#results a').length > 0`);
    const found = await page.evaluate<string>(`document.querySelector('#results a').textContent`);
    expect(found).toMatch(/Metrics|Configuration|Monitoring/);
    await page.evaluate(`document.querySelector('#search').value = ''`);
    await page.type('exit statuses');
    await page.until(`document.querySelector('#results a')?.textContent.startsWith('Exit statuses')`);
    await page.press('Enter');
    await page.until(`location.href === ${JSON.stringify(urlOf('reference/exit-statuses.html'))}`);
    await page.until(`document.querySelector('h1')?.textContent === 'Exit statuses'`);
    expect(page.requested.length).toBeGreaterThan(5);
    expect(page.requested.filter((url) => !url.startsWith(pathToFileURL(out).href))).toEqual([]);
  });

  itNeeding(BROWSER)('copies the commands of a session in a terminal, and not what they print', async () => {
    const page = await Page.open();
    await page.visit(urlOf('start.html'));
    const block = `[...document.querySelectorAll('.code')].find((one) => one.textContent.includes('$ orch status'))`;
    expect(await page.evaluate(`${block}.querySelector('.output').textContent`)).toMatch(/^Orchestrator /);
    await page.evaluate(`navigator.clipboard.writeText = async (text) => { window.copied = text; }`);
    await page.evaluate(`${block}.querySelector('.copy').click()`);
    await page.until(`${block}.querySelector('.copy').textContent === 'Copied'`);
    expect(await page.evaluate('window.copied')).toBe('orch status');
    await page.evaluate(`navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed'))`);
    await page.evaluate(`${block}.querySelector('.copy').click()`);
    await page.until(`${block}.querySelector('.copy').textContent === 'Press Ctrl+C'`);
    expect(await page.evaluate('String(getSelection())')).toMatch(/orch status\nOrchestrator /);
  });

  itNeeding(BROWSER)('filters the operations of the API, and opens the one of the address', async () => {
    const page = await Page.open();
    await page.visit(urlOf('api.html#listAgents'));
    expect(await page.evaluate(`document.getElementById('listAgents').open`)).toBe(true);
    await page.evaluate(`document.getElementById('api-search').focus()`);
    await page.type('removal_guard');
    const shown = await page.evaluate<string[]>(
      `[...document.querySelectorAll('.api-entry')].filter((one) => one.offsetParent !== null).map((one) => one.id)`,
    );
    expect(shown).toContain('applyAgent');
    expect(shown).not.toContain('listAgents');
  });

  itNeeding(BROWSER)('fits narrow and wide windows, and has dark and light colours', async () => {
    const page = await Page.open();
    const samples = ['index', 'start', 'concepts', 'kinds/service-systemd', 'cli', 'cli/apply', 'api', 'configuration'];
    const look = async (name: string, width: number, colours: 'light' | 'dark') => {
      await page.visit(urlOf(name), { width, colours });
      const [content, window, background] = await page.evaluate<[number, number, string]>(
        '[document.documentElement.scrollWidth, innerWidth, getComputedStyle(document.body).backgroundColor]',
      );
      expect(content, `${name} at ${width}`).toBeLessThanOrEqual(window);
      expect(background).toBe(colours === 'dark' ? 'rgb(13, 17, 23)' : 'rgb(255, 255, 255)');
      const directory = process.env.ORCH_DOCS_SCREENSHOTS;
      if (directory === undefined) return;
      const file = `${name.replace('.html', '').replaceAll('/', '-')}-${width}-${colours}.png`;
      writeFileSync(join(directory, file), await page.screenshot());
    };
    // The pages of the commands have one form, which the samples have too.
    for (const name of pages.keys()) if (!name.startsWith('cli/')) await look(name, 400, 'light');
    for (const name of samples.map((sample) => `${sample}.html`)) {
      await look(name, 400, 'dark');
      await look(name, 1280, 'light');
      await look(name, 1280, 'dark');
    }
  });

  itNeeding(BROWSER)('keeps the chosen colours from page to page', async () => {
    const page = await Page.open();
    await page.visit(urlOf('index.html'));
    await page.evaluate(`document.querySelector('.theme').click()`);
    await page.visit(urlOf('kinds.html'));
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(13, 17, 23)');
  });
});
