import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { PROTOCOL_VERSION, VERSION } from '../src/kernel/version.js';
import { MODULE_KINDS } from '../src/resources/catalogue.js';
import { AgentMessageSchemas, OrchestratorMessageSchemas } from '../src/wire/messages.js';
import { cliPages } from './support/cli-reference.js';
import { kindIndex, kindPage } from './support/kind-reference.js';
import { configurationPage, errorsPage, eventsPage, exitStatusesPage, jsonPage } from './support/reference-docs.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const readIfThere = (path: string) => (existsSync(join(root, path)) ? read(path) : '');
const pathOfKind = (kind: string) => `docs/kinds/${kind}.md`;

describe('the reference pages', () => {
  it.each([
    ['docs/configuration.md', configurationPage],
    ['docs/errors.md', errorsPage],
    ['docs/reference/events.md', eventsPage],
    ['docs/reference/exit-statuses.md', exitStatusesPage],
    ['docs/reference/json.md', jsonPage],
    ...[...MODULE_KINDS.values()].map((kind): [string, () => string] => {
      const path = pathOfKind(kind.kind);
      return [path, () => kindPage(kind, readIfThere(path))];
    }),
    ['docs/kinds.md', () => kindIndex(read('docs/kinds.md'), (kind) => read(pathOfKind(kind)))],
  ])('%s is up to date', (path, page) => {
    const text = page();
    if (process.env.UPDATE_DOCS === '1') writeFileSync(join(root, path), text);
    expect(read(path)).toBe(text);
  });

  it('of the command line are up to date', async () => {
    const pages = await cliPages();
    if (process.env.UPDATE_DOCS === '1') {
      rmSync(join(root, 'docs/cli'), { recursive: true, force: true });
      mkdirSync(join(root, 'docs/cli'));
      for (const [path, text] of pages) writeFileSync(join(root, path), text);
    }
    for (const [path, text] of pages) expect(read(path)).toBe(text);
    const files = readdirSync(join(root, 'docs/cli')).map((name) => `docs/cli/${name}`);
    expect(['docs/cli.md', ...files].sort()).toEqual([...pages.keys()].sort());
  });
});

describe('the documents', () => {
  const pages = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md'].concat(
    readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  );

  it.each(pages)('%s links only to files that are there', (page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, target]) => target as string);
    expect(links.filter((target) => !existsSync(join(root, dirname(page), target)))).toEqual([]);
  });

  it('README has exactly the two set-up commands', () => {
    const blocks = [...read('README.md').matchAll(/```\n([\s\S]*?)```/g)].map(([, block]) => block as string);
    const commands = blocks.flatMap((block) => block.trim().split('\n')).filter((line) => line.startsWith('npm '));
    expect(commands).toEqual(['npm run quickstart', 'npm test']);
  });

  it('names the version of package.json and the protocol with its history', () => {
    expect(VERSION).toBe((JSON.parse(read('package.json')) as { version: string }).version);
    expect(read('CHANGELOG.md')).toContain(`## ${VERSION}`);
    expect(read('src/wire/version.ts')).toMatch(new RegExp(`^ \\*   ${PROTOCOL_VERSION}  `, 'm'));
  });

  it('explains every message of the agent link', () => {
    const page = read('docs/protocols/agent-link.md');
    const types = Object.keys({ ...AgentMessageSchemas, ...OrchestratorMessageSchemas });
    expect(types.filter((type) => !page.includes(`\`${type}\``))).toEqual([]);
  });

  it('lists every package that the product depends on, with its reason', () => {
    const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>;
    const names = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });
    const libraries = read('ARCHITECTURE.md').split('## Libraries')[1] ?? '';
    expect(names.filter((name) => !libraries.includes(`\`${name}\``))).toEqual([]);
  });
});
