/** The guides name only commands, options, events and places that exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { NOTIFICATION_RULES } from '../daemon/notify/notification-rules.js';
import { COMMANDS, GROUPS } from '../src/cli/commands/index.js';
import type { Command } from '../src/cli/define-command.js';
import { CONNECTION_OPTIONS, CONSENT_OPTIONS, OUTPUT_OPTIONS } from '../src/cli/global-options.js';
import { flagOf } from '../src/cli/options.js';
import { renderDiagnostic } from '../src/language/diagnostic.js';
import { parseModule } from '../src/language/parse-module.js';
import { commandsOf, shellBlocksOf } from './support/shell-blocks.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const guides = readdirSync(join(root, 'docs/guides')).map((name) => `docs/guides/${name}`);
const pages = [...guides, 'docs/how-do-i.md', 'docs/faq.md', 'docs/glossary.md', 'docs/errors.md'];

/** Returns the anchors of a page as forges make them from its headings. */
const anchorsOf = (page: string): readonly string[] =>
  [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  );

describe.each(pages)('%s', (page) => {
  const text = read(page);

  it('has one title', () => {
    expect(text.replaceAll(/^```[\s\S]*?^```$/gm, '').match(/^# .+$/gm)).toHaveLength(1);
    expect(text).toMatch(/^# /);
  });

  it('links to headings that exist', () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)];
    const broken = links.filter(([, target = '', anchor = '']) => {
      const file = target === '' ? page : join(dirname(page), target);
      return !existsSync(join(root, file)) || !anchorsOf(file).includes(anchor);
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });

  it('shows modules that are valid', () => {
    const modules = [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].flatMap(([, source = '']) =>
      /^supports:/m.test(source) ? [source] : [],
    );
    for (const source of modules) {
      const { diagnostics } = parseModule(source);
      expect(diagnostics.map((one) => renderDiagnostic(one, { file: page, source }))).toEqual([]);
    }
  });

  it('names commands that exist, with options that they have', async () => {
    const mistakes: string[] = [];
    for (const shown of commandsIn(text)) {
      const mistake = await mistakeIn(shown);
      if (mistake !== null) mistakes.push(`${shown}: ${mistake}`);
    }
    expect(mistakes).toEqual([]);
  });
});

/** Returns each command of orch in the shell blocks and the code of a page. */
function commandsIn(text: string): readonly string[] {
  const inBlocks = shellBlocksOf(text).flatMap((block) => commandsOf(block).map(({ command }) => command));
  const inText = [...text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
  return [...inBlocks, ...inText].flatMap((line) => line.match(/(?<=^|[(;|] ?|-- )orch [^|;)]+/g) ?? []);
}

/** Returns what is wrong with a shown command, or null. */
async function mistakeIn(shown: string): Promise<string | null> {
  const [line = ''] = shown.split(' -- ');
  const words = line
    .split(/\s+/)
    .slice(1)
    .filter((word) => word !== '');
  const path = words.slice(0, words.findIndex((word) => word.startsWith('-')) >>> 0);
  // A global option may come first: `orch --profile home agents`.
  if (path.length === 0 || path[0] === 'COMMAND') return null;
  const entry = entryOf(path);
  if (entry === undefined) return 'no such command';
  const command: Command = await entry.load();
  const known = [OUTPUT_OPTIONS, CONNECTION_OPTIONS, ...(command.consent ? [CONSENT_OPTIONS] : []), command.options];
  const flags = known.flatMap((options) => Object.entries(options).map(([key, option]) => flagOf(key, option)));
  const wrong = words
    .filter((word) => word.startsWith('--'))
    .map((word) => word.split('=')[0] as string)
    .filter((word) => !flags.includes(word) && word !== '--help');
  return wrong.length === 0 ? null : `no option ${wrong.join(', ')}`;
}

/** Returns the command that words begin with, the one that a group runs alone, or the one that it runs with a foreign word. */
function entryOf(words: readonly string[]) {
  const alternatives = words.map((word) => word.split('|')[0] as string);
  const named = (path: string) => COMMANDS.find((one) => one.path === path);
  for (let length = alternatives.length; length > 0; length--) {
    const path = alternatives.slice(0, length).join(' ');
    const group = GROUPS.find((one) => one.path === path);
    const further = length === alternatives.length ? group?.standard : group?.fallback;
    const found = named(path) ?? (further === undefined ? undefined : named(`${path} ${further}`));
    if (found !== undefined) return found;
  }
  return undefined;
}

describe('the guides', () => {
  it('show commands: the checks above have something to check', async () => {
    expect(guides.flatMap((page) => commandsIn(read(page))).length).toBeGreaterThan(200);
    expect(await mistakeIn('orch agents lisst')).toBe('no such command');
    expect(await mistakeIn('orch plan web-01 --confirm')).toBe('no option --confirm');
  });

  it('are all listed', () => {
    const index = read('docs/guides/README.md');
    const names = guides.map((page) => page.replace('docs/guides/', '')).filter((name) => name !== 'README.md');
    expect(names.filter((name) => !index.includes(`](${name})`))).toEqual([]);
  });

  it('name each event that raises a notification, and no other', () => {
    const [, table = ''] = read('docs/guides/notifications.md').split('## What is reported');
    const cells = [...(table.split('\n## ')[0]?.matchAll(/^\| (`[^|]+`) \|/gm) ?? [])];
    const named = cells.flatMap(([, cell = '']) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
    // These end the absence of an agent; they raise nothing themselves.
    const silent = ['agent.connected', 'agent.rejected', 'agent.removed'];
    expect(named.sort()).toEqual(
      Object.keys(NOTIFICATION_RULES)
        .filter((type) => !silent.includes(type))
        .sort(),
    );
  });

  it('have a glossary in the order of the alphabet', () => {
    const words = [...read('docs/glossary.md').matchAll(/^\| \*\*(.+)\*\* \|/gm)].map(([, word = '']) =>
      word.toLowerCase(),
    );
    expect(words.length).toBeGreaterThan(20);
    expect(words).toEqual([...words].sort());
  });
});
