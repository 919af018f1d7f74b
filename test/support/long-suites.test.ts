/** Each suite runs in `npm test`, in one part of `npm run test:long`, or in both with fewer cases. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { LONG_PARTS, ONLY_LONG, SHORTENED } from './long-suites.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const SUITES = readdirSync(`${root}/test`, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => `test/${name}`)
  .sort();

/** Returns whether a glob of `long-suites.ts` names a suite. */
function names(glob: string, suite: string): boolean {
  const pattern = glob
    .replaceAll('.', '\\.')
    .replace(/\{(.*?)\}/g, (_, inside: string) => `(?:${inside.replaceAll(',', '|')})`)
    .replaceAll('*', '[^/]*');
  return new RegExp(`^${pattern}$`).test(suite);
}
const found = (patterns: readonly string[]): readonly string[] =>
  SUITES.filter((suite) => patterns.some((pattern) => names(pattern, suite)));
const isShortened = (suite: string): boolean =>
  /support\/exhaustive\.js'|ORCH_(FUZZ|PREDICTION)_RUNS/.test(readFileSync(`${root}/${suite}`, 'utf8'));

it('names suites that exist, each once', () => {
  const patterns = LONG_PARTS.flatMap(([, include]) => include);
  expect(patterns.filter((pattern) => found([pattern]).length === 0)).toEqual([]);
  const twice = SUITES.filter((suite) => patterns.filter((pattern) => names(pattern, suite)).length > 1);
  expect(twice).toEqual([]);
});

it('leaves out all suites that are long by their directory', () => {
  expect(SUITES.filter((suite) => suite.startsWith('test/long/') && !found(ONLY_LONG).includes(suite))).toEqual([]);
});

it('names as shortened those with cases of `npm run test:long`, and no others', () => {
  const left = found(ONLY_LONG);
  expect(found(SHORTENED)).toEqual(SUITES.filter((suite) => isShortened(suite) && !left.includes(suite)));
});
