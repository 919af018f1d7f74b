import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { listModuleRevisions } from '../../daemon/engine/modules/module-store.js';
import { rejection } from '../support/database.js';
import { ALICE, moduleText, openBench } from '../support/engine.js';

describe('modules', () => {
  it('are stored in revisions and read back as they were uploaded', async () => {
    const bench = await openBench();
    const { modules } = bench.engine;
    const [first, second] = [moduleText('site', { '/a': 'one' }), moduleText('site', { '/a': 'two' })];
    const uploaded = await modules.upload({ name: 'site', content: first }, ALICE);
    bench.clock.advance(2000);
    await modules.upload({ name: 'site', content: second }, ALICE);

    const by = ALICE.actor.id;
    expect(uploaded).toEqual({
      name: 'site',
      revision: 1,
      sha256: createHash('sha256').update(first).digest('hex'),
      uploaded_at: 1772366400,
      uploaded_by: by,
      changed: true,
      warnings: [],
    });
    expect(await modules.get('site')).toEqual({
      name: 'site',
      uploaded_at: 1772366402,
      uploaded_by: ALICE.actor.id,
      revision: 2,
      sha256: createHash('sha256').update(second).digest('hex'),
      content: second,
      definition: {
        name: 'site',
        supports: [{ platform: 'linux' }],
        resources: [{ resource: { 'file-unix': { path: '/a', content: 'two' } } }],
      },
    });
    expect(await modules.get('site', 1)).toMatchObject({ revision: 1, content: first });
    expect((await rejection(modules.get('site', 3))).message).toBe('there is no module "site" with revision 3');
    expect(await modules.list()).toEqual([{ name: 'site', uploaded_at: 1772366402, uploaded_by: ALICE.actor.id }]);
    expect(bench.events).toMatchObject([
      {
        type: 'module.uploaded',
        target: { id: 'site', type: 'module' },
        metadata: { revision: 1, request_id: 'request-1' },
      },
      { type: 'module.uploaded', metadata: { revision: 2 } },
    ]);
  });

  it('stay as they are when the same text comes again', async () => {
    const bench = await openBench();
    const { modules } = bench.engine;
    const content = moduleText('site', {});
    const first = await modules.upload({ name: 'site', content }, ALICE);
    bench.clock.advance(5000);
    const again = await modules.upload({ name: 'site', content }, { ...ALICE, actor: { ...ALICE.actor, id: 'b' } });
    expect(again).toEqual({ ...first, changed: false });
    expect((await modules.get('site')).revision).toBe(1);
    expect(bench.eventTypes()).toEqual(['module.uploaded']);
  });

  it('keep the last 50 revisions', async () => {
    const bench = await openBench();
    for (let count = 1; count <= 53; count += 1) await bench.upload('site', { '/a': `${count}` });
    const revisions = (await listModuleRevisions(bench.db, 'site')).map(({ revision }) => revision);
    expect([revisions.length, revisions[0], revisions.at(-1)]).toEqual([50, 53, 4]);
  });

  it('are refused with every mistake and its place, and nothing is stored', async () => {
    const bench = await openBench();
    const content =
      'name: other\nsupports: [{platform: linux}]\nresources:\n  - resource: {file-unix: {path: etc}}\n  - resorce: 1\n';
    const fault = await rejection(bench.engine.modules.upload({ name: 'site', content }, ALICE));
    expect(fault.code).toBe('invalid_module');
    expect(fault.errors).toMatchObject([
      { path: '/resources/0/resource/file-unix/path', line: 4 },
      { line: 5 },
      { line: 5 },
    ]);
    const named = await rejection(
      bench.engine.modules.upload({ name: 'site', content: moduleText('other', {}) }, ALICE),
    );
    expect(named).toMatchObject({
      code: 'invalid_module',
      errors: [{ path: '/name', line: 1, column: 7, message: 'the module is named "other", but is sent as "site"' }],
    });
    expect(await bench.engine.modules.list()).toEqual([]);
    expect(bench.events).toEqual([]);
  });

  it('tell their warnings', async () => {
    const bench = await openBench();
    const { warnings } = await bench.engine.modules.upload(
      { name: 'site', content: 'name: site\nsupports: []\n' },
      ALICE,
    );
    expect(warnings).toMatchObject([{ path: '/supports', line: 2 }]);
  });

  it('are deleted with all revisions, and what they applied stays managed', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    await bench.upload('site', { '/a': '' });
    await bench.apply(agent, ['site']);
    await bench.engine.modules.remove('site', ALICE);
    expect((await rejection(bench.engine.modules.get('site'))).code).toBe('module_not_found');
    expect((await rejection(bench.engine.modules.remove('site', ALICE))).code).toBe('module_not_found');
    expect(bench.events.at(-1)).toMatchObject({ type: 'module.deleted', target: { id: 'site' } });
    expect(await bench.engine.state.get(agent.nodeId)).toMatchObject({
      applied: [{ identity: '/a' }],
      pending_removals: [{ identity: '/a' }],
      unapplied: [],
    });
  });

  it('come with warnings of their resolution, at their place', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const directory =
      'name: dir\nsupports: [{platform: linux}]\nresources:\n  - resource: {directory-unix: {path: /srv/app}}\n';
    await bench.engine.modules.upload({ name: 'dir', content: directory }, ALICE);
    await bench.upload('site', { '/srv/app/file': '' });
    const { warnings } = await bench.plan(agent, ['site', 'dir']);
    expect(warnings).toMatchObject([{ module: 'site', line: 4, message: expect.stringContaining('/srv/app/file') }]);
  });
});
