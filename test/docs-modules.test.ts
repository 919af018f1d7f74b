/** The reference of the module language shows modules that are valid, and knows every kind, field and code. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { finish } from '../src/kernel/steps.js';
import { type CompiledModule, compileModule } from '../src/language/compile-module.js';
import { DIAGNOSTIC_CODES, renderDiagnostic } from '../src/language/diagnostic.js';
import { checkSet } from '../src/language/inputs/check-set.js';
import { parseValueSet } from '../src/language/inputs/value-set.js';
import { parseModule } from '../src/language/parse-module.js';
import { memberNames } from '../src/language/shape-schema.js';
import { isListPath } from '../src/language/trees.js';
import { MODULE_KINDS } from '../src/resources/catalogue.js';
import { TRIGGER_FIELDS } from '../src/resources/kind.js';
import { answers } from './support/answers.js';
import { fieldMeanings } from './support/kind-reference.js';

const read = (name: string) => readFileSync(new URL(`../docs/${name}`, import.meta.url), 'utf8');
/** The pages of the language, in the order of reading. */
const LANGUAGE = ['modules.md', 'expressions.md', 'values.md', 'templates.md', 'absence.md', 'health-checks.md'];
const language = LANGUAGE.map(read).join('\n');
const GUIDE = 'guides/one-module-many-machines.md';
const guide = read(GUIDE);
const kindPages = readdirSync(new URL('../docs/kinds/', import.meta.url)).map((name) => ({
  name: `kinds/${name}`,
  text: read(`kinds/${name}`),
}));

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

/** Blocks that are only entries become a module for every agent. */
const moduleOf = (text: string): string =>
  text.startsWith('- ') ? `name: example\nsupports: [{}]\nresources:\n${text}` : text;

const isValueSet = (text: string): boolean => /^values:/m.test(text);

/** The words in back quotes in the first column of the tables of a text. */
const firstColumn = (text: string): readonly string[] =>
  [...text.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  );

describe('the reference of modules', () => {
  it.each([
    ...[...LANGUAGE, 'start.md'].flatMap((name) => blocksOf(read(name)).map((block) => ({ name, ...block }))),
    ...blocksOf(guide).map((block) => ({ name: GUIDE, ...block })),
    ...blocksOf(read('how-do-i.md')).map((block) => ({ name: 'how-do-i.md', ...block })),
    ...kindPages.flatMap(({ name, text }) => blocksOf(text).map((block) => ({ name, ...block }))),
  ])('has a valid module or value set in $name on line $line', ({ text }) => {
    const source = moduleOf(text);
    const findFile = (path: string) => ({ sha256: '0'.repeat(64), size: 1, ...(isListPath(path) && { text: '' }) });
    const { diagnostics } = isValueSet(text) ? parseValueSet(source) : parseModule(source, findFile);
    expect(diagnostics.map((one) => renderDiagnostic(one, { file: 'example', source }))).toEqual([]);
  });

  it.each([language, guide])('gives inputs only values that fit the modules above them', (page) => {
    const modules = new Map<string, CompiledModule>();
    for (const { text } of blocksOf(page)) {
      if (isValueSet(text)) {
        const { set } = parseValueSet(text);
        expect(set === null ? null : finish(checkSet(set, modules))).toEqual([]);
        continue;
      }
      const { definition } = parseModule(moduleOf(text));
      if (definition !== null) modules.set(definition.name, compileModule({ name: definition.name, definition }));
    }
  });

  it('answers at least fifty everyday questions, each with a module', () => {
    expect(answers.length).toBeGreaterThanOrEqual(50);
    expect(answers.filter(({ modules }) => modules.length === 0)).toEqual([]);
    expect(answers.filter(({ question }) => !/^How do I .+\?$/.test(question))).toEqual([]);
  });

  it('has a page for every kind and for no other', () => {
    const pages = kindPages.map(({ name }) => name);
    expect(pages.sort()).toEqual([...MODULE_KINDS.keys()].map((kind) => `kinds/${kind}.md`).sort());
  });

  it.each([...MODULE_KINDS.values()])('shows $kind, and says what each of its fields means', ({ kind, schema }) => {
    const page = read(`kinds/${kind}.md`);
    expect(page).not.toContain('TODO');
    expect(blocksOf(page).some(({ text }) => text.includes(`${kind}:`))).toBe(true);
    const meanings = fieldMeanings(page);
    expect([...meanings.keys()].sort()).toEqual([...memberNames(schema)].sort());
    expect([...meanings.values()].filter((meaning) => meaning.trim() === '')).toEqual([]);
  });

  it('says which kinds have which triggers', () => {
    for (const field of TRIGGER_FIELDS) {
      const [, cell = ''] = new RegExp(`^\\| \`${field}\` \\| ([^|]+) \\|`, 'm').exec(language) ?? [];
      const named = [...cell.matchAll(/`([^`]+)`/g)].map(([, kind]) => kind);
      const having = [...MODULE_KINDS.values()].filter(({ schema }) => memberNames(schema).includes(field));
      expect(named.sort(), field).toEqual(having.map(({ kind }) => kind).sort());
    }
  });

  it('knows every code of validation and no other', () => {
    expect([...firstColumn(read('module-messages.md'))].sort()).toEqual([...DIAGNOSTIC_CODES].sort());
  });
});
