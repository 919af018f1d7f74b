/** What is known of a session from its start and never changes. */
import type { NodeId } from '../../../src/kernel/ids.js';
import type { TerminalRow } from '../session-store.js';

export interface SessionFacts {
  readonly id: string;
  readonly nodeId: NodeId;
  readonly nodeName: string | null;
  /** Who opened it. */
  readonly operatorId: string;
  readonly operator: string;
  readonly kind: 'shell' | 'exec';
  readonly command: readonly string[] | null;
  /** Kind of the client's terminal; empty for a command without a terminal, and for a client that does not say. */
  readonly term: string;
  /** Unix milliseconds. */
  readonly openedAt: number;
}

/** It runs on a terminal: a shell always, a command when that was asked for. */
export const hasTerminal = ({ kind, term }: Pick<SessionFacts, 'kind' | 'term'>): boolean =>
  kind === 'shell' || term !== '';

/** What the agent has said about the program. */
export interface ProgramFacts {
  readonly user: string | null;
  readonly shell: string | null;
}

/** What people call the agent. */
export const nodeLabel = ({ nodeId, nodeName }: Pick<SessionFacts, 'nodeId' | 'nodeName'>): string =>
  nodeName ?? nodeId;

export const factsOfRow = (row: TerminalRow): SessionFacts => ({
  id: row.session_id,
  nodeId: row.node_id as NodeId,
  nodeName: row.node_name,
  operatorId: row.operator_id,
  operator: row.operator,
  kind: row.kind,
  command: row.command_json === null ? null : (JSON.parse(row.command_json) as string[]),
  term: row.term,
  openedAt: row.opened_at,
});
