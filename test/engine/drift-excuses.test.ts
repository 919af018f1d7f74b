/** Drift that does not count, and what is likely to have caused drift. */

import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { standingDrift } from '../../daemon/engine/drift/drift-excuses.js';
import { insertTerminal } from '../../daemon/terminal/session-store.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, openBench, type ScriptedAgent } from '../support/engine.js';

const HOUR = 3_600_000;
const A = { module: 'site', kind: 'file-unix', identity: '/a' };
const B = { module: 'site', kind: 'file-unix', identity: '/b' };

/** An agent with two files, of which `/a` was changed by hand. */
async function drifted(): Promise<{ bench: Bench; agent: ScriptedAgent }> {
  const bench = await openBench();
  const agent = await bench.agent('1');
  await bench.upload('site', { '/a': 'x', '/b': 'x' });
  await bench.apply(agent, ['site']);
  bench.clock.advance(60_000);
  agent.machine.set('/a', 'by hand');
  return { bench, agent };
}

const inSeconds = (milliseconds: number) => Math.floor(milliseconds / 1000);

const snooze = (bench: Bench, agent: ScriptedAgent, resources: readonly (typeof A)[] | null, forMs = HOUR) =>
  bench.engine.driftExcuses.snooze(
    agent.nodeId,
    { resources, endsAt: inSeconds(bench.clock.now() + forMs), reason: 'until the move' },
    ALICE,
  );

const accept = (bench: Bench, agent: ScriptedAgent, driftId: string, resources = [A]) =>
  bench.engine.driftExcuses.accept(agent.nodeId, { driftId, resources, reason: 'it is right so' }, ALICE);

const standing = async (bench: Bench, { nodeId }: ScriptedAgent) =>
  (await standingDrift(bench.db, { nodeId, since: '', now: bench.clock.now() })).map(({ identity }) => identity);

describe('snoozed drift', () => {
  it('does not count until its time, and then counts and is reported by itself', async () => {
    const { bench, agent } = await drifted();
    expect(await bench.drift(agent)).toMatchObject({ status: 'drifted', snoozed: 0 });
    expect(await standing(bench, agent)).toEqual(['/a']);
    const made = await snooze(bench, agent, [A]);
    expect(bench.events.at(-1)).toMatchObject({
      type: 'drift.snoozed',
      target: { id: agent.nodeId },
      summary: 'alice snoozed drift of file-unix /a on web-1 until 2026-03-01T13:01:00.000Z: until the move',
      metadata: { snooze_id: made.snooze_id, resources: [A] },
    });
    // It holds from now on, also for what was found before.
    expect(await standing(bench, agent)).toEqual([]);

    const events = bench.events.length;
    const record = await bench.drift(agent);
    expect(record).toMatchObject({
      status: 'in_sync',
      has_changes: false,
      snoozed: 1,
      resources: [
        {
          status: 'pending',
          excuse: { kind: 'snoozed', by: ALICE.actor.id, reason: 'until the move', until: made.ends_at },
        },
        { status: 'unchanged' },
      ],
    });
    expect(bench.events.slice(events).map(({ type, summary }) => [type, summary])).toEqual([
      ['drift.checked', 'web-1 was checked for drift (1 snoozed)'],
      ['drift.resolved', 'web-1 no longer has drift that counts (1 snoozed)'],
    ]);
    expect(await bench.engine.drift.get(record.drift_id, ALL_RIGHTS)).toEqual(record);

    bench.clock.advance(HOUR - 1);
    expect(await bench.drift(agent)).toMatchObject({ status: 'in_sync' });
    bench.clock.advance(1);
    expect(await standing(bench, agent)).toEqual(['/a']);
    expect(await bench.engine.driftExcuses.list(null, ALL_RIGHTS)).toEqual({ snoozes: [], accepts: [] });
    expect(await bench.drift(agent)).toMatchObject({ status: 'drifted', snoozed: 0 });
    expect(bench.eventTypes('drift.').slice(-2)).toEqual(['drift.checked', 'drift.detected']);
  });

  it('leaves drift of other resources as it is, and ends by hand', async () => {
    const { bench, agent } = await drifted();
    const { snooze_id } = await snooze(bench, agent, [A]);
    agent.machine.set('/b', 'by hand, too');
    expect(await bench.drift(agent)).toMatchObject({ status: 'drifted', snoozed: 1, summary: { pending: 2 } });
    expect(bench.events.at(-1)?.summary).toBe(
      'web-1 has drifted from what was applied: 1 of 2 resources differ (1 snoozed)',
    );
    await bench.engine.driftExcuses.endSnooze(snooze_id, ALICE, ALL_RIGHTS);
    expect(bench.events.at(-1)).toMatchObject({ type: 'drift.snooze_ended' });
    expect(await bench.drift(agent)).toMatchObject({ status: 'drifted', snoozed: 0 });
    expect(await rejection(bench.engine.driftExcuses.endSnooze(snooze_id, ALICE, ALL_RIGHTS))).toMatchObject({
      code: 'snooze_not_found',
      message: `there is no snooze "${snooze_id}" that has not ended`,
    });
  });

  it('of a whole agent covers what is managed later, also after a restart', async () => {
    const { bench, agent } = await drifted();
    await snooze(bench, agent, null);
    await bench.upload('site', { '/a': 'x', '/c': 'x' });
    await bench.apply(agent, ['site']);
    await bench.restart();
    agent.connect();
    await bench.settle();
    agent.machine.set('/c', 'by hand');
    expect(await bench.drift(agent)).toMatchObject({ status: 'in_sync', snoozed: 1 });
  });

  it('is refused for what is not managed, for unknown agents, and for a time that has passed', async () => {
    const { bench, agent } = await drifted();
    expect(await rejection(snooze(bench, agent, [{ ...A, identity: '/none' }]))).toMatchObject({
      code: 'resource_not_found',
      message: 'file-unix /none of module site is not managed on web-1',
      hint: 'see what is: orch state web-1',
    });
    expect(await rejection(snooze(bench, agent, [A], -1000))).toMatchObject({
      code: 'invalid_body',
      message: 'the body is not valid: /ends_at must be in the future',
    });
    const request = { resources: null, endsAt: inSeconds(bench.clock.now() + HOUR), reason: 'x' };
    const unknown = bench.engine.driftExcuses.snooze('f'.repeat(32), request, ALICE);
    expect((await rejection(unknown)).code).toBe('agent_not_found');
  });
});

describe('accepted drift', () => {
  it('does not count while the machine stays exactly so, and any further change is drift', async () => {
    const { bench, agent } = await drifted();
    const { drift_id } = await bench.drift(agent);
    await accept(bench, agent, drift_id);
    expect(bench.events.at(-1)).toMatchObject({
      type: 'drift.accepted',
      summary: 'alice accepted the drift of file-unix /a on web-1: it is right so',
      metadata: { drift_id, resources: [A] },
    });
    expect(await bench.drift(agent)).toMatchObject({
      status: 'in_sync',
      accepted: 1,
      resources: [{ excuse: { kind: 'accepted', reason: 'it is right so', until: null } }, {}],
    });
    expect(await standing(bench, agent)).toEqual([]);
    bench.clock.advance(100 * HOUR);
    expect(await bench.drift(agent)).toMatchObject({ status: 'in_sync' });

    agent.machine.set('/a', 'by hand again');
    expect(await bench.drift(agent)).toMatchObject({ status: 'drifted', accepted: 0 });
    // Back to what was accepted, it is accepted again.
    agent.machine.set('/a', 'by hand');
    expect(await bench.drift(agent)).toMatchObject({ status: 'in_sync', accepted: 1 });
  });

  it('ends with the next apply, which repairs it', async () => {
    const { bench, agent } = await drifted();
    const { drift_id } = await bench.drift(agent);
    await accept(bench, agent, drift_id);
    await bench.apply(agent, ['site']);
    expect((await bench.engine.driftExcuses.list(agent.nodeId, ALL_RIGHTS)).accepts).toEqual([]);
    agent.machine.set('/a', 'by hand');
    expect(await bench.drift(agent)).toMatchObject({ status: 'drifted' });
  });

  it('is refused for what has not drifted, for old records and for agents that tell too little', async () => {
    const { bench, agent } = await drifted();
    const first = await bench.drift(agent);
    expect(await rejection(accept(bench, agent, first.drift_id, [B]))).toMatchObject({
      code: 'drift_unacceptable',
      message: 'file-unix /b on web-1 has not drifted',
    });
    const second = await bench.drift(agent);
    expect(await rejection(accept(bench, agent, first.drift_id))).toMatchObject({
      code: 'drift_unacceptable',
      message: `the drift record ${first.drift_id} is out of date: there is a newer check`,
      hint: 'check again, and accept that: orch drift web-1',
    });
    await bench.apply(agent, ['site']);
    expect(await rejection(accept(bench, agent, second.drift_id))).toMatchObject({
      message: `the drift record ${second.drift_id} is out of date: an apply has changed the agent since`,
    });
    agent.isTracing = false;
    agent.machine.set('/a', 'by hand');
    const older = await bench.drift(agent);
    expect(await rejection(accept(bench, agent, older.drift_id))).toMatchObject({
      message:
        'the drift of file-unix /a on web-1 cannot be accepted: its agent does not report what would tell a further change',
      hint: 'upgrade the agent (orch agents upgrade web-1), or snooze it for a time: orch drift snooze',
    });
    const other = await bench.agent('2');
    expect((await rejection(accept(bench, other, older.drift_id))).code).toBe('drift_not_found');
  });
});

describe('the likely cause of drift', () => {
  const sessionOf = async (bench: Bench, agent: ScriptedAgent, from: number, to: number | null) => {
    const session_id = bench.newId();
    await insertTerminal(bench.db, {
      session_id,
      node_id: agent.nodeId,
      node_name: 'web-1',
      operator_id: ALICE.actor.id,
      operator: 'alice',
      kind: 'shell',
      user: 'root',
      shell: '/bin/sh',
      command: null,
      cols: 80,
      rows: 24,
      term: 'xterm',
      status: to === null ? 'active' : 'closed',
      reason: null,
      exit_code: null,
      exit_signal: null,
      opened_at: from,
      closed_at: to,
      recording: 'complete',
      transcript: null,
      transcript_sha256: null,
      output_bytes: 0,
      resume_hash: null,
      resume_operator_id: null,
    });
    return session_id;
  };

  it('is the terminal session in which the file was changed, with the place in its recording', async () => {
    const { bench, agent } = await drifted();
    const at = bench.clock.now();
    agent.changes.set('/a', at);
    const id = await sessionOf(bench, agent, at - 30_000, at + 10_000);
    await sessionOf(bench, agent, at - 40_000, at - 20_000);
    bench.clock.advance(60_000);
    const record = await bench.drift(agent);
    expect(record.resources[0]).toMatchObject({
      changed_at: inSeconds(at),
      likely_causes: [
        {
          kind: 'terminal',
          id,
          by: 'alice',
          started_at: inSeconds(at - 30_000),
          ended_at: inSeconds(at + 10_000),
          offset_secs: 25,
        },
      ],
    });
    expect(await bench.engine.drift.latest(agent.nodeId, ALL_RIGHTS)).toEqual(record);
  });

  it('is found also where the clock of the machine is a day off', async () => {
    const { bench, agent } = await drifted();
    const at = bench.clock.now();
    const id = await sessionOf(bench, agent, at - 1000, null);
    agent.now = () => bench.clock.now() - 24 * HOUR;
    agent.changes.set('/a', at - 24 * HOUR);
    expect((await bench.drift(agent)).resources[0]).toMatchObject({
      changed_at: inSeconds(at),
      likely_causes: [{ id, ended_at: null }],
    });
  });

  it.each([
    ['1970', 0],
    ['the future', Date.UTC(2040, 0, 1)],
    ['a time before the apply', Date.UTC(2026, 2, 1, 11)],
    ['no time of this world', 1e300],
  ])('is not claimed for a file of %s', async (_, time) => {
    const { bench, agent } = await drifted();
    await sessionOf(bench, agent, Date.UTC(1969, 0, 1), null);
    agent.changes.set('/a', time);
    const [found] = (await bench.drift(agent)).resources;
    expect(found).toMatchObject({ status: 'pending' });
    expect(found).not.toHaveProperty('changed_at');
    expect(found).not.toHaveProperty('likely_causes');
  });

  it('is not claimed where nothing ran, or the agent tells no time', async () => {
    const { bench, agent } = await drifted();
    agent.changes.set('/a', bench.clock.now());
    const [alone] = (await bench.drift(agent)).resources;
    expect(alone).toHaveProperty('changed_at');
    expect(alone).not.toHaveProperty('likely_causes');
    agent.isTracing = false;
    await sessionOf(bench, agent, bench.clock.now() - 1000, null);
    expect((await bench.drift(agent)).resources[0]).not.toHaveProperty('likely_causes');
  });

  it('may be a later apply that failed', async () => {
    const { bench, agent } = await drifted();
    agent.mishaps.set('/a', 'fail');
    agent.mishaps.set('/b', 'fail');
    const failed = await bench.apply(agent, ['site']);
    agent.mishaps.clear();
    agent.changes.set('/a', bench.clock.now());
    expect((await bench.drift(agent)).resources[0]).toMatchObject({
      likely_causes: [{ kind: 'apply', id: failed.operation_id, by: ALICE.actor.id, offset_secs: null }],
    });
  });

  it('is no apply that began after the check, such as the one that repairs what it found', async () => {
    const { bench, agent } = await drifted();
    agent.changes.set('/a', bench.clock.now());
    const { drift_id: driftId } = await bench.drift(agent);
    await bench.apply(agent, ['site']);
    const [resource] = (await bench.engine.drift.get(driftId, ALL_RIGHTS)).resources;
    expect(resource).toMatchObject({ status: 'pending', changed_at: expect.any(Number) });
    expect(resource?.likely_causes).toBe(undefined);
  });
});
