/** Finds the operator that a person means: by username, by operator ID, or by a unique beginning of one. */
import type { ApiClient } from '../../../client/api-client.js';
import type { Operator } from '../../../contract/operators.js';
import { Fault } from '../../../kernel/fault.js';
import { nearest } from '../../../language/nearest.js';

const LEAST = 4;

/** A username means its holder of now, else the only removed one. Throws `operator_not_found`, or `usage` when several fit. */
export async function findOperator(api: ApiClient, text: string, signal: AbortSignal): Promise<Operator> {
  const all = await api.call('listOperators', { query: { include_removed: true }, signal });
  const exact = all.find(({ operator_id }) => operator_id === text);
  if (exact) return exact;
  const named = all.filter(({ username }) => username === text);
  const holder = named.find(({ removed_at }) => removed_at === null) ?? named[0];
  if (holder && (holder.removed_at === null || named.length === 1)) return holder;
  if (holder) {
    throw new Fault('usage', `${named.length} removed operators have the name "${text}":\n${listOf(named)}`, {
      hint: 'name one by its ID',
    });
  }
  const prefix = text.replaceAll(' ', '').toLowerCase();
  const fitting = prefix.length < LEAST ? [] : all.filter(({ operator_id }) => operator_id.startsWith(prefix));
  const [first, ...others] = fitting;
  if (first && others.length === 0) return first;
  if (first) {
    throw new Fault('usage', `"${text}" begins the IDs of ${fitting.length} operators:\n${listOf(fitting)}`);
  }
  const meant = nearest(
    text,
    all.map(({ username }) => username),
  );
  throw new Fault('operator_not_found', `there is no operator "${text}"`, {
    hint: meant === null ? 'list them with: orch operator list' : `did you mean "${meant}"?`,
  });
}

const listOf = (operators: readonly Operator[]): string =>
  operators.map(({ operator_id, username }) => `  ${operator_id}  ${username}`).join('\n');
