/** States of an apply, and the one function that moves between them (`docs/protocols/apply.md`). */
import type { Operation } from '../../../src/contract/operations.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { assertNever, Fault } from '../../../src/kernel/fault.js';
import type { Summary } from '../../../src/resources/result.js';
import type { RunEnd } from '../../../src/wire/messages.js';
import type { OperationError } from './operation-error.js';
import type { OperationRow } from './operation-store.js';

export type OperationState =
  /** Stored, not sent. */
  | { readonly state: 'queued' }
  /** Sent, but not yet confirmed by the agent. */
  | { readonly state: 'dispatched' }
  /** In the agent's journal. */
  | { readonly state: 'running' }
  /** Dispatched (or, if `accepted`, running) when the orchestrator stopped; not yet reconciled with the agent. */
  | { readonly state: 'recovering'; readonly accepted: boolean }
  | { readonly state: 'succeeded' }
  | { readonly state: 'failed'; readonly error: OperationError | null }
  | { readonly state: 'cancelled' }
  /** Undone by the agent, because it did not succeed or was not confirmed in time. */
  | { readonly state: 'rolled_back'; readonly error: OperationError | null }
  /** Progress unknown, unless the agent's journal arrives later. */
  | { readonly state: 'interrupted'; readonly error: OperationError | null };

type OperationStateName = OperationState['state'];

export type OperationEvent =
  /** The run was sent to the agent. */
  | { readonly type: 'sent' }
  /** The agent has the run in its journal. */
  | { readonly type: 'accepted' }
  /** The agent has reconnected without the run. `overdue` is true when the time for delivery is over. */
  | { readonly type: 'absent'; readonly overdue: boolean }
  /** The agent reported the end, and every result is stored. */
  | { readonly type: 'finished'; readonly end: RunEnd; readonly error: OperationError | null }
  /** The operation was cancelled before it was sent. */
  | { readonly type: 'withdrawn' }
  /** The operation can no longer be sent. */
  | { readonly type: 'undeliverable'; readonly reason: string }
  /** The timeout of the current state has passed without a report. */
  | { readonly type: 'expired' }
  /** The agent was rejected or removed. */
  | { readonly type: 'revoked' }
  /** The starting orchestrator found the operation in the store. */
  | { readonly type: 'restarted' }
  /** Same as `restarted`, in a store restored to an earlier state: the run may have been sent or ended since. */
  | { readonly type: 'put_back' };

/** States in which an apply occupies its agent. */
export const ACTIVE_STATES = ['queued', 'dispatched', 'running', 'recovering'] as const satisfies OperationStateName[];

export const isActive = ({ state }: OperationState): boolean => ACTIVE_STATES.some((active) => active === state);

/**
 * Returns the state after an event; the same object when the event changes nothing. Throws `protocol_violation` when an agent
 * reports about a run that it was never sent.
 */
export function transition(from: OperationState, event: OperationEvent): OperationState {
  switch (event.type) {
    case 'sent':
      return from.state === 'queued' ? { state: 'dispatched' } : from;
    case 'accepted':
      return accepted(from);
    case 'absent':
      return absent(from, event.overdue);
    case 'finished':
      return finished(from, event.end, event.error);
    case 'withdrawn':
      return from.state === 'queued' ? { state: 'cancelled' } : from;
    case 'undeliverable':
      return from.state === 'queued' ? notDelivered(event.reason) : from;
    case 'expired':
      return expired(from);
    case 'revoked':
      return revoked(from);
    case 'restarted':
      return restarted(from);
    case 'put_back':
      return isActive(from) ? { state: 'recovering', accepted: true } : from;
    default:
      return assertNever(event);
  }
}

function accepted(from: OperationState): OperationState {
  switch (from.state) {
    case 'queued':
      throw neverSent();
    case 'dispatched':
    case 'recovering':
      return { state: 'running' };
    case 'running':
    case 'succeeded':
    case 'failed':
    case 'cancelled':
    case 'rolled_back':
    case 'interrupted':
      return from;
    default:
      return assertNever(from);
  }
}

function absent(from: OperationState, overdue: boolean): OperationState {
  switch (from.state) {
    case 'dispatched':
      return overdue ? notDelivered('the agent never received it in time') : { state: 'queued' };
    case 'recovering':
      if (from.accepted) return lostByAgent();
      return overdue ? notDelivered('the agent never received it in time') : { state: 'queued' };
    case 'running':
      return lostByAgent();
    case 'queued':
    case 'succeeded':
    case 'failed':
    case 'cancelled':
    case 'rolled_back':
    case 'interrupted':
      return from;
    default:
      return assertNever(from);
  }
}

function finished(from: OperationState, end: RunEnd, error: OperationError | null): OperationState {
  switch (from.state) {
    case 'queued':
      throw neverSent();
    case 'dispatched':
    case 'running':
    case 'recovering':
    case 'interrupted':
      return ended(end, error);
    case 'succeeded':
    case 'failed':
    case 'cancelled':
    case 'rolled_back':
      return from;
    default:
      return assertNever(from);
  }
}

function ended(end: RunEnd, error: OperationError | null): OperationState {
  switch (end) {
    case 'succeeded':
    case 'cancelled':
      return { state: end };
    case 'failed':
    case 'refused':
      return { state: 'failed', error };
    case 'rolled_back':
      return { state: end, error };
    case 'interrupted':
      return { state: 'interrupted', error: error ?? interruption('the agent stopped in the middle of it') };
    default:
      return assertNever(end);
  }
}

function expired(from: OperationState): OperationState {
  switch (from.state) {
    case 'queued':
      return notDelivered('the agent did not come back in time');
    case 'dispatched':
      return unknown('it was sent, and the agent has not said that it received it');
    case 'recovering':
      return unknown('the agent has not come back since the orchestrator restarted');
    case 'running':
    case 'succeeded':
    case 'failed':
    case 'cancelled':
    case 'rolled_back':
    case 'interrupted':
      return from;
    default:
      return assertNever(from);
  }
}

function revoked(from: OperationState): OperationState {
  switch (from.state) {
    case 'queued':
      return notDelivered('the agent was rejected or removed');
    case 'dispatched':
    case 'running':
    case 'recovering':
      return unknown('the agent was rejected or removed');
    case 'succeeded':
    case 'failed':
    case 'cancelled':
    case 'rolled_back':
    case 'interrupted':
      return from;
    default:
      return assertNever(from);
  }
}

function restarted(from: OperationState): OperationState {
  if (from.state === 'dispatched') return { state: 'recovering', accepted: false };
  return from.state === 'running' ? { state: 'recovering', accepted: true } : from;
}

const interruption = (reason: string): OperationError => ({ code: 'interrupted', message: reason });

const unknown = (reason: string): OperationState => ({ state: 'interrupted', error: interruption(reason) });

const lostByAgent = (): OperationState => unknown('the agent has lost its journal of it');

const notDelivered = (reason: string): OperationState => ({
  state: 'failed',
  error: { code: 'not_delivered', message: reason },
});

const neverSent = (): Fault => new Fault('protocol_violation', 'the agent speaks of a run that it was never sent');

/** Returns the name of a state in the API. */
export function statusOf(state: OperationStateName): Operation['status'] {
  switch (state) {
    case 'queued':
    case 'dispatched':
      return 'queued';
    case 'running':
    case 'recovering':
      return 'running';
    case 'succeeded':
    case 'failed':
    case 'cancelled':
    case 'rolled_back':
    case 'interrupted':
      return state;
    default:
      return assertNever(state);
  }
}

const NAMES = [
  ...ACTIVE_STATES,
  'succeeded',
  'failed',
  'cancelled',
  'rolled_back',
  'interrupted',
] as const satisfies readonly OperationStateName[];

/** Returns the states with a given name in the API. */
export const statesOf = (status: Operation['status']): readonly OperationStateName[] =>
  NAMES.filter((name) => statusOf(name) === status);

/** Columns of a stored state. */
interface StoredState {
  readonly state: string;
  /** 0 or 1. */
  readonly accepted: number;
  readonly error: OperationError | null;
}

/** Parses a stored state. Throws an Error for an unknown name. */
export function parseState({ state, accepted, error }: StoredState): OperationState {
  const name = NAMES.find((known) => known === state);
  switch (name) {
    case 'recovering':
      return { state: name, accepted: accepted === 1 };
    case 'failed':
    case 'rolled_back':
    case 'interrupted':
      return { state: name, error };
    case 'queued':
    case 'dispatched':
    case 'running':
    case 'succeeded':
    case 'cancelled':
      return { state: name };
    case undefined:
      throw new Error(`the store holds an operation in the unknown state "${state}"`);
    default:
      return assertNever(name);
  }
}

/** The columns of an operation that the API shows. */
type ShownOperation = StoredState &
  Pick<
    OperationRow,
    | 'operation_id'
    | 'node_id'
    | 'node_name'
    | 'modules'
    | 'assignments'
    | 'rollout_id'
    | 'requested_by'
    | 'started_at'
    | 'finished_at'
    | 'summary'
    | 'restores'
    | 'confirm_secs'
    | 'restored'
    | 'value_inputs'
  >;

/** Returns an operation for the API. `summary` is the live one, if there is one; by default the stored one is used. */
export function operationView(row: ShownOperation, summary?: Summary): Operation {
  return {
    operation_id: row.operation_id,
    node_id: row.node_id,
    node_name: row.node_name,
    kind: 'apply',
    status: statusOf(parseState(row).state),
    modules: [...row.modules],
    assignments: [...row.assignments],
    rollout_id: row.rollout_id,
    requested_by: row.requested_by,
    started_at: toSeconds(row.started_at),
    finished_at: row.finished_at === null ? null : toSeconds(row.finished_at),
    summary: summary ?? row.summary,
    error: row.error,
    ...(row.restores === null ? {} : { restores: row.restores }),
    ...(row.value_inputs === null ? {} : { value_inputs: [...row.value_inputs] }),
    ...(row.confirm_secs === null ? {} : { confirm_secs: row.confirm_secs }),
    ...(row.restored === null ? {} : { restored: row.restored }),
  };
}
