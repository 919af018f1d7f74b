/** Names of operators whose IDs records hold. */
import type { ApiClient } from '../client/api-client.js';
import type { Context } from './context.js';

/** The username of an operator ID, or the ID itself: for programs, and for what is no operator. */
export type NameOfOperator = (operatorId: string) => string;

export async function operatorNames({ globals, signal }: Context, api: ApiClient): Promise<NameOfOperator> {
  if (globals.output !== 'table' && globals.output !== 'wide') return (id) => id;
  const operators = await api.call('listOperators', { query: { include_removed: true }, signal });
  // A key that was removed and added again, as by a recovery, has two records: the active one names it.
  const oldestFirst = [...operators].sort((a, b) => Number(a.removed_at === null) - Number(b.removed_at === null));
  const names = new Map(oldestFirst.map(({ operator_id, username }) => [operator_id, username]));
  return (id) => names.get(id) ?? id;
}
