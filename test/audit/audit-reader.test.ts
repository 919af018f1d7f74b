import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AuditFilter, readAuditPage } from '../../daemon/audit/audit-reader.js';
import { markOperatorRemoved, putOperator } from '../../daemon/auth/operator-store.js';
import { type DomainEvent, EVENT_SEVERITY, type EventType, type Party } from '../../daemon/core/domain-event.js';
import { insertAgent } from '../../daemon/fleet/agent-store.js';
import { agentParty, event, operatorParty, writerOf } from '../support/audit.js';
import { agentRow, node, openStore, rejection } from '../support/database.js';
import { drawn } from '../support/exhaustive.js';

const alice = operatorParty('alice');
const bob = operatorParty('bob');
const web: Party = { id: node('a'), name: 'web-1', type: 'agent' };

async function log() {
  const store = await openStore();
  const { emit, clock, db } = writerOf(store);
  const add = async (type: EventType, actor: Party, target: Party) => {
    clock.advance(1000);
    await emit(event({ type, actor, target, summary: type }));
  };
  await add('operator.login', alice, alice);
  await add('agent.pending', agentParty('', node('a')), agentParty('', node('a')));
  await add('agent.approved', alice, web);
  await add('state.apply_started', bob, web);
  await add('agent.connected', web, web);
  await add('operator.removed', alice, bob);
  const summaries = async (filter: AuditFilter, limit = 50) =>
    (await readAuditPage(db, filter, limit)).events.map(({ event_type }) => event_type).join(' ');
  return { db, clock, summaries };
}

const time = (text: string) => Date.parse(text);

describe('the audit log', () => {
  it('is shown newest first, as the contract says', async () => {
    const { db } = await log();
    const { events, hasMore } = await readAuditPage(db, {}, 2);
    expect(hasMore).toBe(true);
    expect(events).toEqual([
      {
        id: expect.stringMatching(/^[0-9A-Z]{26}$/),
        event_type: 'operator.removed',
        severity: 'warning',
        summary: 'operator.removed',
        timestamp: '2026-03-01T12:00:06.000Z',
        metadata: {},
        actor: alice,
        target: bob,
      },
      expect.objectContaining({ event_type: 'agent.connected' }),
    ]);
  });

  it('is filtered by type and by prefix of the type', async () => {
    const { summaries } = await log();
    expect(await summaries({ eventType: 'agent.connected' })).toBe('agent.connected');
    expect(await summaries({ eventType: 'agent' })).toBe('');
    expect(await summaries({ category: 'agent' })).toBe('agent.connected agent.approved agent.pending');
    expect(await summaries({ category: 'agent.p' })).toBe('agent.pending');
    expect(await summaries({ category: 'nothing' })).toBe('');
    expect(await summaries({ category: 'agent', eventType: 'operator.login' })).toBe('');
    expect(await summaries({ category: 'agent', eventType: 'agent.approved' })).toBe('agent.approved');
  });

  it('is filtered by who acted or was acted upon', async () => {
    const { summaries } = await log();
    expect(await summaries({ agent: node('a') })).toBe(
      'agent.connected state.apply_started agent.approved agent.pending',
    );
    expect(await summaries({ operator: alice.id })).toBe('operator.removed agent.approved operator.login');
    expect(await summaries({ operator: bob.id, agent: node('a') })).toBe('state.apply_started');
    expect(await summaries({ agent: node('a'), category: 'state' })).toBe('state.apply_started');
    expect(await summaries({ agent: alice.id })).toBe('');
    expect(await summaries({ agent: node('a') }, 1)).toBe('agent.connected');
  });

  it('is filtered by names, of removed agents and operators too', async () => {
    const { db, summaries } = await log();
    const all = 'agent.connected state.apply_started agent.approved agent.pending';
    expect(await summaries({ agent: 'web-1' })).toBe(all);
    await insertAgent(db, agentRow({ node_id: node('a'), name: 'web-1' }));
    expect(await summaries({ agent: 'web-1' })).toBe(all);
    expect(await summaries({ agent: 'web-2' })).toBe('');
    const record = { operator_id: bob.id, public_key: 'k', username: 'bob', role: 'operator', bootstrap: 0 };
    await putOperator(db, { ...record, added_at: 1, added_by: 'x', removed_at: 2, removed_by: 'y' });
    expect(await summaries({ operator: 'bob' })).toBe('operator.removed state.apply_started');
  });

  it('is filtered by the operator who has a name now, else by the only one who had it', async () => {
    const { db, summaries } = await log();
    const record = { public_key: 'k', role: 'operator', bootstrap: 0, added_at: 1, added_by: 'x' };
    const removal = { removed_at: 2, removed_by: 'y' };
    await putOperator(db, { ...record, operator_id: bob.id, username: 'ada' });
    expect(await summaries({ operator: 'ada' })).toBe('operator.removed state.apply_started');
    await markOperatorRemoved(db, bob.id, removal);
    expect(await summaries({ operator: 'ada' })).toBe('operator.removed state.apply_started');
    await putOperator(db, { ...record, operator_id: alice.id, username: 'ada' });
    const ofAlice = 'operator.removed agent.approved operator.login';
    expect(await summaries({ operator: 'ada' })).toBe(ofAlice);
    await putOperator(db, { ...record, operator_id: bob.id, username: 'bob' });
    expect(await summaries({ operator: 'ada' })).toBe(ofAlice);
    expect(await summaries({ operator: bob.id })).toBe('operator.removed state.apply_started');
    await markOperatorRemoved(db, alice.id, removal);
    const ids = [alice.id, bob.id].sort();
    expect(await rejection(summaries({ operator: 'ada' }))).toMatchObject({
      code: 'invalid_filter',
      message: `2 operators had the name ada, and none has it now: ${ids.join(', ')}`,
      hint: `give the ID of the one you mean: operator=${ids[0]}, on the command line --operator ${ids[0]}`,
      data: { parameter: 'operator', operator_ids: ids },
    });
  });

  it('is filtered by time, the end exclusive', async () => {
    const { summaries } = await log();
    expect(await summaries({ after: time('2026-03-01T12:00:05Z') })).toBe('operator.removed agent.connected');
    expect(await summaries({ before: time('2026-03-01T12:00:02Z') })).toBe('operator.login');
    expect(await summaries({ after: time('2026-03-01T12:00:02Z'), before: time('2026-03-01T12:00:03Z') })).toBe(
      'agent.pending',
    );
    expect(await summaries({ after: time('2026-03-02T00:00:00Z') })).toBe('');
    expect(await summaries({ before: time('2026-03-02T00:00:00Z'), category: 'state' })).toBe('state.apply_started');
    expect(await summaries({ before: 0 })).toBe('');
  });

  it('is read in pages that neither repeat nor leave out, while it grows (property)', async () => {
    const { emit, db } = writerOf(await openStore());
    const types = Object.keys(EVENT_SEVERITY) as EventType[];
    const parties = [alice, bob, web, agentParty('db-1', node('b'))];
    const anyEvent: fc.Arbitrary<DomainEvent> = fc.record({
      type: fc.constantFrom(...types),
      actor: fc.constantFrom(...parties),
      target: fc.constantFrom(...parties),
      summary: fc.constant('s'),
      metadata: fc.constant({}),
    });
    await emit(...fc.sample(anyEvent, 400));
    const all = (await readAuditPage(db, {}, 1000)).events;
    const filter = fc.record(
      {
        agent: fc.constantFrom(node('a'), node('b')),
        operator: fc.constantFrom(alice.id, bob.id),
        category: fc.constantFrom('agent', 'state', 'operator.'),
        cursor: fc.constantFrom(...all.map(({ id }) => id)),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(filter, fc.integer({ min: 1, max: 60 }), async (wanted, limit) => {
        const involves = (one: (typeof all)[number], type: string, id: string) =>
          [one.actor, one.target].some((party) => party.type === type && party.id === id);
        const expected = all.filter(
          (one) =>
            (!wanted.agent || involves(one, 'agent', wanted.agent)) &&
            (!wanted.operator || involves(one, 'operator', wanted.operator)) &&
            (!wanted.category || one.event_type.startsWith(wanted.category)) &&
            (!wanted.cursor || one.id < wanted.cursor),
        );
        const read: string[] = [];
        for (let cursor = wanted.cursor; ; cursor = read.at(-1)) {
          const page = await readAuditPage(db, { ...wanted, cursor }, limit);
          read.push(...page.events.map(({ id }) => id));
          if (!page.hasMore) break;
        }
        expect(read).toEqual(expected.map(({ id }) => id));
      }),
      { numRuns: drawn(60) },
    );
  });
});
