/** Which events raise a notification, once, and with them or not at all. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RecordedEvent } from '../../daemon/core/audit-log.js';
import { type DomainEvent, EVENT_SEVERITY, type EventType } from '../../daemon/core/domain-event.js';
import { insertAgent } from '../../daemon/fleet/agent-store.js';
import { agentParty, operatorParty } from '../support/audit.js';
import { agentRow } from '../support/database.js';
import { ADA, type NotifyBench, type NotifyBenchOptions, openNotify } from '../support/notify.js';

const WEB = agentParty('web-01', 'b'.repeat(32));
const GRACE = operatorParty('grace');
const MINUTE = 60_000;

async function bench(options: NotifyBenchOptions = {}): Promise<NotifyBench> {
  const opened = await openNotify(options);
  onTestFinished(() => opened.close());
  return opened;
}

const listed = async (notify: NotifyBench, operatorId = ADA.actor.id) =>
  (await notify.inbox.list(operatorId, { unreadOnly: false, limit: 500 }, null)).notifications;
const types = async (notify: NotifyBench) => (await listed(notify)).map(({ event_type }) => event_type).reverse();

const login = (address: string, change: Partial<DomainEvent> = {}): Partial<DomainEvent> => ({
  type: 'operator.login',
  actor: GRACE,
  target: GRACE,
  summary: 'grace logged in',
  metadata: { address },
  ...change,
});

const failure = (count: number, party = GRACE): Partial<DomainEvent> => ({
  type: 'operator.login_failed',
  actor: party,
  target: party,
  summary: `grace failed to log in ${count} times`,
  metadata: { count, address: '192.0.2.9', reason: 'signature_verification_failed' },
});

const went: Partial<DomainEvent> = {
  type: 'agent.disconnected',
  actor: WEB,
  target: WEB,
  summary: 'Agent web-01 disconnected',
};
const came: Partial<DomainEvent> = { ...went, type: 'agent.connected', summary: 'Agent web-01 connected' };
const withWeb = async (notify: NotifyBench) =>
  insertAgent(notify.db, agentRow({ node_id: WEB.id, name: 'web-01', status: 'approved' }));

const AT_ONCE: readonly EventType[] = [
  'agent.pending',
  'agent.refused',
  'agent.duplicate_identity',
  'agent.journal_lost',
  'agent.removals_held',
  'agent.upgrade_failed',
  'drift.detected',
  'drift.resolved',
  'enforcement.stopped',
  'agent.returned',
  'state.apply_failed',
  'state.apply_interrupted',
  'rollout.halted',
  'rollout.failed',
  'rollout.reverted',
  'state.apply_rolled_back',
  'operator.added',
  'operator.rights_changed',
  'operator.expiring',
  'operator.expired',
  'operator.removed',
  'secret.expired',
  'channel.delivery_failed',
  'orchestrator.restored',
  'orchestrator.clock_jumped',
  'orchestrator.store_damaged',
  'orchestrator.certificate_expiring',
  'orchestrator.certificate_expired',
  'audit.events_lost',
];
const IN_THEIR_TIME: readonly EventType[] = ['agent.disconnected', 'operator.login', 'operator.login_failed'];

describe('an event', () => {
  it.each(AT_ONCE)('%s raises a notification at once', async (type) => {
    const notify = await bench();
    await notify.emit({ type, target: WEB, summary: 'something\u202e happened' });
    const [event] = notify.events;
    expect(await listed(notify)).toEqual([
      {
        id: expect.stringMatching(/^[0-9A-Z]{26}$/),
        event_id: event?.id,
        event_type: type,
        severity: EVENT_SEVERITY[type],
        summary: 'something happened',
        timestamp_ms: event?.timestamp,
        read: false,
      },
    ]);
  });

  it.each(
    (Object.keys(EVENT_SEVERITY) as EventType[]).filter((type) => ![...AT_ONCE, ...IN_THEIR_TIME].includes(type)),
  )('%s raises none', async (type) => {
    const notify = await bench();
    await notify.emit({ type, target: WEB });
    expect(await listed(notify)).toEqual([]);
  });

  it('whose change is undone raises none', async () => {
    const notify = await bench();
    const before: readonly RecordedEvent[] = [...notify.events];
    await expect(
      notify.emit({ type: 'drift.detected' }, { type: 'drift.detected', metadata: { bad: 1n as never } }),
    ).rejects.toThrow();
    expect(notify.events).toEqual(before);
    expect(await listed(notify)).toEqual([]);
  });
});

/** Stores approved agents and returns their node IDs. */
async function withMany(notify: NotifyBench, count: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, (_, index) => String(index).padStart(32, '0'));
  for (const id of ids) await insertAgent(notify.db, agentRow({ node_id: id, name: nameOf(id), status: 'approved' }));
  return ids;
}

const nameOf = (id: string): string => `web-${id.slice(-3)}`;
const wentOf = (id: string): Partial<DomainEvent> => ({ ...went, target: { ...WEB, id, name: nameOf(id) } });
const cameOf = (id: string): Partial<DomainEvent> => ({ ...came, target: { ...WEB, id, name: nameOf(id) } });

describe('an agent that has gone', () => {
  it('is reported after 60 seconds', async () => {
    const notify = await bench();
    await withWeb(notify);
    await notify.emit(came);
    await notify.emit(went);
    await notify.pass(60_000 - 1);
    expect(await listed(notify)).toEqual([]);
    await notify.pass(1);
    expect(await listed(notify)).toMatchObject([
      { event_type: 'agent.disconnected', summary: 'Agent web-01 has been gone for more than 60 seconds' },
    ]);
    await notify.pass(10 * MINUTE);
    expect(await listed(notify)).toHaveLength(1);
  });

  it('shares one notification with all that vanish within half a minute, and so does their return', async () => {
    const notify = await bench();
    const ids = await withMany(notify, 130);
    await notify.emit(...ids.slice(0, 100).map(wentOf));
    await notify.pass(29_000);
    await notify.emit(...ids.slice(100).map(wentOf));
    await notify.pass(31_000);
    expect(await listed(notify)).toEqual([]);
    await notify.pass(29_000);
    const [gone] = await listed(notify);
    expect(gone?.summary).toMatch(
      /^130 agents have been gone for more than 60 seconds: web-000, web-001, .*, web-03\d and \d+ more$/,
    );
    await notify.pass(MINUTE);
    await notify.emit(...ids.slice(0, 129).map(cameOf));
    await notify.pass(9_000);
    expect(await listed(notify)).toHaveLength(1);
    await notify.pass(1_000);
    expect((await listed(notify))[0]).toMatchObject({
      event_type: 'agent.returned',
      summary: expect.stringMatching(/^129 agents are back after 2 min: web-000, web-001, /),
    });
    await notify.emit(...ids.slice(129).map(cameOf));
    await notify.pass(0);
    expect((await listed(notify)).map(({ summary }) => summary)[0]).toBe('Agent web-129 is back after 2 min');
    await notify.pass(10 * MINUTE);
    expect(await listed(notify)).toHaveLength(3);
  });

  it('has a notification of its own when it vanishes later than others, and is reported in time', async () => {
    const notify = await bench();
    const [first = '', second = ''] = await withMany(notify, 2);
    await notify.emit(wentOf(first));
    await notify.pass(30_001);
    await notify.emit(wentOf(second));
    await notify.pass(29_999);
    expect((await listed(notify)).map(({ summary }) => summary)).toEqual([
      'Agent web-000 has been gone for more than 60 seconds',
    ]);
    await notify.pass(30_001);
    expect(await listed(notify)).toHaveLength(2);
  });

  it('is back only once it stays, after a restart too, and after the time since it vanished', async () => {
    const first = await openNotify();
    await withWeb(first);
    await first.emit(went);
    await first.pass(60_000);
    // It returns and is lost again while the orchestrator is stopped.
    await first.emit(came, went);
    await first.pass(0);
    await first.close();
    first.clock.advance(3 * 60 * MINUTE);
    const second = await bench({ directory: first.directory, clock: first.clock });
    await second.pass(10 * MINUTE);
    expect(await types(second)).toEqual(['agent.disconnected']);
    await second.emit(came);
    await second.pass(0);
    expect((await listed(second))[0]).toMatchObject({
      event_type: 'agent.returned',
      summary: 'Agent web-01 is back after 3 h',
    });
  });

  it('is not reported when it is back in time, rejected or removed', async () => {
    const notify = await bench();
    await withWeb(notify);
    for (const end of [came, { ...went, type: 'agent.rejected' }, { ...went, type: 'agent.removed' }] as const) {
      await notify.emit(went);
      await notify.pass(59_000);
      await notify.emit(end);
      await notify.pass(10 * MINUTE);
    }
    await notify.db.updateTable('agents').set({ status: 'rejected' }).execute();
    await notify.emit(went);
    await notify.pass(10 * MINUTE);
    expect(await listed(notify)).toEqual([]);
  });

  it('is reported by the orchestrator that was started meanwhile, once agents had time to come back', async () => {
    const first = await openNotify();
    await withWeb(first);
    await first.emit(went);
    await first.close();
    first.clock.advance(10 * MINUTE);
    const second = await bench({ directory: first.directory, clock: first.clock });
    await second.pass(74_000);
    expect(await listed(second)).toEqual([]);
    await second.pass(1_000);
    expect(await types(second)).toEqual(['agent.disconnected']);
  });

  it('is not reported when it comes back after the start', async () => {
    const first = await openNotify();
    await withWeb(first);
    await first.emit(went);
    await first.close();
    first.clock.advance(10 * MINUTE);
    const second = await bench({ directory: first.directory, clock: first.clock });
    await second.pass(50_000);
    await second.emit(came);
    await second.pass(10 * MINUTE);
    expect(await listed(second)).toEqual([]);
  });

  it('while the orchestrator was dead is noted in the log, and reported', async () => {
    const first = await openNotify();
    await withWeb(first);
    await first.emit(came);
    await first.close();
    first.clock.advance(10 * MINUTE);
    const second = await bench({ directory: first.directory, clock: first.clock });
    await second.pass(75_000);
    expect(second.events).toMatchObject([{ type: 'agent.disconnected', target: { name: 'web-01' } }]);
    await second.pass(60_000);
    expect(await types(second)).toEqual(['agent.disconnected']);
    await second.pass(10 * MINUTE);
    expect(second.events).toHaveLength(1);
  });
});

describe('a failed login', () => {
  it('is reported at the fifth in a row', async () => {
    const notify = await bench();
    for (let count = 0; count < 4; count += 1) await notify.emit(failure(1));
    expect(await listed(notify)).toEqual([]);
    await notify.emit(failure(1));
    expect(await listed(notify)).toMatchObject([
      {
        event_type: 'operator.login_failed',
        summary: 'grace failed to log in 5 times in a row, the last time from 192.0.2.9',
      },
    ]);
  });

  it('counts as many as its event stands for, over a restart, and each party alone', async () => {
    const first = await openNotify();
    await first.emit(failure(1));
    await first.emit(failure(4, operatorParty('heidi')));
    await first.close();
    const second = await bench({ directory: first.directory, clock: first.clock });
    expect(await listed(second)).toEqual([]);
    await second.emit(failure(6));
    expect(await listed(second)).toMatchObject([{ summary: expect.stringMatching(/^grace failed to log in 7 times/) }]);
  });

  it('is not in a row with those before a success', async () => {
    const notify = await bench();
    await notify.emit(failure(4), login('192.0.2.1'), failure(4));
    expect(await types(notify)).toEqual(['operator.login']);
  });

  it('that goes on is reported again after an hour at the earliest', async () => {
    const notify = await bench();
    await notify.emit(failure(5));
    await notify.pass(30 * MINUTE);
    await notify.emit(failure(50));
    expect(await listed(notify)).toHaveLength(1);
    await notify.pass(30 * MINUTE);
    await notify.emit(failure(1));
    expect(await listed(notify)).toHaveLength(2);
  });
});

describe('a login', () => {
  it('from a new IPv6 address of a known network is not reported', async () => {
    const notify = await bench();
    for (const address of ['2001:db8:0:1:a1f2:33ff:fe00:a', '2001:db8:0:1:b1f2:33ff:fe00:b', '2001:db8:0:2::1']) {
      await notify.emit(login(address));
    }
    await notify.emit(login('::ffff:192.0.2.1'), login('192.0.2.1'), login('192.0.2.2'));
    expect((await listed(notify)).map(({ summary }) => summary).reverse()).toEqual(
      ['2001:db8:0:1:a1f2:33ff:fe00:a', '2001:db8:0:2::1', '::ffff:192.0.2.1', '192.0.2.2'].map(
        (address) => `grace logged in from ${address}, an address that is new for them`,
      ),
    );
  });

  it('from an address that is new for the operator is reported once', async () => {
    const notify = await bench();
    await notify.emit(login('192.0.2.1'));
    await notify.emit(login('192.0.2.1'));
    expect(await listed(notify)).toMatchObject([
      { summary: 'grace logged in from 192.0.2.1, an address that is new for them', severity: 'info' },
    ]);
    await notify.emit(login('2001:db8::1'));
    await notify.emit(login('192.0.2.1', { actor: operatorParty('heidi'), target: operatorParty('heidi') }));
    expect(await listed(notify)).toHaveLength(3);
  });

  it('stays known for half a year', async () => {
    const notify = await bench();
    await notify.emit(login('192.0.2.1'));
    await notify.pass(179 * 24 * 60 * MINUTE);
    await notify.pruneAddresses();
    await notify.emit(login('192.0.2.1'));
    expect(await types(notify)).toEqual(['operator.login']);
  });

  it('is new again for an operator who was removed, and after half a year', async () => {
    const notify = await bench();
    await notify.emit(login('192.0.2.1'));
    await notify.pass(181 * 24 * 60 * MINUTE);
    await notify.pruneAddresses();
    await notify.emit(login('192.0.2.1'));
    await notify.emit({ type: 'operator.removed', target: GRACE });
    await notify.emit(login('192.0.2.1'));
    expect(await types(notify)).toEqual(['operator.login', 'operator.login', 'operator.removed', 'operator.login']);
  });
});

describe('notifications', () => {
  it('are read by each operator alone', async () => {
    const notify = await bench();
    const ids = async (operatorId: string, unreadOnly: boolean) => {
      const { notifications, unread_count } = await notify.inbox.list(operatorId, { unreadOnly, limit: 2 }, null);
      return {
        summaries: notifications.map(({ summary, read }) => `${summary}${read ? ' (read)' : ''}`),
        unread_count,
      };
    };
    for (const summary of ['one', 'two', 'three']) await notify.emit({ type: 'drift.detected', summary });
    const [three, , one] = await listed(notify);
    await notify.inbox.read('ada', three?.id ?? '', null);
    await notify.inbox.read('ada', three?.id ?? '', null);
    expect(await ids('ada', false)).toEqual({ summaries: ['three (read)', 'two'], unread_count: 2 });
    expect(await ids('ada', true)).toEqual({ summaries: ['two', 'one'], unread_count: 2 });
    expect(await ids('grace', true)).toEqual({ summaries: ['three', 'two'], unread_count: 3 });
    await notify.inbox.readAll('grace');
    expect(await ids('grace', true)).toEqual({ summaries: [], unread_count: 0 });
    expect(await ids('grace', false)).toEqual({ summaries: ['three (read)', 'two (read)'], unread_count: 0 });
    await notify.emit({ type: 'drift.detected', summary: 'four' });
    await notify.inbox.read('grace', one?.id ?? '', null);
    expect(await ids('grace', true)).toEqual({ summaries: ['four'], unread_count: 1 });
    expect(await ids('ada', true)).toEqual({ summaries: ['four', 'two'], unread_count: 3 });
  });

  it('that there are not cannot be read', async () => {
    const notify = await bench();
    await expect(notify.inbox.read('ada', 'x', null)).rejects.toMatchObject({ code: 'notification_not_found' });
    await notify.inbox.readAll('ada');
  });
});
