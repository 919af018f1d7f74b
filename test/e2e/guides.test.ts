/** The shell blocks of the README and of the first guides run as they stand, or say why no test runs them. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shellBlocksOf } from '../support/shell-blocks.js';
import { Walkthrough } from '../support/walkthrough.js';

const blocksOf = (page: string) =>
  shellBlocksOf(readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8')).map((block) => ({
    ...block,
    /** Name of the test: the first command. */
    title: `line ${block.line}: ${block.text.split('\n')[0]}`,
  }));

/** A page, and what its reader has already. */
const PAGES = [
  { page: 'README.md', has: [] },
  { page: 'docs/guides/cli-on-a-laptop.md', has: ['orchestrator'] },
  { page: 'docs/guides/backup-restore-and-keys.md', has: ['orchestrator', 'agent'] },
  { page: 'docs/guides/ci.md', has: ['orchestrator', 'agent'] },
] as const;

describe.each(PAGES)('$page', ({ page, has }) => {
  // The build of `npm run quickstart` ran before this test.
  const walkthrough = new Walkthrough([[/^npm run quickstart$/, 'orch quickstart']]);
  const parts: readonly string[] = has;
  const blocks = blocksOf(page);

  beforeAll(async () => {
    if (parts.includes('orchestrator')) await walkthrough.startServe();
    if (parts.includes('agent')) await walkthrough.startAgent('web-01');
  });
  afterAll(() => walkthrough.dispose());

  it.each(blocks.filter(({ notRun }) => notRun === null))('$title', async (block) => {
    await walkthrough.run(block);
  });

  it('gives a reason for each block that no test runs', () => {
    const reasons = blocks.flatMap(({ notRun }) => notRun ?? []);
    expect(reasons.filter((reason) => reason.length < 10)).toEqual([]);
    expect(blocks.length).toBeGreaterThan(reasons.length);
  });
});
