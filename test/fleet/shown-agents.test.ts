import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Queryable } from '../../daemon/database/schema.js';
import {
  deleteAgent,
  findShownAgent,
  insertAgent,
  listShownAgents,
  noteArrival,
  updateAgent,
} from '../../daemon/fleet/agent-store.js';
import { ShownAgents } from '../../daemon/fleet/shown-agents.js';
import { removeTag, replaceTags, setTag } from '../../daemon/fleet/tag-store.js';
import { writerOf } from '../support/audit.js';
import { agentRow, gated, node, openStore } from '../support/database.js';
import { drawn } from '../support/exhaustive.js';

const IDS = ['1', '2', '3'].map(node);
const PAGES = [
  { after: null, limit: 10 },
  { after: null, limit: 1 },
  { after: null, limit: 10, status: 'pending' },
  { after: null, limit: 10, name: 'b' },
  { after: { name: 'a', node_id: IDS[0] ?? '' }, limit: 10 },
] as const;

/** Changes of an agent; `n` makes values. */
const CHANGES: readonly ((tx: Queryable, id: string, n: number) => Promise<unknown>)[] = [
  (tx, node_id, n) => insertAgent(tx, agentRow({ node_id, status: 'pending', agent_version: String(n) })),
  (tx, id, n) => updateAgent(tx, id, { status: 'approved', name: 'abc'[n % 3] ?? null }),
  (tx, id, n) => updateAgent(tx, id, { attributes: { n: String(n) } }),
  (tx, id, now) => noteArrival(tx, id, { now: now * 1000, agentVersion: '0.2.0', protocolVersion: 1 }),
  (tx, id, n) => setTag(tx, id, 'abc'[n % 3] ?? '', String(n)),
  (tx, id, n) => removeTag(tx, id, 'abc'[n % 3] ?? ''),
  (tx, id, n) => replaceTags(tx, id, { n: String(n) }),
  (tx, id) => deleteAgent(tx, id),
  async (tx, id, n) => {
    await updateAgent(tx, id, { initial_hostname: String(n) });
    throw new Error('a unit that fails');
  },
];

describe('agents that are kept between requests', () => {
  it('are what the store says, after any sequence of changes (property)', async () => {
    const change = fc.tuple(fc.nat(CHANGES.length - 1), fc.constantFrom(...IDS), fc.nat(9), fc.boolean());
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 20 }), async (changes) => {
        const store = await openStore();
        const { db } = store;
        const shown = new ShownAgents(db);
        const uow = shown.forgottenBy(writerOf(store).writer);
        for (const [number, id, n, isBeside] of changes) {
          // Fails for a name in use and for a node ID in use.
          const changed = uow.write(async (tx) => CHANGES[number]?.(tx, id, n)).catch(() => undefined);
          if (isBeside) await Promise.all([shown.find(id), shown.list(PAGES[0]), setImmediate(), shown.list(PAGES[1])]);
          await changed;
          for (const one of IDS) {
            const stored = await findShownAgent(db, one);
            expect([await shown.find(one), await shown.find(one)]).toEqual([stored, stored]);
          }
          for (const page of PAGES) {
            const stored = await listShownAgents(db, page);
            expect([await shown.list(page), await shown.list(page)]).toEqual([stored, stored]);
          }
        }
        await store.close();
      }),
      { numRuns: drawn(25) },
    );
  });

  it('are not those that were read before a change and arrived after it', async () => {
    const store = await openStore();
    const [id = ''] = IDS;
    await insertAgent(store.db, agentRow({ node_id: id, name: 'before' }));
    const gate = gated(store.db);
    const shown = new ShownAgents(gate.db);
    const early = shown.find(id);
    await gate.read;
    await shown.forgottenBy(writerOf(store).writer).write((tx) => updateAgent(tx, id, { name: 'after' }));
    gate.open();
    expect((await early)?.name).toBe('before');
    expect((await shown.find(id))?.name).toBe('after');
  });

  it('are not those that were read between the work of a change and its commit', async () => {
    const store = await openStore();
    const [id = ''] = IDS;
    await insertAgent(store.db, agentRow({ node_id: id, name: 'before' }));
    const shown = new ShownAgents(store.db);
    const { writer } = writerOf(store);
    const uow = shown.forgottenBy({
      write: async (work) => {
        const result = await writer.write(work);
        expect((await shown.find(id))?.name).toBe('before');
        // The commit, in the eyes of other sessions.
        await updateAgent(store.db, id, { name: 'after' });
        // As a subscriber of the event does.
        expect((await shown.find(id))?.name).toBe('after');
        return result;
      },
    });
    await uow.write(async () => undefined);
    expect((await shown.find(id))?.name).toBe('after');
  });

  it('are read once, up to a number', async () => {
    const store = await openStore();
    const [id = ''] = IDS;
    await insertAgent(store.db, agentRow({ node_id: id, name: 'a' }));
    const shown = new ShownAgents(store.db);
    for (let limit = 1; limit <= 2_001; limit += 1) await shown.list({ after: null, limit });
    // Behind the back of the unit of work, which shows what is kept.
    await updateAgent(store.db, id, { name: 'b' });
    const nameIn = async (limit: number) => (await shown.list({ after: null, limit }))[0]?.name;
    expect([await nameIn(1), await nameIn(2_000), await nameIn(2_001)]).toEqual(['a', 'a', 'b']);
    expect(await shown.find(node('9'))).toBeNull();
  });

  it('are changed by the fleet alone', () => {
    const root = new URL('../../daemon', import.meta.url).pathname;
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
    const writers = /\b(insertAgent|updateAgent|noteArrival|deleteAgent|setTag|removeTag|replaceTags)\(/;
    const outside = files.filter((file) => !file.startsWith('fleet/') && !file.startsWith('database/migrations/'));
    expect(outside.filter((file) => writers.test(readFileSync(join(root, file), 'utf8')))).toEqual([]);
  });
});
