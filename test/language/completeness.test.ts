/** Every code that the language can answer has a case, and the cases hold no code that it cannot. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { DIAGNOSTIC_CODES, type DiagnosticCode } from '../../src/language/diagnostic.js';
import type { ResolutionCode } from '../../src/language/resolution-error.js';
import { MODULE_KINDS } from '../../src/resources/catalogue.js';

const CASES = new URL('cases/', import.meta.url);

/** Mistakes that only files of assignments can have; their cases show diagnostics as people see them, without codes. */
const OF_ASSIGNMENTS: ReadonlySet<DiagnosticCode> = new Set(['duplicate_name', 'invalid_selector', 'unknown_module']);

interface Case {
  readonly about: string;
  readonly expected: unknown;
}

const casesOf = (folder: string): ReadonlyMap<string, Case> => {
  const names = readdirSync(new URL(`${folder}/`, CASES)).filter((name) => name.endsWith('.yaml'));
  return new Map(names.map((name) => [name, parse(readFileSync(new URL(`${folder}/${name}`, CASES), 'utf8')) as Case]));
};

/** The texts that stand in a value below one of these keys, anywhere. */
function* textsBelow(value: unknown, keys: readonly string[]): Generator<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    if (keys.includes(key) && typeof member === 'string') yield member;
    yield* textsBelow(member, keys);
  }
}

const codesIn = (folder: string, keys: readonly string[]): readonly string[] =>
  [...new Set([...casesOf(folder).values()].flatMap(({ expected }) => [...textsBelow(expected, keys)]))].sort();

describe('the cases', () => {
  it('hold every code of a diagnostic and no other', () => {
    const ofModules = DIAGNOSTIC_CODES.filter((code) => !OF_ASSIGNMENTS.has(code));
    expect(codesIn('parse', ['error', 'warning'])).toEqual(ofModules.sort());
  });

  it('hold every reason that a resolution fails for and no other', () => {
    // The compiler asks for every code.
    const codes: Readonly<Record<ResolutionCode, true>> = {
      module_not_supported: true,
      variant_ambiguous: true,
      variant_missing: true,
      expression_error: true,
      secret_unavailable: true,
      module_conflict: true,
      input_missing: true,
      input_invalid: true,
    };
    expect(codesIn('resolve', ['code'])).toEqual(Object.keys(codes).sort());
  });

  it('are at least 180, each with what it is about in a sentence of its own', () => {
    const cases = ['parse', 'kinds', 'resolve', 'selector'].flatMap((folder) => [...casesOf(folder)]);
    expect(cases.length).toBeGreaterThanOrEqual(180);
    const sentences = cases.map(([, { about }]) => about);
    expect(sentences.filter((about, index) => !about || sentences.indexOf(about) !== index)).toEqual([]);
  });
});

describe('every resource kind', () => {
  const cases = casesOf('kinds');
  const mistakesOf = (name: string) => [...textsBelow(cases.get(name)?.expected, ['error'])];

  it.each([...MODULE_KINDS.keys()])(
    '%s has a module without a mistake and one with the mistakes that people make',
    (kind) => {
      expect(cases.get(`${kind}-valid.yaml`)?.expected).toEqual([]);
      const mistakes = mistakesOf(`${kind}-invalid.yaml`);
      expect(mistakes).toContain('unknown_key');
      expect(mistakes).toContain('missing_key');
      expect(mistakes.some((code) => code === 'wrong_type' || code === 'unquoted')).toBe(true);
      expect(mistakes).toContain('invalid_value');
    },
  );
});
