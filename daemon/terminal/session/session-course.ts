/** Where a session stands, for all of its parts. */
import { isOver, type SessionEvent, type SessionState, transition } from './session-state.js';

export class Course {
  private current: SessionState = { phase: 'opening' };

  get state(): SessionState {
    return this.current;
  }

  get isActive(): boolean {
    return this.current.phase === 'active';
  }

  /** It has ended, stored or not. */
  get isOver(): boolean {
    return isOver(this.current);
  }

  /** @throws Error for what cannot happen there: a mistake of ours */
  take(event: SessionEvent): void {
    this.current = transition(this.current, event);
  }
}
