/** Tables on a terminal, which a library writes, look exactly like those in pipes. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Style, styled, type TableView } from '../../src/cli/outcome.js';
import { loadPaint } from '../../src/cli/render/paint.js';
import { renderView, type WriteTable } from '../../src/cli/render/render-view.js';
import { tableWriter } from '../../src/cli/render/table-writer.js';
import { terminalTable } from '../../src/cli/render/terminal-table.js';

const STYLES: readonly Style[] = ['strong', 'dim', 'good', 'bad', 'warn', 'accent'];

const common = fc.oneof(fc.string({ maxLength: 30 }), fc.stringMatching(/^[a-zäöüß短文한국→… ]{0,20}$/));
const any = fc.oneof(common, fc.string({ unit: 'grapheme', maxLength: 12 }));
const column = fc.record({ title: fc.stringMatching(/^[A-Z]{1,10}$/), right: fc.boolean(), whole: fc.boolean() });

function tablesOf(text: fc.Arbitrary<string>): fc.Arbitrary<TableView> {
  const painted = fc.tuple(fc.constantFrom(...STYLES), text).map(([style, content]) => styled(style, content));
  return fc.array(column, { minLength: 1, maxLength: 6 }).chain((columns) => {
    const row = fc.array(fc.oneof(text, painted), { minLength: columns.length, maxLength: columns.length });
    return fc
      .array(row, { minLength: 1, maxLength: 60 })
      .map((rows) => ({ kind: 'table', columns, rows, empty: 'Nothing.' }) as const);
  });
}

/** Returns how many of the tables the library has written. */
async function compared(tables: fc.Arbitrary<TableView>): Promise<number> {
  const [plainPaint, colorPaint] = [await loadPaint(false), await loadPaint(true)];
  let written = 0;
  const writeTable: WriteTable = (...given) => {
    const lines = terminalTable(...given);
    if (lines !== null) written += 1;
    return lines;
  };
  fc.assert(
    fc.property(tables, fc.integer({ min: 8, max: 120 }), fc.boolean(), (view, columns, isPainted) => {
      const options = { paint: isPainted ? colorPaint : plainPaint, wide: false, columns };
      expect(renderView(view, { ...options, writeTable })).toEqual(renderView(view, options));
    }),
    { numRuns: 200 },
  );
  return written;
}

it('are the same to the letter, with colours, wide characters and cut columns', async () => {
  expect(await compared(tablesOf(common))).toBeGreaterThanOrEqual(200);
});

it('are left to the plain writer where the library would measure otherwise', async () => {
  await compared(tablesOf(any));
});

it('are written by the library on a terminal of up to 200 rows, and nowhere else', async () => {
  const rows = (count: number): TableView => ({
    kind: 'table',
    columns: [{ title: 'NAME' }],
    rows: Array.from({ length: count }, () => ['x']),
    empty: 'Nothing.',
  });
  expect(await tableWriter(rows(200), 80)).toBe(terminalTable);
  expect(await tableWriter(rows(201), 80)).toBeUndefined();
  expect(await tableWriter(rows(0), 80)).toBeUndefined();
  expect(await tableWriter(rows(200), null)).toBeUndefined();
});
