/** Results in short: nothing is lost, whatever the agent reports. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DesiredResource } from '../../src/resources/desired.js';
import type { ResourceResult } from '../../src/resources/result.js';
import {
  countResults,
  type ItemResult,
  isUnchanged,
  itemsOf,
  shortened,
  type Unchanged,
  withoutFirst,
} from '../../src/resources/run-results.js';

const SIZE = 12;
const resources = Array.from(
  { length: SIZE },
  (_, index): DesiredResource => ({
    module: 'site',
    kind: 'file-unix',
    identity: `/${index}`,
    id: index % 3 === 0 ? `id-${index}` : null,
    name: null,
    body: {},
    after: [],
    ...(index % 5 === 0 ? { taint: { '/content': [{ start: 0, end: 1, secret: 'TOKEN', tag: 'ab12' }] } } : {}),
  }),
);

/** Mostly plain results, and each way of not being one. */
const change = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Partial<ResourceResult>>({}) },
  fc.constantFrom<Partial<ResourceResult>>(
    { status: 'failed', error: { code: 'io_error', message: 'no' } },
    { status: 'changed', action: 'update', changes: [{ field: 'mode', before: '1', after: '2' }] },
    { reason: 'it was triggered' },
    { diff: '@@' },
    { sensitive: true },
    { sensitive: false },
    { action: 'release' },
  ),
);
const item = (index: number): fc.Arbitrary<ItemResult> =>
  fc
    .record({ change, existed: fc.constantFrom(true, true, true, false, null), duration_ms: fc.constantFrom(0, 0, 1) })
    .map((one) => {
      const [plain] = itemsOf({ index, count: 1, duration_ms: one.duration_ms }, resources);
      const result = { ...(plain as ItemResult).result, ...one.change };
      return { index, existed: one.existed, result };
    });
/** The results of a run, in any order of arrival. */
const items = fc
  .shuffledSubarray(resources.map((_, index) => index))
  .chain((order) => fc.boolean().map((isSorted) => (isSorted ? order.toSorted((a, b) => a - b) : order)))
  .chain((order) => fc.tuple(...order.map(item)));

const whole = (entries: readonly (ItemResult | Unchanged)[]): readonly ItemResult[] =>
  entries.flatMap((entry) => (isUnchanged(entry) ? itemsOf(entry, resources) : entry));

describe('results in short', () => {
  it('stand for the same results, in the same order', () => {
    fc.assert(
      fc.property(items, (given) => {
        const short = shortened(given, resources);
        expect(whole(short)).toEqual(given);
        expect(countResults(short)).toBe(given.length);
        expect(shortened(short, resources)).toEqual(short);
      }),
    );
  });

  it('can be cut anywhere', () => {
    fc.assert(
      fc.property(items, fc.nat(SIZE), (given, first) => {
        expect(whole(withoutFirst(shortened(given, resources), first))).toEqual(given.slice(first));
      }),
    );
  });

  it('take one entry when nothing has changed', () => {
    const given = itemsOf({ index: 0, count: SIZE, duration_ms: 3 }, resources);
    expect(shortened(given, resources)).toEqual([{ index: 0, count: SIZE, duration_ms: 3 }]);
  });

  it('leave a result with output as it is', () => {
    const [plain] = itemsOf({ index: 1, count: 1, duration_ms: 0 }, resources);
    const given = [{ ...(plain as ItemResult), output: { stdout: 'x', stderr: '', exit_code: 0, truncated: false } }];
    expect(shortened(given, resources)).toEqual(given);
  });
});
