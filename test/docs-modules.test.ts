/** The reference of the module language shows modules that are valid, and knows every kind, field and code. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DIAGNOSTIC_CODES, renderDiagnostic } from '../src/language/diagnostic.js';
import { parseModule } from '../src/language/parse-module.js';
import { memberNames } from '../src/language/shape-schema.js';
import { CATALOGUE } from '../src/resources/catalogue.js';
import { TRIGGER_FIELDS } from '../src/resources/kind.js';

const page = readFileSync(new URL('../docs/modules.md', import.meta.url), 'utf8');

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

/** What is between a heading and the next one of its level or above. */
function sectionOf(heading: string): string {
  const start = page.indexOf(`\n${heading}\n`) + 1;
  if (start === 0) return '';
  const level = heading.indexOf(' ');
  const rest = page.slice(start + heading.length);
  const end = rest.search(new RegExp(`^#{2,${level}} `, 'm'));
  return end === -1 ? rest : rest.slice(0, end);
}

/** Blocks that are only entries become a module for every agent. */
const moduleOf = (text: string): string =>
  text.startsWith('- ') ? `name: example\nsupports: [{}]\nresources:\n${text}` : text;

/** What stands in back quotes in the first column of the tables of a text. */
const firstColumn = (text: string): readonly string[] =>
  [...text.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  );

describe('docs/modules.md', () => {
  it.each(blocksOf(page))('has a valid module on line $line', ({ text }) => {
    const source = moduleOf(text);
    const { diagnostics } = parseModule(source);
    expect(diagnostics.map((one) => renderDiagnostic(one, { file: 'example', source }))).toEqual([]);
  });

  it('has a section for every kind and for no other', () => {
    const kinds = [...sectionOf('## Resource kinds').matchAll(/^### `(.+)`$/gm)].map(([, kind]) => kind);
    expect([...kinds].sort()).toEqual([...CATALOGUE.keys()].sort());
  });

  it.each([...CATALOGUE.values()])('shows $kind, and says what each of its fields means', ({ kind, schema }) => {
    const section = sectionOf(`### \`${kind}\``);
    expect(blocksOf(section).some(({ text }) => text.includes(`${kind}:`))).toBe(true);
    expect([...firstColumn(section)].sort()).toEqual([...memberNames(schema)].sort());
  });

  it('says which kinds have which triggers', () => {
    for (const field of TRIGGER_FIELDS) {
      const [, cell = ''] = new RegExp(`^\\| \`${field}\` \\| ([^|]+) \\|`, 'm').exec(page) ?? [];
      const named = [...cell.matchAll(/`([^`]+)`/g)].map(([, kind]) => kind);
      const kinds = [...CATALOGUE.values()].filter(({ schema }) => memberNames(schema).includes(field));
      expect(named.sort(), field).toEqual(kinds.map(({ kind }) => kind).sort());
    }
  });

  it('knows every code of validation and no other', () => {
    expect([...firstColumn(sectionOf('## What validation says'))].sort()).toEqual([...DIAGNOSTIC_CODES].sort());
  });
});
