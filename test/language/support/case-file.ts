/**
 * Cases as data: one YAML file each, what is given above `expected:`, what comes out below it.
 * `UPDATE_CASES=1 npx vitest run test/language` writes what comes out now into every file; review the difference like code.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';

const root = fileURLToPath(new URL('../cases', import.meta.url));
const updating = process.env.UPDATE_CASES === '1';

/** Runs every case of a folder: `run` makes from a case what its `expected` has to be. */
export function runCases<Given>(folder: string, run: (given: Given) => unknown): void {
  const files = readdirSync(join(root, folder)).filter((name) => name.endsWith('.yaml'));
  for (const name of files) {
    it(basename(name, '.yaml'), () => {
      const file = join(root, folder, name);
      const text = readFileSync(file, 'utf8');
      const { expected, ...given } = parse(text) as { expected?: unknown };
      const actual = JSON.parse(JSON.stringify(run(given as Given)));
      if (updating) writeFileSync(file, withExpected(text, actual));
      else expect(actual).toEqual(expected);
    });
  }
}

/** The text of a case with another expectation; what is given stays as it was written. */
function withExpected(text: string, expected: unknown): string {
  const given = text.split(/^expected:/m)[0]?.trimEnd();
  return `${given}\n${stringify({ expected }, { lineWidth: 0 })}`;
}
