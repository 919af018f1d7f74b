/** The name of an agent whose ID a record holds. */
import type { ApiClient } from '../../client/api-client.js';
import { isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentHandle } from '../format.js';

/** The ID itself for programs, and for an agent whose record is gone. */
export async function nameOfNode({ globals, signal }: Context, api: ApiClient, nodeId: string): Promise<string> {
  if (globals.output !== 'table' && globals.output !== 'wide') return nodeId;
  try {
    return agentHandle(await api.call('getAgent', { params: { node_id: nodeId }, signal }));
  } catch (error) {
    if (isFault(error, 'agent_not_found')) return nodeId;
    throw error;
  }
}
