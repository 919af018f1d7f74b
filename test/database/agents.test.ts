import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { listAppliedResources, putAppliedResources } from '../../daemon/engine/state/applied-resource-store.js';
import {
  countAgentsByStatus,
  deleteAgent,
  findAgent,
  findAgentByName,
  findAgents,
  findAgentsByHostname,
  findShownAgent,
  insertAgent,
  listAgents,
  listPendingAgents,
  listShownAgents,
  placeOfAgent,
  updateAgent,
} from '../../daemon/fleet/agent-store.js';
import { distinctTags, removeTag, replaceTags, setTag, tagsByAgent, tagsOf } from '../../daemon/fleet/tag-store.js';
import { agentRow, node, openStore, rejection } from '../support/database.js';
import { drawn } from '../support/exhaustive.js';
import { TEST_STORE } from '../support/store-urls.js';

type Place = Awaited<ReturnType<typeof placeOfAgent>>;

async function fleet() {
  const { db } = await openStore();
  await insertAgent(db, agentRow({ node_id: node('3'), name: 'web-2' }));
  await insertAgent(db, agentRow({ node_id: node('9'), status: 'pending', connected_at: 50 }));
  await insertAgent(db, agentRow({ node_id: node('1'), name: 'web-1' }));
  await insertAgent(db, agentRow({ node_id: node('2'), status: 'pending', connected_at: 70 }));
  await insertAgent(db, agentRow({ node_id: node('5'), name: 'db-1', status: 'rejected' }));
  return db;
}
const ids = (rows: readonly { readonly node_id: string }[]) => rows.map(({ node_id }) => node_id[0]).join('');

describe('agents', () => {
  it('are listed by name, then those without by node ID', async () => {
    const db = await fleet();
    expect(ids(await listAgents(db))).toBe('51329');
    expect(ids(await listAgents(db, { status: 'pending' }))).toBe('29');
    expect(ids(await listAgents(db, { status: null }))).toBe('51329');
  });

  it('are listed in pages', async () => {
    const db = await fleet();
    const pages: string[] = [];
    for (let after: Place | null = null; ; ) {
      const page: readonly Place[] = await listShownAgents(db, { limit: 2, after });
      pages.push(ids(page));
      if (page.length < 2) break;
      after = page.at(-1) ?? null;
    }
    expect(pages).toEqual(['51', '32', '9']);
    const after = await placeOfAgent(db, node('5'));
    expect(ids(await listShownAgents(db, { status: 'approved', after, limit: 10 }))).toBe('13');
    expect(ids(await listShownAgents(db, { name: 'web-2', after: null, limit: 10 }))).toBe('3');
    expect(ids(await listShownAgents(db, { status: 'pending', after: null, limit: 1 }))).toBe('2');
    expect(await rejection(placeOfAgent(db, node('7')))).toMatchObject({
      code: 'invalid_cursor',
      hint: 'start again with the first page',
    });
  });

  it('are shown with their tags, by key', async () => {
    const db = await fleet();
    await replaceTags(db, node('1'), { zone: 'b', role: '"' });
    const tags = { role: '"', zone: 'b' };
    const shown = await findShownAgent(db, node('1'));
    expect(JSON.parse(shown?.head ?? '')).toEqual({ node_id: node('1'), name: 'web-1', status: 'approved' });
    expect(JSON.parse(shown?.tail ?? '')).toMatchObject({ attributes: {} });
    expect(JSON.parse(shown?.tags ?? '')).toEqual(tags);
    expect(Object.keys(JSON.parse(shown?.tags ?? ''))).toEqual(['role', 'zone']);
    const tagsIn = ({ tags: text }: { readonly tags: string }) => Object.keys(JSON.parse(text)).length;
    expect((await listShownAgents(db, { after: null, limit: 9 })).map(tagsIn)).toEqual([0, 2, 0, 0, 0]);
    expect(await findShownAgent(db, node('7'))).toBeNull();
  });

  it('are shown as JSON, whatever their machines report (property)', async () => {
    const { db } = await openStore();
    const text = fc.string({ unit: 'binary' });
    // PostgreSQL stores no NUL characters.
    const column = TEST_STORE === 'sqlite' ? text : text.map((made) => made.replaceAll('\0', '\ufffd'));
    const printable = text.filter((made) => !/\p{Cc}/u.test(made));
    const attributesOf = fc.dictionary(text, text, { noNullPrototype: true });
    const tagsOfAgent = fc.dictionary(printable, printable, { noNullPrototype: true });
    const nodeIds = ['1', '2'].map(node);
    await fc.assert(
      fc.asyncProperty(
        attributesOf,
        tagsOfAgent,
        column,
        fc.option(column),
        async (attributes, tags, hostname, name) => {
          const row = { attributes, initial_hostname: hostname, agent_version: hostname, updated_at: 1_999 };
          for (const node_id of nodeIds) {
            await deleteAgent(db, node_id);
            await insertAgent(db, agentRow({ node_id, ...row, name: node_id === nodeIds[0] ? name : null }));
            await replaceTags(db, node_id, tags);
          }
          const shown = await findShownAgent(db, nodeIds[0] ?? '');
          const own = { ...JSON.parse(shown?.head ?? ''), ...JSON.parse(shown?.tail ?? '') };
          const members = { ...own, tags: JSON.parse(shown?.tags ?? '') };
          expect(members).toEqual({
            ...{ node_id: nodeIds[0], name, status: 'approved', connected_at: 0, updated_at: 1 },
            ...{ initial_hostname: hostname, initial_ip: '192.0.2.1', agent_version: hostname },
            ...{ public_key: nodeIds[0]?.repeat(2), attributes, tags },
          });
          expect(await listShownAgents(db, { after: null, limit: 1, status: name === '' ? 'approved' : null })).toEqual(
            name === '' ? [expect.objectContaining({ node_id: nodeIds[1] })] : [shown],
          );
        },
      ),
      { numRuns: drawn(60) },
    );
  });

  it('are found when they are more than a statement has parameters for', async () => {
    const { db } = await openStore();
    const nodes = Array.from({ length: 1200 }, (_, index) => index.toString(16).padStart(32, '0'));
    await db.transaction().execute(async (tx) => {
      for (const node_id of nodes) await insertAgent(tx, agentRow({ node_id }));
    });
    expect(await findAgents(db, nodes)).toHaveLength(1200);
  });

  it('are found, changed and counted', async () => {
    const db = await fleet();
    expect(await findAgent(db, node('1'))).toMatchObject({ name: 'web-1', attributes: {} });
    expect(await findAgent(db, node('0'))).toBeNull();
    expect(await findAgentByName(db, 'web-2')).toMatchObject({ node_id: node('3') });
    expect(await findAgentByName(db, 'web')).toBeNull();
    expect([...ids(await findAgents(db, [node('1'), node('0'), node('9')]))].sort()).toEqual(['1', '9']);
    expect(await findAgentsByHostname(db, 'host')).toHaveLength(5);
    expect(await updateAgent(db, node('1'), { last_seen_at: 7 })).toBe(true);
    expect(await updateAgent(db, node('0'), { last_seen_at: 7 })).toBe(false);
    expect(await findAgent(db, node('1'))).toMatchObject({ last_seen_at: 7, name: 'web-1' });
    expect(await countAgentsByStatus(db)).toEqual(new Map(Object.entries({ approved: 2, pending: 2, rejected: 1 })));
    expect(ids(await listPendingAgents(db))).toBe('92');
  });

  it('have names that are unique, and may be without', async () => {
    const db = await fleet();
    const clash = insertAgent(db, agentRow({ node_id: node('8'), name: 'web-1' }));
    await expect(clash).rejects.toThrow(/unique/i);
  });

  it('take tags and believed state with them', async () => {
    const db = await fleet();
    await replaceTags(db, node('1'), { role: 'web' });
    await putAppliedResources(db, [
      {
        node_id: node('1'),
        family: 'file',
        identity_key: '/a',
        module: 'm',
        kind: 'file-unix',
        identity: '/a',
        id: null,
        name: null,
        body_json: '{}',
        taint_json: null,
        origin: 'created',
        operation_id: 'o',
        applied_at: 1,
        position: 0,
        ad_hoc: 0,
      },
    ]);
    expect(await deleteAgent(db, node('1'))).toBe(true);
    expect(await deleteAgent(db, node('1'))).toBe(false);
    expect(await tagsOf(db, node('1'))).toEqual({});
    expect(await listAppliedResources(db, node('1'))).toEqual([]);
  });
});

describe('tags', () => {
  it('are set, changed, replaced and removed', async () => {
    const db = await fleet();
    await setTag(db, node('1'), 'role', 'web');
    await setTag(db, node('1'), 'role', 'db');
    await setTag(db, node('1'), 'Env', '');
    expect(Object.entries(await tagsOf(db, node('1')))).toEqual([
      ['Env', ''],
      ['role', 'db'],
    ]);
    expect(await removeTag(db, node('1'), 'role')).toBe(true);
    expect(await removeTag(db, node('1'), 'role')).toBe(false);
    await replaceTags(db, node('1'), { zone: 'a', role: 'x' });
    expect(await tagsOf(db, node('1'))).toEqual({ role: 'x', zone: 'a' });
    await replaceTags(db, node('1'), {});
    expect(await tagsOf(db, node('1'))).toEqual({});
  });

  it('are gathered over many agents', async () => {
    const db = await fleet();
    await replaceTags(db, node('1'), { role: 'web', zone: 'b', toString: 'x' });
    await replaceTags(db, node('3'), { role: 'web', zone: 'a' });
    expect(await tagsByAgent(db)).toEqual(
      new Map<string, unknown>([
        [node('1'), { role: 'web', zone: 'b', toString: 'x' }],
        [node('3'), { role: 'web', zone: 'a' }],
      ]),
    );
    expect([...(await distinctTags(db))]).toEqual([
      ['role', ['web']],
      ['toString', ['x']],
      ['zone', ['a', 'b']],
    ]);
  });
});
