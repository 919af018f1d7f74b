/** State that the parts of one session share while its program runs, and its immutable facts. */
import type { Clock } from '../../../src/kernel/clock.js';
import type { NodeId } from '../../../src/kernel/ids.js';
import type { Logger } from '../../../src/kernel/logger.js';
import type { Exit, ExitReason } from '../../../src/terminal/exit.js';
import type { RequestContext } from '../../core/domain-event.js';
import type { SessionStore, TerminalRow } from '../session-store.js';
import type { AgentSide } from './agent-side.js';
import type { InputRelay } from './input-relay.js';
import type { OutputRelay } from './output-relay.js';
import type { Participants } from './participants.js';
import type { ResumeKeys } from './resume.js';
import type { SessionClocks, SessionLifecycle } from './session-lifecycle.js';
import type { SessionRecording } from './session-recording.js';

export interface SessionCore {
  readonly facts: SessionFacts;
  readonly lifecycle: SessionLifecycle;
  readonly participants: Participants;
  readonly keys: ResumeKeys;
  readonly agent: AgentSide;
  readonly input: InputRelay;
  readonly relay: OutputRelay;
  readonly recording: SessionRecording;
  readonly clocks: SessionClocks;
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns true if the operator may type in the session now. */
  readonly mayType: (operatorId: string) => Promise<boolean>;
  /** Ends the session in the background, unless it has ended. */
  readonly end: (exit: Exit, by?: RequestContext) => void;
  /** Sends new credit to the agent, if any. */
  readonly pace: () => void;
}

/** Returns the exit of a session that the orchestrator ends. */
export const exitOf = (reason: ExitReason): Exit => ({ code: null, signal: null, reason, final_offset: null });

/** Facts of a session that are known at its start and never change. */
export interface SessionFacts {
  readonly id: string;
  readonly nodeId: NodeId;
  readonly nodeName: string | null;
  /** Operator who opened the session. */
  readonly operatorId: string;
  readonly operator: string;
  readonly kind: 'shell' | 'exec';
  readonly command: readonly string[] | null;
  /** TERM of the client; empty for a command without a terminal and for a client without TERM. */
  readonly term: string;
  /** Unix milliseconds. */
  readonly openedAt: number;
}

/** Reports whether the program runs on a terminal: every shell, and a command on request. */
export const hasTerminal = ({ kind, term }: Pick<SessionFacts, 'kind' | 'term'>): boolean =>
  kind === 'shell' || term !== '';

/** Facts about the program from the agent. */
export interface ProgramFacts {
  readonly user: string | null;
  readonly shell: string | null;
}

/** Returns the display name of the agent. */
export const nodeLabel = ({ nodeId, nodeName }: Pick<SessionFacts, 'nodeId' | 'nodeName'>): string =>
  nodeName ?? nodeId;

export const factsOfRow = (row: TerminalRow): SessionFacts => ({
  id: row.session_id,
  nodeId: row.node_id as NodeId,
  nodeName: row.node_name,
  operatorId: row.operator_id,
  operator: row.operator,
  kind: row.kind,
  command: row.command,
  term: row.term,
  openedAt: row.opened_at,
});
