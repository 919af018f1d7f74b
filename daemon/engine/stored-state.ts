/** How the states of an apply stand in the store and in the API. */
import type { Operation } from '../../src/contract/operations.js';
import { assertNever } from '../../src/kernel/fault.js';
import { ACTIVE_STATES, type OperationError, type OperationState, type OperationStateName } from './operation-state.js';

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
export interface StoredState {
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
