/** Names of operators whose IDs records hold. */
import type { ApiClient } from '../client/api-client.js';
import type { Context } from './context.js';

/** The username of an operator ID, or the ID itself: for programs, and for what is no operator. */
export type NameOfOperator = (operatorId: string) => string;

export async function operatorNames({ globals, signal }: Context, api: ApiClient): Promise<NameOfOperator> {
  if (globals.output !== 'table' && globals.output !== 'wide') return (id) => id;
  const operators = await api.call('listOperators', { query: { include_removed: true }, signal });
  const names = new Map(operators.map(({ operator_id, username }) => [operator_id, username]));
  return (id) => names.get(id) ?? id;
}
