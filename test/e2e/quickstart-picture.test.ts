/** The picture in README.md shows commands that the quickstart really runs, in its order. */
import { readFileSync, statSync } from 'node:fs';
import { expect, it } from 'vitest';
import { Sandbox } from '../support/orch.js';

const PICTURE = new URL('../../docs/images/quickstart.svg', import.meta.url);

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&amp;': '&',
};

/** The lines of the picture, without their places. */
const pictureLines = (): readonly string[] =>
  [...readFileSync(PICTURE, 'utf8').matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text = '']) =>
    text.replace(/&(?:lt|gt|quot|#39|amp);/g, (entity) => ENTITIES[entity] ?? entity),
  );

/** The steps and commands among lines, without the directory, which is another one in each run. */
const told = (lines: readonly string[]): readonly string[] =>
  lines
    .map((line) => line.trim().replaceAll(/\S*\/(?=site\/)/g, '…/'))
    .filter((line) => line.startsWith('$ ') || /^\d+\. /.test(line));

it('shows what the quickstart runs', async () => {
  const sandbox = new Sandbox();
  try {
    const { status, stdout } = await sandbox.orch(['quickstart', '--dir', sandbox.path('quickstart')]);
    expect(status).toBe(0);
    const real = told(stdout.split('\n'));
    const shown = told(pictureLines());
    expect(shown.length).toBeGreaterThan(6);
    // After a change of the quickstart: npm run picture
    expect(real.slice(real.indexOf(shown[0] ?? '')).slice(0, shown.length)).toEqual(shown);
  } finally {
    await sandbox.dispose();
  }
});

it('is a small picture that loads nothing', () => {
  expect(statSync(PICTURE).size).toBeLessThan(60_000);
  expect(readFileSync(PICTURE, 'utf8')).not.toMatch(/<script|href|url\(|@import/);
});
