/** The rules by which an apply changes the believed state of its machine. */
import { describe, expect, it } from 'vitest';
import { finish } from '../../src/kernel/steps.js';
import { believedChange, type ItemOutcome, noLongerDesired } from '../../src/resources/believed-state.js';
import type { DesiredResource, Removal } from '../../src/resources/desired.js';
import { resourceKey } from '../../src/resources/resource-key.js';

const EARLIER = '01J00000000000000000000001';
const NOW = '01J00000000000000000000002';
const LATER = '01J00000000000000000000003';

const address = (path: string) => ({ module: 'site', kind: 'file-unix', identity: path, id: null, name: null });
const desired = (path: string): DesiredResource => ({ ...address(path), body: { path }, after: [] });
const removal = (path: string): Removal => ({ ...address(path), body: { path }, origin: 'created' });

/** Returns the change by an apply of the resource /a and the removal of /b. */
function change(
  outcome: Omit<ItemOutcome, 'action'> & Partial<ItemOutcome>,
  earlier?: { origin: 'created' | 'adopted'; operation_id: string; kind?: string },
) {
  const outcomes = [{ action: 'none', ...outcome } as const];
  const apply = { operationId: NOW, resources: [desired('/a')], removals: [removal('/b')], outcomes };
  const last = earlier && { kind: 'file-unix', ...earlier };
  const { put, remove } = finish(believedChange(apply, () => last));
  return [
    ...put.map(({ resource, origin }) => `${resource.identity} ${origin}`),
    ...remove.map((one) => `-${one.identity}`),
  ];
}

describe('an apply', () => {
  it.each([
    ['changed', false, ['/a created']],
    ['changed', true, ['/a adopted']],
    ['changed', null, ['/a adopted']],
    ['unchanged', true, ['/a adopted']],
    ['failed', false, []],
    ['skipped', null, []],
    ['pending', false, []],
  ] as const)('puts a resource that is %s and existed: %s', (status, existed, expected) => {
    expect(change({ index: 0, status, existed })).toEqual(expected);
  });

  it('puts what it has half created, and nothing of a creation that left nothing or of another failure', () => {
    const outcome = { index: 0, status: 'failed', action: 'create', existed: false } as const;
    expect(change(outcome)).toEqual(['/a created']);
    expect(change({ ...outcome, existed: null })).toEqual([]);
    expect(change({ ...outcome, existed: true })).toEqual([]);
    expect(change({ ...outcome, action: 'update' })).toEqual([]);
    expect(change(outcome, { origin: 'adopted', operation_id: EARLIER })).toEqual([]);
  });

  it('decides the origin anew for another kind at the same place', () => {
    const last = { origin: 'created', operation_id: EARLIER, kind: 'directory-unix' } as const;
    expect(change({ index: 0, status: 'changed', existed: true }, last)).toEqual(['/a adopted']);
  });

  it('keeps the origin of a managed resource', () => {
    expect(
      change({ index: 0, status: 'changed', existed: true }, { origin: 'created', operation_id: EARLIER }),
    ).toEqual(['/a created']);
    expect(change({ index: 0, status: 'changed', existed: false }, { origin: 'adopted', operation_id: NOW })).toEqual([
      '/a adopted',
    ]);
  });

  it.each([
    ['changed', ['-/b']],
    ['unchanged', ['-/b']],
    ['failed', []],
    ['skipped', []],
  ] as const)('takes out a removal that is %s', (status, expected) => {
    expect(change({ index: 1, status, existed: true })).toEqual(expected);
  });

  it('leaves what a later apply wrote, and ignores an item that was not sent', () => {
    const last = { origin: 'created', operation_id: LATER } as const;
    expect(change({ index: 0, status: 'changed', existed: false }, last)).toEqual([]);
    expect(change({ index: 1, status: 'changed', existed: true }, last)).toEqual([]);
    expect(change({ index: 2, status: 'changed', existed: false })).toEqual([]);
  });
});

it('managed resources that are not desired are found by their key, in their order', () => {
  const managed = ['/c', '/a', '/b'].map(removal);
  const found = finish(noLongerDesired(managed, resourceKey, [desired('/a')]));
  expect(found.map(({ identity }) => identity)).toEqual(['/c', '/b']);
  const directories = managed.map((one) => ({ ...one, kind: 'directory-unix' }));
  expect(finish(noLongerDesired(directories, resourceKey, [desired('/a')]))).toHaveLength(3);
});
