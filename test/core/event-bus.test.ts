import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { RecordedEvent } from '../../daemon/core/audit-log.js';
import { eventOfRequest } from '../../daemon/core/domain-event.js';
import { EventBus } from '../../daemon/core/event-bus.js';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import { event, operatorParty } from '../support/audit.js';
import { ManualClock, newIds, openStore, recordingLogger } from '../support/database.js';

const recorded = (change: Partial<RecordedEvent> = {}): RecordedEvent => ({
  ...event(),
  id: '01J00000000000000000000000',
  seq: 1,
  timestamp: 0,
  ...change,
});

describe('the event bus', () => {
  it('tells subscribers of the types they asked for, until they have heard enough', () => {
    const bus = new EventBus(recordingLogger());
    const heard: string[] = [];
    const end = bus.subscribe(['agent.pending', 'agent.removed'], ({ type }) => void heard.push(`some ${type}`));
    bus.subscribe('all', ({ type }) => void heard.push(`all ${type}`));
    bus.publish(recorded({ type: 'agent.pending' }));
    bus.publish(recorded({ type: 'agent.connected' }));
    end();
    end();
    bus.publish(recorded({ type: 'agent.removed' }));
    expect(heard).toEqual(['some agent.pending', 'all agent.pending', 'all agent.connected', 'all agent.removed']);
  });

  it('goes on when a subscriber throws or rejects, and logs it', async () => {
    const logger = recordingLogger();
    const bus = new EventBus(logger);
    const { db } = await openStore();
    const publish = (one: RecordedEvent) => bus.publish(one);
    const writer = new TransactionalWriter({ db, clock: new ManualClock(), newId: newIds(), publish });
    const heard: number[] = [];
    bus.subscribe('all', () => {
      throw new Error('I am broken');
    });
    bus.subscribe('all', async () => {
      throw new Error('so am I');
    });
    bus.subscribe('all', ({ seq }) => void heard.push(seq));
    await writer.write(async (_tx, emit) => emit(event()));
    await writer.write(async (_tx, emit) => emit(event()));
    await setImmediate();
    expect(heard).toEqual([1, 2]);
    expect(
      logger.lines.map(({ level, message, fields }) => `${level} ${message}: ${fields.reason}`).toSorted(),
    ).toEqual([
      'error a subscriber failed: I am broken',
      'error a subscriber failed: I am broken',
      'error a subscriber failed: so am I',
      'error a subscriber failed: so am I',
    ]);
  });

  it('lets subscribers come and go while it tells', () => {
    const bus = new EventBus(recordingLogger());
    const heard: string[] = [];
    const end = bus.subscribe('all', () => {
      heard.push('first');
      end();
      bus.subscribe('all', () => void heard.push('late'));
    });
    bus.publish(recorded());
    expect(heard).toEqual(['first']);
    bus.publish(recorded());
    expect(heard).toEqual(['first', 'late']);
  });
});

describe('the event of a request', () => {
  it('has who asked as its actor, and the id of the request', () => {
    const context = { actor: operatorParty('alice'), rights: ALL_RIGHTS, requestId: 'r-1', address: '192.0.2.1' };
    const target = operatorParty('bob');
    expect(
      eventOfRequest(context, { type: 'operator.removed', target, summary: 's', metadata: { sessions: 2 } }),
    ).toEqual({
      type: 'operator.removed',
      actor: context.actor,
      target,
      summary: 's',
      metadata: { sessions: 2, request_id: 'r-1' },
    });
    expect(eventOfRequest(context, { type: 'operator.logout', target, summary: 's' }).metadata).toEqual({
      request_id: 'r-1',
    });
  });
});
