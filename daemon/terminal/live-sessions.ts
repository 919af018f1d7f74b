/** The sessions that are open here, or over and not yet shown to the end. */
import type { Clock } from '../../src/kernel/clock.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/kernel/logger.js';
import { LiveSession } from './session/live-session.js';
import type { ResumeSecrets } from './session/resume-secrets.js';
import { hasTerminal, type SessionFacts } from './session/session-facts.js';
import { isOver } from './session/session-state.js';
import type { ResumeKey, SessionBook } from './session-book.js';
import type { TerminalLink } from './terminal-link.js';
import { clockLimits, type TerminalRules } from './terminal-rules.js';

export interface LiveSessionsOptions {
  readonly book: SessionBook;
  readonly link: TerminalLink;
  readonly rules: () => TerminalRules;
  readonly clock: Clock;
  readonly resumeSecrets: ResumeSecrets;
  readonly logger: Logger;
}

export class LiveSessions {
  private readonly options: LiveSessionsOptions;
  private readonly sessions = new Map<string, LiveSession>();

  constructor(options: LiveSessionsOptions) {
    this.options = options;
  }

  /** A copy: sessions go while it is walked. */
  get all(): readonly LiveSession[] {
    return [...this.sessions.values()];
  }

  /** How many are open. */
  get active(): number {
    return this.all.filter(({ state }) => state.phase === 'active').length;
  }

  get(sessionId: string): LiveSession | undefined {
    return this.sessions.get(sessionId);
  }

  /** Shells of an operator that are not over. */
  shellsOf(operatorId: string): number {
    return this.all.filter(
      ({ facts, state }) => facts.kind === 'shell' && facts.operatorId === operatorId && !isOver(state),
    ).length;
  }

  /** @param resume of the one who wrote before a restart */
  add(facts: SessionFacts, resume: ResumeKey | null): LiveSession {
    const { rules } = this.options;
    const session: LiveSession = new LiveSession({
      ...this.options,
      facts,
      resume,
      limits: () => clockLimits(rules(), hasTerminal(facts)),
      dismiss: () => this.dismiss(facts.nodeId, facts.id),
      onGone: () => {
        if (this.sessions.get(facts.id) === session) this.sessions.delete(facts.id);
      },
    });
    this.sessions.set(facts.id, session);
    return session;
  }

  /** Tells the agent to end a session, known here or not. */
  dismiss(nodeId: NodeId, sessionId: string): void {
    this.options.link.send(nodeId, [{ type: 'terminal_close', session_id: sessionId }]);
  }

  /** The orchestrator is about to stop: nobody is served any more. */
  leave(): void {
    for (const session of this.all) session.leave();
  }

  /** Lets go of all, while their programs go on. */
  async release(): Promise<void> {
    await Promise.allSettled(this.all.map((session) => session.release()));
    this.sessions.clear();
  }

  tick(): void {
    for (const session of this.all) session.tick();
  }
}
