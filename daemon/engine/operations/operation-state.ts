/** The states of an apply and the one function that moves between them (`docs/protocols/apply.md`). */

import type { Operation } from '../../../src/contract/operations.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { assertNever, Fault } from '../../../src/kernel/fault.js';
import { mapped, type Steps } from '../../../src/kernel/steps.js';
import type { ResourceResult, Summary } from '../../../src/resources/result.js';
import type { RunEnd } from '../../../src/wire/messages.js';
import type { OperationHead, OperationResultRow } from './operation-store.js';

export interface OperationError {
  readonly code: string;
  readonly message: string;
}

export type OperationState =
  /** Stored, not sent. */
  | { readonly state: 'queued' }
  /** Sent; the agent has not said that it has it. */
  | { readonly state: 'dispatched' }
  /** In the agent's journal. */
  | { readonly state: 'running' }
  /** Dispatched (or, if `accepted`, running) when the orchestrator stopped; the agent has not been asked yet. */
  | { readonly state: 'recovering'; readonly accepted: boolean }
  | { readonly state: 'succeeded' }
  | { readonly state: 'failed'; readonly error: OperationError | null }
  | { readonly state: 'cancelled' }
  /** How far it came is not known, unless the agent's journal arrives later. */
  | { readonly state: 'interrupted'; readonly error: OperationError | null };

type OperationStateName = OperationState['state'];

export type OperationEvent =
  /** The run goes to the agent. */
  | { readonly type: 'sent' }
  /** The agent has it in its journal. */
  | { readonly type: 'accepted' }
  /** The agent is back and does not have it. `overdue`: the time for delivery is over. */
  | { readonly type: 'absent'; readonly overdue: boolean }
  /** The agent said how it ended, and every result is stored. */
  | { readonly type: 'finished'; readonly end: RunEnd; readonly error: OperationError | null }
  /** It was cancelled before it was sent. */
  | { readonly type: 'withdrawn' }
  /** It cannot be sent any more. */
  | { readonly type: 'undeliverable'; readonly reason: string }
  /** Nothing was heard of it in the time that its state allows. */
  | { readonly type: 'expired' }
  /** The agent was rejected or removed. */
  | { readonly type: 'revoked' }
  /** The orchestrator starts and finds it in the store. */
  | { readonly type: 'restarted' }
  /** The same, in a store that was put back to an earlier state: it may have been sent since, and may have ended. */
  | { readonly type: 'put_back' };

/** States in which an apply occupies its agent. */
export const ACTIVE_STATES = ['queued', 'dispatched', 'running', 'recovering'] as const satisfies OperationStateName[];

export const isActive = ({ state }: OperationState): boolean => ACTIVE_STATES.some((active) => active === state);

/**
 * The state after an event; the same object when the event changes nothing.
 * Throws `protocol_violation` for what an agent cannot say about a run that it was never sent.
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

/** The API's names. */
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
  'interrupted',
] as const satisfies readonly OperationStateName[];

/** The states that the API shows under a name. */
export const statesOf = (status: Operation['status']): readonly OperationStateName[] =>
  NAMES.filter((name) => statusOf(name) === status);

/** What the store keeps of a state. */
interface StoredState {
  readonly state: string;
  /** 0 or 1. */
  readonly accepted: number;
  readonly error: OperationError | null;
}

/** A state as it is stored; throws for a name that this program does not know. */
export function parseState({ state, accepted, error }: StoredState): OperationState {
  const name = NAMES.find((known) => known === state);
  switch (name) {
    case 'recovering':
      return { state: name, accepted: accepted === 1 };
    case 'failed':
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

/** Operations as the API shows them. */
export const errorOf = ({ error_json }: { readonly error_json: string | null }): OperationError | null =>
  error_json === null ? null : JSON.parse(error_json);

export const stateOf = (row: OperationHead) => parseState({ ...row, error: errorOf(row) });

/** `summary` is the one of the moment when it is known, else the stored one. */
export function operationView(row: OperationHead, summary?: Summary): Operation {
  return {
    operation_id: row.operation_id,
    node_id: row.node_id,
    node_name: row.node_name,
    kind: 'apply',
    status: statusOf(stateOf(row).state),
    modules: JSON.parse(row.modules_json),
    assignments: JSON.parse(row.assignments_json),
    rollout_id: row.rollout_id,
    requested_by: row.requested_by,
    started_at: toSeconds(row.started_at),
    finished_at: row.finished_at === null ? null : toSeconds(row.finished_at),
    summary: summary ?? JSON.parse(row.summary_json),
    error: errorOf(row),
  };
}

export const resultOf = (row: OperationResultRow): ResourceResult => JSON.parse(row.result_json);

/** In the order of the run, which is not that in which they came. */
export const inRunOrder = (rows: readonly OperationResultRow[]): Steps<ResourceResult[]> =>
  mapped(
    [...rows].sort((a, b) => a.item_index - b.item_index),
    resultOf,
  );

export const operationNotFound = (operationId: string): Fault =>
  new Fault('operation_not_found', `there is no operation "${operationId}"`, {
    hint: 'see what there is: orch ops list',
  });
