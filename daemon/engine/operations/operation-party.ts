/** The agent of an operation, as audit events name it. */
import type { Party } from '../../core/domain-event.js';

/** Returns the agent of an operation or run as the party of an event. */
export const agentParty = ({
  nodeId,
  nodeName,
}: {
  readonly nodeId: string;
  readonly nodeName: string | null;
}): Party => ({
  id: nodeId,
  name: nodeName ?? nodeId,
  type: 'agent',
});
