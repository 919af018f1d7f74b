import { describe, expect, it } from 'vitest';
import {
  addModuleRevision,
  deleteModule,
  findModule,
  findModuleHeads,
  findModuleRevision,
  findModuleText,
  listModuleRevisions,
  listModules,
  pruneModuleRevisions,
} from '../../daemon/engine/modules/module-store.js';
import { openStore } from '../support/database.js';

const revision = (name: string, content: string, uploaded_at = 1000) => ({
  name,
  content,
  sha256: content.padEnd(64, '0'),
  definition: { name, resources: [] },
  uploaded_at,
  uploaded_by: 'alice',
});

describe('modules', () => {
  it('are kept in revisions, the newest of which is the current one', async () => {
    const { db } = await openStore();
    expect(await addModuleRevision(db, revision('web', 'one'))).toBe(1);
    expect(await addModuleRevision(db, revision('web', 'two', 2000))).toBe(2);
    expect(await addModuleRevision(db, revision('base', 'three'))).toBe(1);
    expect((await listModules(db)).map(({ name, revision }) => [name, revision])).toEqual([
      ['base', 1],
      ['web', 2],
    ]);
    expect(await findModule(db, 'web')).toMatchObject({ revision: 2, uploaded_at: 2000 });
    expect(await findModuleRevision(db, 'web')).toMatchObject({ content: 'two', revision: 2 });
    expect(await findModuleRevision(db, 'web', 1)).toMatchObject({ content: 'one', uploaded_at: 1000 });
    expect(await findModuleText(db, 'web', 1)).toBe('one');
    expect(await findModuleText(db, 'web', 3)).toBeNull();
    expect(await findModuleRevision(db, 'web', null)).toMatchObject({ content: 'two' });
    expect(await findModuleRevision(db, 'web', 3)).toBeNull();
    expect(await findModuleRevision(db, 'db')).toBeNull();
  });

  it('are fetched together, without those that are not there', async () => {
    const { db } = await openStore();
    await addModuleRevision(db, revision('web', 'one'));
    await addModuleRevision(db, revision('web', 'two'));
    await addModuleRevision(db, revision('base', 'three'));
    const heads = await findModuleHeads(db, ['base', 'nothing', 'web']);
    expect(heads.map(({ name, revision }) => `${name} ${revision}`).toSorted()).toEqual(['base 1', 'web 2']);
    expect(heads[0]).not.toHaveProperty('content');
  });

  it('lose their oldest revisions, and everything when deleted', async () => {
    const { db } = await openStore();
    for (let n = 1; n <= 6; n += 1) await addModuleRevision(db, revision('web', `v${n}`));
    await pruneModuleRevisions(db, 'web', 10);
    await pruneModuleRevisions(db, 'web', 4);
    expect((await listModuleRevisions(db, 'web')).map(({ revision }) => revision)).toEqual([6, 5, 4, 3]);
    expect(await deleteModule(db, 'web')).toBe(true);
    expect(await deleteModule(db, 'web')).toBe(false);
    expect(await listModuleRevisions(db, 'web')).toEqual([]);
    expect(await addModuleRevision(db, revision('web', 'anew'))).toBe(1);
  });
});
