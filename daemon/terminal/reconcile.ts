/** Compares what an agent says that it has with what is open here: both ends come to the same sessions. */
import type { NodeId } from '../../src/kernel/ids.js';
import type { AgentMessageOf } from '../../src/wire/messages.js';
import type { LiveSessions } from './live-sessions.js';
import { isOver } from './session/session-state.js';
import type { TerminalLink } from './terminal-link.js';
import type { Tickets } from './tickets.js';

export interface ReconcileOptions {
  readonly live: LiveSessions;
  readonly link: TerminalLink;
  readonly tickets: Tickets;
}

/** @param list all sessions of the agent */
export function reconcile(nodeId: NodeId, list: AgentMessageOf<'terminals'>, options: ReconcileOptions): void {
  const { live, link, tickets } = options;
  const there = new Set(list.sessions.map(({ session_id }) => session_id));
  for (const { session_id: id, attached } of list.sessions) {
    const session = live.get(id);
    if (session === undefined || session.facts.nodeId !== nodeId || isOver(session.state)) {
      live.dismiss(nodeId, id);
    } else if (!attached || !session.hasAgent) {
      const ticket = tickets.issue({ for: 'agent', sessionId: id, nodeId });
      link.send(nodeId, [{ type: 'terminal_attach', session_id: id, ticket }]);
    }
  }
  for (const session of live.all) {
    if (session.facts.nodeId !== nodeId || there.has(session.facts.id)) continue;
    if (session.state.phase === 'active') session.endSoon('agent_lost');
  }
}
