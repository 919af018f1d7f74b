/** Carries out a sync, one thing after the other, and tells how far it came when one of them fails. */
import type { ApiClient } from '../../client/api-client.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { uploadFile } from '../modules/upload.js';
import type { SyncAction } from './sync-plan.js';

/** An action as programs see it. */
export interface SyncStep {
  readonly kind: SyncAction['kind'];
  readonly action: SyncAction['action'];
  readonly name: string;
  /** The file; null for what is deleted. */
  readonly path: string | null;
  readonly status: 'planned' | 'done' | 'failed' | 'not_done';
}

export const stepOf = (action: SyncAction, status: SyncStep['status']): SyncStep => ({
  kind: action.kind,
  action: action.action,
  name: action.name,
  path: pathOf(action),
  status,
});

/** Null for what is deleted. */
export function pathOf(action: SyncAction): string | null {
  if (action.action === 'delete') return null;
  return action.kind === 'module' ? action.file.path : action.file.file.path;
}

/** Throws the fault of what failed, with what was done before it and what was not. */
export async function performSync(context: Context, api: ApiClient, actions: readonly SyncAction[]): Promise<void> {
  for (const [at, action] of actions.entries()) {
    try {
      await perform(context, api, action);
    } catch (error) {
      throw isFault(error) ? interrupted(error, actions, at) : error;
    }
  }
}

async function perform(context: Context, api: ApiClient, action: SyncAction): Promise<void> {
  const { signal } = context;
  const params = { name: action.name };
  if (action.action === 'delete') {
    const id = action.kind === 'module' ? 'removeModule' : 'removeAssignment';
    await api.call(id, { params, signal });
    return;
  }
  if (action.kind === 'module') {
    await uploadFile(context, api, action.file);
    return;
  }
  const { name, modules, selector, description } = action.file;
  if (action.action === 'create') {
    const body = { name, modules: [...modules], selector, description: description ?? null };
    await api.call('createAssignment', { body, signal });
  } else {
    // Null would leave the description as it is.
    const body = { modules: [...modules], selector, description: description ?? '' };
    await api.call('updateAssignment', { params, body, signal });
  }
}

const VERBS: Readonly<Record<SyncAction['action'], string>> = {
  create: 'created',
  update: 'updated',
  delete: 'deleted',
};

const thing = ({ kind, name }: SyncAction): string => `${kind} ${name}`;

function interrupted({ code, message, hint, errors, data }: Fault, actions: readonly SyncAction[], at: number): Fault {
  const failed = actions.slice(at, at + 1);
  const [done, left] = [actions.slice(0, at), actions.slice(at + 1)];
  const told = failed.map((action) => `${thing(action)} could not be ${VERBS[action.action]}: ${message}`);
  if (done.length > 0)
    told.push(`done before: ${done.map((action) => `${thing(action)} ${VERBS[action.action]}`).join(', ')}`);
  if (left.length > 0) told.push(`not done: ${left.map(thing).join(', ')}`);
  const steps = [
    ...done.map((action) => stepOf(action, 'done')),
    ...failed.map((action) => stepOf(action, 'failed')),
    ...left.map((action) => stepOf(action, 'not_done')),
  ];
  const again = 'the same sync again goes on where this one stopped';
  return new Fault(code, told.join('\n'), {
    hint: hint === undefined ? again : `${hint}\n${again}`,
    ...(errors === undefined ? {} : { errors }),
    data: { ...data, actions: steps },
  });
}
