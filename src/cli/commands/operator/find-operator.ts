/** Finds the operator that a person means: by username, by operator ID, or by a unique beginning of one. */
import type { ApiClient } from '../../../client/api-client.js';
import type { Operator } from '../../../contract/operators.js';
import { Fault } from '../../../kernel/fault.js';
import { nearest } from '../../../language/nearest.js';

const LEAST = 4;

/** An active one stands above a removed one of the same name. Throws `operator_not_found`, or `usage` when several fit. */
export async function findOperator(api: ApiClient, text: string, signal: AbortSignal): Promise<Operator> {
  const all = await api.call('listOperators', { query: { include_removed: true }, signal });
  const sorted = [...all].sort((a, b) => Number(a.removed_at !== null) - Number(b.removed_at !== null));
  const exact = sorted.find(({ operator_id, username }) => operator_id === text || username === text);
  if (exact) return exact;
  const prefix = text.replaceAll(' ', '').toLowerCase();
  const fitting = prefix.length < LEAST ? [] : all.filter(({ operator_id }) => operator_id.startsWith(prefix));
  const [first, ...others] = fitting;
  if (first && others.length === 0) return first;
  if (first) {
    const list = fitting.map(({ operator_id, username }) => `  ${operator_id}  ${username}`).join('\n');
    throw new Fault('usage', `"${text}" begins the IDs of ${fitting.length} operators:\n${list}`);
  }
  const meant = nearest(
    text,
    all.map(({ username }) => username),
  );
  throw new Fault('operator_not_found', `there is no operator "${text}"`, {
    hint: meant === null ? 'list them with: orch operator list' : `did you mean "${meant}"?`,
  });
}
