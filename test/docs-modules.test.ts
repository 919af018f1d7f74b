/** The reference of the module language shows modules that are valid, and knows every kind, field and code. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DIAGNOSTIC_CODES, renderDiagnostic } from '../src/language/diagnostic.js';
import { parseModule } from '../src/language/parse-module.js';
import { memberNames } from '../src/language/shape-schema.js';
import { CATALOGUE } from '../src/resources/catalogue.js';
import { TRIGGER_FIELDS } from '../src/resources/kind.js';

const read = (name: string) => readFileSync(new URL(`../docs/${name}`, import.meta.url), 'utf8');
const language = read('modules.md');
const kinds = read('kinds.md');

interface Block {
  readonly line: number;
  readonly text: string;
}

/** The YAML blocks of a text, with the line that each begins on. */
const blocksOf = (text: string): readonly Block[] =>
  [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map((match) => ({
    line: text.slice(0, match.index).split('\n').length + 1,
    text: match[1] ?? '',
  }));

/** Returns the text below a heading of the second level, up to the next one. */
const sectionOf = (page: string, heading: string): string =>
  page.split(/^## /m).find((section) => section.startsWith(`${heading}\n`)) ?? '';

/** Blocks that are only entries become a module for every agent. */
const moduleOf = (text: string): string =>
  text.startsWith('- ') ? `name: example\nsupports: [{}]\nresources:\n${text}` : text;

/** What stands in back quotes in the first column of the tables of a text. */
const firstColumn = (text: string): readonly string[] =>
  [...text.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  );

describe('the reference of modules', () => {
  it.each([
    ...blocksOf(language).map((block) => ({ name: 'modules.md', ...block })),
    ...blocksOf(kinds).map((block) => ({ name: 'kinds.md', ...block })),
  ])('has a valid module in $name on line $line', ({ text }) => {
    const source = moduleOf(text);
    const { diagnostics } = parseModule(source);
    expect(diagnostics.map((one) => renderDiagnostic(one, { file: 'example', source }))).toEqual([]);
  });

  it('has a section for every kind and for no other', () => {
    const sections = [...kinds.matchAll(/^## `(.+)`$/gm)].map(([, kind]) => kind);
    expect([...sections].sort()).toEqual([...CATALOGUE.keys()].sort());
  });

  it.each([...CATALOGUE.values()])('shows $kind, and says what each of its fields means', ({ kind, schema }) => {
    const section = sectionOf(kinds, `\`${kind}\``);
    expect(blocksOf(section).some(({ text }) => text.includes(`${kind}:`))).toBe(true);
    expect([...firstColumn(section)].sort()).toEqual([...memberNames(schema)].sort());
  });

  it('says which kinds have which triggers', () => {
    for (const field of TRIGGER_FIELDS) {
      const [, cell = ''] = new RegExp(`^\\| \`${field}\` \\| ([^|]+) \\|`, 'm').exec(language) ?? [];
      const named = [...cell.matchAll(/`([^`]+)`/g)].map(([, kind]) => kind);
      const having = [...CATALOGUE.values()].filter(({ schema }) => memberNames(schema).includes(field));
      expect(named.sort(), field).toEqual(having.map(({ kind }) => kind).sort());
    }
  });

  it('knows every code of validation and no other', () => {
    expect([...firstColumn(sectionOf(language, 'Diagnostics'))].sort()).toEqual([...DIAGNOSTIC_CODES].sort());
  });
});
