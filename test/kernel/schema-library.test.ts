/** The schema library's internals and globals are used in two places, which fit the installed version only. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as Type from 'typebox';
import { Settings } from 'typebox/system';
import { describe, expect, it } from 'vitest';
import { closed } from '../../src/kernel/schema.js';
import { MAX_PROBLEMS, validator } from '../../src/kernel/validator.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** After an update, read both users below against the new release, then change this. */
const VERSION = '1.4.3';
const COMPILER_USERS = ['scripts/bundle/evaluated-modules.mjs', 'src/kernel/validator.ts'];

function filesIn(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|mjs)$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

/** Modules that the entry loads, directly or through others, and that load the library. */
function loadersFrom(entry: string): readonly string[] {
  const seen = new Set<string>();
  const visit = (file: string): readonly string[] => {
    if (seen.has(file)) return [];
    seen.add(file);
    const text = readFileSync(join(root, file), 'utf8');
    const loaded = [...text.matchAll(/^import (?!type )[^'"]*?'([^']+)'/gm)].map(([, name]) => name as string);
    const own = loaded.some((name) => name.startsWith('typebox')) ? [file] : [];
    const others = loaded.filter((name) => name.startsWith('.'));
    return [...own, ...others.flatMap((name) => visit(join(dirname(file), name).replace(/\.js$/, '.ts')))];
  };
  return visit(entry);
}

describe('the schema library', () => {
  it('is the version that the adapters were written for', () => {
    const manifest = readFileSync(join(root, 'node_modules/typebox/package.json'), 'utf8');
    expect((JSON.parse(manifest) as { version: string }).version).toBe(VERSION);
  });

  it('is used beyond its schema builders only by the adapters', () => {
    const users = ['bin', 'src', 'daemon', 'scripts']
      .flatMap(filesIn)
      .filter((file) => /from '(typebox\/[^']+)'/.test(readFileSync(join(root, file), 'utf8')));
    expect(users.sort()).toEqual(COMPILER_USERS);
  });

  it('is not loaded by the modules that every command loads', () => {
    expect(loadersFrom('src/cli/dispatch.ts')).toEqual([]);
  });

  it('keeps its own limit of errors outside a validation', () => {
    const before = Settings.Get().maxErrors;
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`key${index}`, 1]));
    expect(validator(closed({})).problems(many)).toHaveLength(MAX_PROBLEMS);
    expect(Settings.Get().maxErrors).toBe(before);
  });

  it('reports errors in the shape that the validator translates', () => {
    const schema = closed({
      name: Type.String({ minLength: 2 }),
      mode: Type.Enum(['a', 'b']),
      when: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
    });
    const problems = validator(schema).problems({ mode: 'c', when: 'x', other: 1 });
    expect([...problems].sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { path: '/mode', message: 'must be one of a, b' },
      { path: '/name', message: '"name" is required' },
      { path: '/other', message: 'unknown key "other"' },
      { path: '/when', message: 'must be integer' },
    ]);
  });
});
