import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { groupsToApply, groupsToRemove } from '../../../src/agent/converge/grouping.js';
import { NO_LEDGER } from '../../../src/agent/converge/ledger.js';
import { removalOrder, Scope } from '../../../src/agent/converge/scope.js';
import { targetsOf } from '../../../src/agent/converge/target.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { content, directory, file, removal } from '../../support/agent.js';

const grouped = (resources: readonly DesiredResource[]): readonly (readonly number[])[] => {
  const targets = targetsOf(content(resources), 'linux');
  return groupsToApply(targets, new Scope(targets, NO_LEDGER)).map((group) => group.map(({ index }) => index));
};

describe('groups to apply', () => {
  it('hold what does not depend on each other, directories before what lies in them', () => {
    const resources = [
      directory('/a'),
      file('/a/1'),
      file('/a/2'),
      directory('/a/b'),
      file('/a/b/3'),
      file('/x', {}, { after: [2] }),
      file('/y'),
    ];
    expect(grouped(resources)).toEqual([
      [0, 6],
      [1, 2, 3],
      [4, 5],
    ]);
  });

  it('are bounded', () => {
    const resources = Array.from({ length: 600 }, (_, index) => file(`/f${index}`));
    expect(grouped(resources).map((group) => group.length)).toEqual([256, 256, 88]);
  });

  it('keep the order around what is of another family or not known', () => {
    const other = { ...file('/b'), kind: 'script' };
    expect(grouped([file('/a'), other, other, file('/c')])).toEqual([[0], [1, 2], [3]]);
  });

  it('hold every resource once, each after all that it waits for', () => {
    const resource = fc.record({
      parent: fc.nat(5),
      kind: fc.boolean(),
      after: fc.array(fc.nat(400), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(resource, { maxLength: 400 }), (shapes) => {
        const resources = shapes.map(({ parent, kind, after }, index) => {
          const path = `${'/p'.repeat(parent)}/r${index}`;
          const extra = { after: after.filter((at) => at < index) };
          return kind ? directory(path, {}, extra) : file(path, {}, extra);
        });
        const groups = grouped(resources);
        expect(groups.flat().sort((a, b) => a - b)).toEqual(resources.map((_, index) => index));
        const at = new Map(groups.flatMap((group, number) => group.map((index) => [index, number] as const)));
        for (const [index, { after }] of resources.entries()) {
          for (const before of after) expect(at.get(before)).toBeLessThan(at.get(index) ?? -1);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('groups to remove', () => {
  it('take files together and a directory after all that lies in it', () => {
    const applied = [directory('/d'), file('/d/a'), file('/d/b'), directory('/e'), directory('/e/f'), file('/e/f/c')];
    const targets = targetsOf(
      content(
        [],
        applied.map((one) => removal(one)),
      ),
      'linux',
    ).toReversed();
    const groups = groupsToRemove(targets, new Scope(targets, NO_LEDGER));
    expect(groups.map((group) => group.map(({ source }) => source.identity))).toEqual([
      ['/e/f/c'],
      ['/e/f'],
      ['/e', '/d/b', '/d/a'],
      ['/d'],
    ]);
  });
});

describe('the order of removals', () => {
  const ordered = (applied: readonly DesiredResource[]): readonly string[] => {
    const removals = applied.map((one) => removal(one));
    return removalOrder(targetsOf(content([], removals), 'linux')).map(({ source }) => source.identity);
  };
  const unit = (name: string, body: Record<string, unknown>) => ({
    ...file(name),
    kind: 'service-systemd',
    body: { name, ...body },
  });

  it('is that of the apply backwards', () => {
    expect(ordered([directory('/d'), file('/d/a'), unit('web.service', {}), file('/x')])).toEqual([
      '/x',
      'web.service',
      '/d/a',
      '/d',
    ]);
  });

  it('has a directory behind all that was applied before it, however deep, and moves nothing else', () => {
    const applied = [file('/d/e/a'), unit('web.service', {}), directory('/d'), file('/x'), directory('/d/e')];
    expect(ordered(applied)).toEqual(['/x', 'web.service', '/d/e/a', '/d/e', '/d']);
  });

  it('has the files of a circle of services in their directories', () => {
    const circle = [unit('a.service', { dependencies: ['b'] }), unit('b.service', { dependencies: ['a'] })];
    expect(ordered([file('/d/a'), ...circle, directory('/d')])).toEqual(['b.service', 'a.service', '/d/a', '/d']);
  });
});
