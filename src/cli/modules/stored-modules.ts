/** Modules and assignments as the orchestrator has them now. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { Assignment } from '../../contract/assignments.js';
import { matches, parseSelector } from '../../language/selector.js';
import { type ReadModule, readModule } from './read-modules.js';

/** A module of the orchestrator in its current revision; its name stands for the file. */
export type StoredModule = ReadModule & { readonly revision: number };

/** Those of the named modules that are still there, in their order. */
export async function storedModules(
  api: ApiClient,
  names: Iterable<string>,
  signal: AbortSignal,
): Promise<readonly StoredModule[]> {
  const present = new Set((await api.call('listModules', { signal })).map(({ name }) => name));
  const modules: StoredModule[] = [];
  for (const name of new Set(names)) {
    if (!present.has(name)) continue;
    const { revision, content } = await api.call('getModule', { params: { name }, query: { revision: null }, signal });
    modules.push({ ...readModule(name, content), revision });
  }
  return modules;
}

/** The assignments whose selector matches an agent now. */
export const matchingAssignments = (all: readonly Assignment[], agent: Agent): readonly Assignment[] =>
  all.filter(({ selector }) => matches(parseSelector(selector), agent));
