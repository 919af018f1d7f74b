/** Tables, colours and widths. */
import { describe, expect, it } from 'vitest';
import { headed, lines, stack, styled, type TableView } from '../../src/cli/outcome.js';
import { loadPaint, wantsColor } from '../../src/cli/render/paint.js';
import { renderView } from '../../src/cli/render/render-view.js';
import { cutToWidth, widthOf } from '../../src/cli/render/terminal-text.js';
import { runsView } from '../../src/cli/runs/run-view.js';
import type { ResourceResult } from '../../src/resources/result.js';
import { planned, runResult, web1 } from '../support/cli-world.js';

const table: TableView = {
  kind: 'table',
  columns: [
    { title: 'NAME', whole: true },
    { title: 'SUMMARY' },
    { title: 'N', right: true },
    { title: 'MORE', wide: true },
  ],
  rows: [
    ['web-01', 'a rather long sentence that does not fit anywhere', '1', 'x'],
    ['database-01', styled('bad', '短い文'), '12', 'y'],
  ],
  empty: 'Nothing.',
};

const render = async (view: Parameters<typeof renderView>[0], columns: number | null, wide = false, color = false) =>
  renderView(view, { paint: await loadPaint(color), wide, columns });

describe('a table', () => {
  it('is as wide as it needs to be where nothing has to fit', async () => {
    expect(await render(table, null)).toEqual([
      'NAME         SUMMARY                                             N',
      'web-01       a rather long sentence that does not fit anywhere   1',
      'database-01  短い文                                             12',
    ]);
  });

  it('is cut to fit the terminal, but never in what people copy', async () => {
    const shown = await render(table, 40);
    expect(shown).toEqual([
      'NAME         SUMMARY                   N',
      'web-01       a rather long sentence…   1',
      'database-01  短い文                   12',
    ]);
    const narrow = await render(table, 10);
    expect(narrow[2]).toContain('database-01');
  });

  it('leaves out columns from the right where cutting is not enough, last those that people copy', async () => {
    const titles = async (columns: number) => (await render(table, columns))[0];
    expect(await titles(26)).toMatch(/^NAME +SUMMARY +N$/);
    expect(await titles(22)).toMatch(/^NAME +SUMMARY$/);
    expect(await titles(14)).toBe('NAME');
    const two = { ...table, columns: [table.columns[0], { title: 'SUMMARY' }, { title: 'ID', whole: true }] };
    expect((await render(two as TableView, 16))[0]).toMatch(/^NAME +ID$/);
  });

  it('cuts a long name that may be cut before it leaves a column out', async () => {
    const columns = [{ title: 'NAME', whole: true, least: 24 }, { title: 'STATUS', whole: true }, { title: 'TAGS' }];
    const rows = [['ip-10-200-112-134.eu-central-1.compute.internal', 'approved', 'env=dev,role=web']];
    const long = { ...table, columns, rows };
    expect(await render(long, 66)).toEqual([
      'NAME                                             STATUS    TAGS',
      'ip-10-200-112-134.eu-central-1.compute.internal  approved  env=de…',
    ]);
    expect(await render(long, 50)).toEqual([
      'NAME                      STATUS    TAGS',
      'ip-10-200-112-134.eu-ce…  approved  env=dev,role=…',
    ]);
    expect((await render(long, 34))[0]).toMatch(/^NAME +STATUS$/);
  });

  it('of very many rows takes time for each of them once', async () => {
    const rows = Array.from({ length: 150_000 }, (_, index) => [`web-${index}`, 'text', '1', '']);
    const shown = await render({ ...table, rows }, 80);
    expect(shown).toHaveLength(150_001);
    expect(shown.at(-1)).toMatch(/^web-149999 +text +1$/);
  });

  it('has more columns and is not cut with -o wide', async () => {
    expect((await render(table, null, true))[0]).toMatch(/NAME .* N {2}MORE$/);
  });

  it('says a sentence when it is empty', async () => {
    expect(await render({ ...table, rows: [] }, 40)).toEqual(['Nothing.']);
  });

  it('colours without moving a column', async () => {
    const plain = await render(table, 60);
    const coloured = await render(table, 60, false, true);
    expect(coloured.join('\n')).toContain('\x1b[31m短い文\x1b[39m');
    expect(coloured.map((line) => line.replace(/\x1b\[\d+m/g, '').trimEnd())).toEqual(plain);
  });
});

describe('views', () => {
  it('leave out a heading without a body and the gap around it', async () => {
    const view = stack(lines('a'), headed('Empty', lines()), headed('Full', lines('b')));
    expect(await render(view, null)).toEqual(['a', '', 'Full', 'b']);
  });
});

describe('a plan', () => {
  it('of more lines than a call takes arguments is shown whole', async () => {
    const resource = { ...(planned.find(({ diff }) => diff === null) ?? planned[0]), error: null } as ResourceResult;
    const diff = '+a line\n'.repeat(150_000);
    const result = { ...runResult([{ ...resource, status: 'pending', action: 'update', diff }]), has_changes: true };
    const shown = await render(runsView([{ agent: web1, result }], { kind: 'plan', verbose: false }), null);
    expect(shown.filter((line) => line.trim() === '+a line')).toHaveLength(150_000);
    const many = Array.from({ length: 150_000 }, (_, index) => ({ ...resource, identity: `/f${index}` }));
    const wide = await render(
      runsView([{ agent: web1, result: runResult(many) }], { kind: 'plan', verbose: true }),
      null,
    );
    expect(wide.length).toBeGreaterThan(150_000);
  });
});

describe('width', () => {
  it.each([
    ['abc', 3],
    ['日本', 4],
    ['e\u0301', 1],
    ['👍', 2],
    ['한글ａ', 6],
  ])('%s takes %d columns', (text, width) => expect(widthOf(text)).toBe(width));

  it('cuts between characters', () => {
    expect(cutToWidth('日本語', 5)).toBe('日本…');
    expect(cutToWidth('日本語', 4)).toBe('日…');
    expect(cutToWidth('abc', 3)).toBe('abc');
  });
});

describe('colours', () => {
  it.each([
    [{}, null, true, true],
    [{}, null, false, false],
    [{}, false, true, false],
    [{}, true, false, true],
    [{ NO_COLOR: '1' }, null, true, false],
    [{ NO_COLOR: '1' }, true, true, true],
    [{ NO_COLOR: '' }, null, true, true],
    [{ FORCE_COLOR: '1' }, null, false, true],
    [{ FORCE_COLOR: '1', NO_COLOR: '1' }, null, true, false],
    [{ FORCE_COLOR: '1' }, false, true, false],
    [{ FORCE_COLOR: '0' }, null, true, false],
    [{ FORCE_COLOR: '1', CLICOLOR: '0' }, null, false, true],
    [{ CLICOLOR_FORCE: '1' }, null, false, true],
    [{ CLICOLOR_FORCE: '1', FORCE_COLOR: '0' }, null, false, true],
    [{ CLICOLOR_FORCE: '1', NO_COLOR: '1' }, null, true, false],
    [{ CLICOLOR_FORCE: '0' }, null, false, false],
    [{ CLICOLOR_FORCE: '1' }, false, true, false],
    [{ CLICOLOR: '0' }, null, true, false],
    [{ TERM: 'dumb' }, null, true, false],
  ])('%o, --color or --no-color %s, terminal %s: %s', (env, wanted, terminal, expected) => {
    expect(wantsColor(env, wanted, terminal)).toBe(expected);
  });
});
