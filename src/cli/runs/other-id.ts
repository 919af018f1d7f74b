/** Explains an ID that belongs to a record of another kind, because operations and rollouts have IDs of one form. */
import type { ApiClient } from '../../client/api-client.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';

/** Runs requests about an operation. Throws `operation_not_found` with an explanation if the ID is that of a rollout. */
export async function expectingOperation<T>(
  { signal }: Pick<Context, 'signal'>,
  api: ApiClient,
  id: string,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!isFault(error, 'operation_not_found')) throw error;
    const rollout = await orNull(api.call('getRollout', { params: { rollout_id: id }, signal }));
    if (rollout === null) throw error;
    throw new Fault('operation_not_found', `${id} is a rollout, not an operation`, {
      hint: `see it with: orch rollouts show ${id}\nits operations: orch ops list --rollout ${id}`,
      cause: error,
    });
  }
}

/** Runs requests about a rollout. Throws `rollout_not_found` with an explanation if the ID is that of an operation. */
export async function expectingRollout<T>(
  { signal }: Pick<Context, 'signal'>,
  api: ApiClient,
  id: string,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!isFault(error, 'rollout_not_found')) throw error;
    const operation = await orNull(api.call('getOperation', { params: { operation_id: id }, signal }));
    if (operation === null) throw error;
    const { rollout_id } = operation;
    throw new Fault('rollout_not_found', `${id} is an operation, not a rollout`, {
      hint:
        rollout_id === null
          ? `see it with: orch ops show ${id}`
          : `see it with: orch ops show ${id}\nits rollout: orch rollouts show ${rollout_id}`,
      cause: error,
    });
  }
}

/** Resolves to null after any fault of the request, because it only looks for a better explanation. */
async function orNull<T>(request: Promise<T>): Promise<T | null> {
  try {
    return await request;
  } catch (error) {
    if (isFault(error)) return null;
    throw error;
  }
}
