/** Output on narrow and wide terminals: no line is longer than the terminal, and what identifies a row stays. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { widthOf } from '../../src/cli/render/terminal-text.js';
import { runOrch } from '../support/cli.js';
import { readings, ulid } from '../support/cli-world.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi(readings);
});
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const run = (words: string, columns?: number) =>
  runOrch(words.split(' '), {
    env: { ...loggedIn(api), NO_COLOR: '1' },
    ...(columns === undefined ? {} : { columns }),
  });

const TABLES = [
  ['agents', ['web-01', 'web-02', 'db-01']],
  ['ops', [ulid(0), ulid(1), ulid(2)]],
  ['drift list', [ulid(6), ulid(7)]],
  ['rollouts', [ulid(8)]],
  ['audit', []],
  ['operator list', ['ada']],
  ['module list', ['site']],
  ['tags', ['role', 'env']],
  ['config show --origin', ['url', 'pager']],
] as const;

describe.each([40, 60, 80, 200])('on a terminal of %d columns', (columns) => {
  it.each(TABLES)('orch %s fits', async (words, kept) => {
    const ran = await run(words, columns);
    expect(ran.status).toBe(0);
    const tooLong = ran.stdout.split('\n').filter((line) => widthOf(line) > columns);
    expect(tooLong).toEqual([]);
    for (const name of kept) expect(ran.stdout).toContain(name);
  });
});

/** Commands that print fields, sentences and errors, without a word that is longer than 40 columns. */
const PROSE = [
  'operator show ada',
  'agents show web-01',
  `rollouts show ${ulid(8)}`,
  'agents show nobody-has-a-name-like-this-one-in-the-whole-fleet',
  'apply web-01 --to 5m --values x.yaml',
  'status',
];

describe.each([60, 80])('on a terminal of %d columns', (columns) => {
  it.each(PROSE)('orch %s wraps what it says between words', async (words) => {
    const ran = await run(words, columns);
    const piped = await run(words);
    const all = (text: string) => text.split('\n').filter((line) => line.trim() !== '');
    const tooLong = [...all(ran.stdout), ...all(ran.stderr)].filter((line) => widthOf(line) > columns);
    // A single word that is longer than the rest of its line stays whole.
    expect(tooLong.filter((line) => line.trim().split(/ +/).length > 3)).toEqual([]);
    expect(all(piped.stdout + piped.stderr).length).toBeGreaterThan(0);
    const plain = (text: string) => text.replace(/\s+/g, ' ').trim();
    expect(plain(ran.stdout)).toBe(plain(piped.stdout));
    expect(plain(ran.stderr)).toBe(plain(piped.stderr));
  });
});

describe('a pipe', () => {
  it.each(TABLES)('gets orch %s uncut', async (words) => {
    const { stdout } = await run(words);
    expect(stdout).not.toContain('…');
  });
});
