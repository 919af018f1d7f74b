/** Resolves the IDs in records to names. */
import type { ApiClient } from '../client/api-client.js';
import { isFault } from '../kernel/fault.js';
import type { Context } from './context.js';
import { agentHandle } from './format.js';

/** Returns the username of an operator ID, or the ID itself if it is unknown or the output is for programs. */
export type NameOfOperator = (operatorId: string) => string;

export async function operatorNames({ globals, signal }: Context, api: ApiClient): Promise<NameOfOperator> {
  if (globals.output !== 'table' && globals.output !== 'wide') return (id) => id;
  const operators = await api.call('listOperators', { query: { include_removed: true }, signal });
  const names = new Map(operators.map(({ operator_id, username }) => [operator_id, username]));
  return (id) => names.get(id) ?? id;
}

/** Returns the name of an agent, or its ID if its record is gone or the output is for programs. */
export async function nameOfNode({ globals, signal }: Context, api: ApiClient, nodeId: string): Promise<string> {
  if (globals.output !== 'table' && globals.output !== 'wide') return nodeId;
  try {
    return agentHandle(await api.call('getAgent', { params: { node_id: nodeId }, signal }));
  } catch (error) {
    if (isFault(error, 'agent_not_found')) return nodeId;
    throw error;
  }
}
