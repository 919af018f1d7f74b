/** Sessions that are open, or over while a client still receives their output. */

import type { NodeId } from '../../src/kernel/ids.js';
import type { Settings } from '../../src/settings/serve.js';
import type { OrchestratorMessage } from '../../src/wire/messages.js';
import type { Core } from '../core/core.js';
import type { KeptOutput } from './recordings/recording.js';
import { LiveSession } from './session/live-session.js';
import type { ResumeSecrets } from './session/resume.js';
import { hasTerminal, type SessionFacts } from './session/session-core.js';
import { type ClockLimits, hasEnded } from './session/session-lifecycle.js';
import type { ResumeKey, SessionStore } from './session-store.js';

interface LiveSessionsOptions extends Pick<Core, 'clock' | 'logger'> {
  readonly store: SessionStore;
  readonly link: TerminalLink;
  readonly rules: () => TerminalRules;
  readonly resumeSecrets: ResumeSecrets;
  /** Returns true if the operator may type in the session now. */
  readonly mayType: (facts: SessionFacts, operatorId: string) => Promise<boolean>;
}

export class LiveSessions {
  private readonly options: LiveSessionsOptions;
  private readonly sessions = new Map<string, LiveSession>();

  constructor(options: LiveSessionsOptions) {
    this.options = options;
  }

  /** A copy, because sessions may be removed during iteration. */
  get all(): readonly LiveSession[] {
    return [...this.sessions.values()];
  }

  /** Number of open sessions. */
  get active(): number {
    return this.all.filter(({ state }) => state.phase === 'active').length;
  }

  get(sessionId: string): LiveSession | undefined {
    return this.sessions.get(sessionId);
  }

  /** Returns the number of open shells of an operator. */
  shellsOf(operatorId: string): number {
    return this.all.filter(
      ({ facts, state }) => facts.kind === 'shell' && facts.operatorId === operatorId && !hasEnded(state),
    ).length;
  }

  /** @param resume resume key of the writer before a restart */
  add(facts: SessionFacts, resume: ResumeKey | null): LiveSession {
    const { rules, mayType } = this.options;
    const session: LiveSession = new LiveSession({
      ...this.options,
      facts,
      mayType: (operatorId) => mayType(facts, operatorId),
      resume,
      limits: () => clockLimits(rules(), hasTerminal(facts)),
      dismiss: () => this.dismiss(facts.nodeId, facts.id),
      onDone: () => {
        if (this.sessions.get(facts.id) === session) this.sessions.delete(facts.id);
      },
    });
    this.sessions.set(facts.id, session);
    return session;
  }

  /** Tells the agent to end a session, which may be unknown here. */
  dismiss(nodeId: NodeId, sessionId: string): void {
    this.options.link.send(nodeId, [{ type: 'terminal_close', session_id: sessionId }]);
  }

  /** Disconnects all clients and agents, because the orchestrator stops. */
  leave(): void {
    for (const session of this.all) session.leave();
  }

  /** Releases all sessions while their programs continue. */
  async release(): Promise<void> {
    await Promise.allSettled(this.all.map((session) => session.release()));
    this.sessions.clear();
  }

  tick(): void {
    for (const session of this.all) session.tick();
  }
}

/** Settings of terminals. Times are in milliseconds. */
export interface TerminalRules {
  /** `required`: no session without a recording. `best_effort`: a session continues without one. */
  readonly record: 'required' | 'best_effort' | 'off';
  /** Output of commands on pipes that recordings keep. */
  readonly recordCommands: KeptOutput;
  readonly idle: number;
  readonly detached: number;
  readonly max: number;
  readonly agentGrace: number;
  /** Maximum number of open shells of an operator. */
  readonly perOperator: number;
}

/** Reads the rules of terminals; times in milliseconds. */
export const terminalRules = (settings: Settings): TerminalRules => ({
  record: settings['terminal.record'],
  recordCommands: settings['terminal.record_commands'],
  idle: settings['terminal.idle_secs'] * 1000,
  detached: settings['terminal.detached_secs'] * 1000,
  max: settings['terminal.max_secs'] * 1000,
  agentGrace: settings['terminal.agent_grace_secs'] * 1000,
  perOperator: settings['terminal.per_operator'],
});

/** Milliseconds that a command without a terminal continues while no client takes its output. */
const EXEC_DETACHED = 30_000;

const clockLimits = (rules: TerminalRules, hasTerminal: boolean): ClockLimits => ({
  idle: hasTerminal ? rules.idle : 0,
  detached: hasTerminal ? rules.detached : EXEC_DETACHED,
  max: rules.max,
  agentGrace: rules.agentGrace,
});

/** Connections to agents, as terminal sessions use them. */
export interface TerminalLink {
  /** Reports whether the agent is connected and knows that it is approved. */
  isConnected(nodeId: NodeId): boolean;
  holdOf(nodeId: NodeId): string | null;
  /** Reports whether the agent is connected and knows messages of this type. */
  supports(nodeId: NodeId, type: OrchestratorMessage['type']): boolean;
  /** Sends messages. Returns false when the agent is not connected. */
  send(nodeId: NodeId, messages: readonly OrchestratorMessage[]): boolean;
}
