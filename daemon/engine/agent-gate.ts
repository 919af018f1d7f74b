/** What has to hold before anything is started on an agent. */
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import type { AgentLink } from '../fleet/connection-registry.js';
import { agentLabel, approvedAgent, type KnownAgent } from './approved-agent.js';
import type { LiveOperations } from './live-operations.js';

export interface AgentGateOptions extends Pick<Core, 'db'> {
  readonly link: AgentLink;
  readonly live: LiveOperations;
}

export class AgentGate {
  private readonly options: AgentGateOptions;

  constructor(options: AgentGateOptions) {
    this.options = options;
  }

  /**
   * The agent, if it is approved, connected and done with what it did before.
   * Throws `agent_not_found`, `agent_not_approved`, `agent_not_connected` or `operation_in_progress`.
   */
  async pass(nodeId: string): Promise<KnownAgent> {
    const { db, link, live } = this.options;
    const agent = await approvedAgent(db, nodeId);
    if (!link.isConnected(agent.nodeId)) {
      throw new Fault('agent_not_connected', `agent ${agentLabel(agent)} is not connected`, {
        hint: 'start it, or wait until it is back',
      });
    }
    const late = live.late(agent.nodeId);
    if (late === undefined) return agent;
    throw new Fault(
      'operation_in_progress',
      `agent ${agentLabel(agent)} still reports what it did in operation ${late.id}`,
      {
        hint: `wait for it: orch ops watch ${late.id}`,
        data: { operation_id: late.id },
      },
    );
  }
}
