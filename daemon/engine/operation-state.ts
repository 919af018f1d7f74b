/** The states of an apply and the one function that moves between them (`docs/protocols/apply.md`). */
import { assertNever, Fault } from '../../src/kernel/fault.js';
import type { RunEnd } from '../../src/wire/messages.js';

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

export type OperationStateName = OperationState['state'];

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
