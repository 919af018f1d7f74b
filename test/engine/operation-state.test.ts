import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isActive,
  type OperationEvent,
  type OperationState,
  parseState,
  statesOf,
  statusOf,
  transition,
} from '../../daemon/engine/operations/operation-state.js';
import { RUN_ENDS } from '../../src/wire/messages.js';

const states: fc.Arbitrary<OperationState> = fc.oneof(
  fc.constantFrom(
    ...(['queued', 'dispatched', 'running', 'succeeded', 'cancelled'] as const).map((state) => ({ state })),
    ...[true, false].map((accepted) => ({ state: 'recovering', accepted }) as const),
    ...(['failed', 'interrupted'] as const).map((state) => ({ state, error: null })),
  ),
);
const events: fc.Arbitrary<OperationEvent> = fc.oneof(
  fc.constantFrom<OperationEvent>(
    { type: 'sent' },
    { type: 'accepted' },
    { type: 'withdrawn' },
    { type: 'expired' },
    { type: 'revoked' },
    { type: 'restarted' },
    { type: 'put_back' },
    { type: 'undeliverable', reason: 'secrets' },
    { type: 'absent', overdue: true },
    { type: 'absent', overdue: false },
  ),
  fc.constantFrom(...RUN_ENDS).map((end): OperationEvent => ({ type: 'finished', end, error: null })),
);

/** A message about a run that was never sent changes nothing: the connection is closed. */
function move(state: OperationState, event: OperationEvent): OperationState {
  try {
    return transition(state, event);
  } catch {
    expect(state.state).toBe('queued');
    expect(['accepted', 'finished']).toContain(event.type);
    return state;
  }
}

const walk = (steps: readonly OperationEvent[]): readonly OperationState[] => {
  const seen: OperationState[] = [{ state: 'queued' }];
  for (const event of steps) seen.push(move(seen.at(-1) ?? { state: 'queued' }, event));
  return seen;
};

const endedBy = (event: OperationEvent | undefined) => event?.type === 'finished';

describe('the states of an operation', () => {
  it('never leave succeeded, failed and cancelled', () => {
    fc.assert(
      fc.property(fc.constantFrom('succeeded', 'failed', 'cancelled'), events, (state, event) => {
        const from: OperationState = state === 'failed' ? { state, error: null } : { state };
        expect(move(from, event)).toBe(from);
      }),
    );
  });

  it('leave interrupted only when the agent tells the end', () => {
    fc.assert(
      fc.property(events, (event) => {
        const from: OperationState = { state: 'interrupted', error: null };
        const to = move(from, event);
        expect(to === from || endedBy(event)).toBe(true);
        expect(isActive(to)).toBe(false);
      }),
    );
  });

  it('turn what was sent into failed only at the word of the agent', () => {
    fc.assert(
      fc.property(fc.array(events, { maxLength: 12 }), (steps) => {
        const seen = walk(steps);
        steps.forEach((event, index) => {
          const [from, to] = [seen[index], seen[index + 1]];
          if (from?.state === 'queued' || to?.state !== 'failed' || from?.state === 'failed') return;
          expect(endedBy(event) || event.type === 'absent').toBe(true);
        });
      }),
    );
  });

  it('send again only what the agent has never had', () => {
    fc.assert(
      fc.property(fc.array(events, { maxLength: 12 }), (steps) => {
        const seen = walk(steps).map((state) => state.state);
        expect(seen.slice(seen.indexOf('running') + 1).includes('dispatched') && seen.includes('running')).toBe(false);
      }),
    );
  });

  it('succeed only when the agent says so', () => {
    fc.assert(
      fc.property(states, events, (from, event) => {
        const to = move(from, event);
        if (to.state !== 'succeeded' || from.state === 'succeeded') return;
        expect(event).toMatchObject({ type: 'finished', end: 'succeeded' });
      }),
    );
  });

  it('come to an end after a deadline or a revocation, except while the agent works', () => {
    fc.assert(
      fc.property(states, (from) => {
        expect(isActive(move(from, { type: 'revoked' }))).toBe(false);
        expect(isActive(move(from, { type: 'expired' }))).toBe(from.state === 'running');
      }),
    );
  });

  it('survive the store, and have one name in the API each', () => {
    fc.assert(
      fc.property(states, (state) => {
        const accepted = state.state === 'recovering' && state.accepted ? 1 : 0;
        expect(parseState({ state: state.state, accepted, error: null })).toEqual(state);
        expect(statesOf(statusOf(state.state))).toContain(state.state);
      }),
    );
    expect(() => parseState({ state: 'lost', accepted: 0, error: null })).toThrow('unknown state "lost"');
    expect(statesOf('queued')).toEqual(['queued', 'dispatched']);
    expect(statesOf('running')).toEqual(['running', 'recovering']);
  });
});
