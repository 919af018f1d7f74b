/** Where a session stands, and the only way from one place to the next. */
import { type Exit, endedStatus } from '../../../src/terminal/exit.js';

export type SessionState =
  /** The agent was asked to start the program. */
  | { readonly phase: 'opening' }
  /** `attached`: somebody writes or watches. `agent`: its socket for this session is open. */
  | { readonly phase: 'active'; readonly attached: boolean; readonly agent: boolean }
  /** It is over; the end is not stored yet. */
  | { readonly phase: 'ending'; readonly exit: Exit }
  | { readonly phase: 'closed' | 'interrupted'; readonly exit: Exit };

export type SessionEvent =
  | { readonly type: 'opened' }
  | { readonly type: 'attached' | 'detached' }
  | { readonly type: 'agent_came' | 'agent_left' }
  | { readonly type: 'ended'; readonly exit: Exit }
  | { readonly type: 'stored' };

/** @throws Error for what cannot happen there: a mistake of ours */
export function transition(state: SessionState, event: SessionEvent): SessionState {
  switch (event.type) {
    case 'opened':
      if (state.phase === 'opening') return { phase: 'active', attached: false, agent: false };
      break;
    case 'attached':
    case 'detached':
      if (state.phase === 'active') return { ...state, attached: event.type === 'attached' };
      break;
    case 'agent_came':
    case 'agent_left':
      if (state.phase === 'active') return { ...state, agent: event.type === 'agent_came' };
      break;
    case 'ended':
      if (state.phase === 'opening' || state.phase === 'active') return { phase: 'ending', exit: event.exit };
      break;
    case 'stored':
      if (state.phase === 'ending') return { phase: endedStatus(state.exit.reason), exit: state.exit };
  }
  throw new Error(`a terminal session that is ${state.phase} cannot have ${event.type}`);
}

/** It has ended, stored or not. */
export const isOver = (state: SessionState): state is Extract<SessionState, { readonly exit: Exit }> => 'exit' in state;
