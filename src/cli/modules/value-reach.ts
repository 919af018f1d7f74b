/** Whom a change of a value set reaches. */
import type { ApiClient } from '../../client/api-client.js';
import type { ModuleReach } from '../../contract/modules.js';
import { NO_REVISION } from '../../contract/run-targets.js';
import type { ReachedAgent } from '../../contract/values.js';
import { ASSIGNMENT_MODES } from '../../kernel/assignment-modes.js';
import { modulesSetBy } from '../../language/inputs/value-set.js';
import type { Context } from '../context.js';
import { digestOf, grouped, type Reach } from './reach.js';
import type { ValuesFile } from './value-files.js';

interface ValuesText {
  readonly name: string;
  /** Null for its removal. */
  readonly source: string | null;
}

/** Returns whom a text of a value set reaches, with the warnings about it. Throws `invalid_values` and `values_conflict`. */
export async function valueReachOf(
  { signal }: Context,
  api: ApiClient,
  { name, source }: ValuesText,
): Promise<Reach & { readonly warnings: readonly string[] }> {
  const request = { params: { name }, body: { content: source }, signal };
  const { sha256, agents, warnings } = await api.call('previewValueSet', request);
  return {
    noun: 'value set',
    mayStore: true,
    name,
    sha256: source === null ? '' : digestOf(source),
    current: sha256 ?? NO_REVISION,
    assignments: [],
    ...grouped(agents),
    problems: problemsOf(agents),
    triedBy: [],
    warnings: warnings.map(({ line, message }) => `${name}, line ${line}: ${message}`),
  };
}

/**
 * Returns whom a text of a value set reaches at most: all machines that follow a module whose inputs it sets. For a text that
 * fits only modules which are not published yet.
 */
export async function widestReachOf(
  { signal }: Context,
  api: ApiClient,
  { name, source, parsed }: ValuesFile,
  current: string,
): Promise<Reach> {
  const modules = modulesSetBy(parsed.set?.entries ?? []);
  const followers = new Map<string, ModuleReach['agents'][number]>();
  for (const module of modules) {
    const { agents } = await api.call('getModuleReach', { params: { name: module }, signal });
    for (const agent of agents) {
      const known = followers.get(agent.node_id);
      if (known === undefined || rankOf(agent) > rankOf(known)) followers.set(agent.node_id, agent);
    }
  }
  const agents = [...followers.values()];
  const reach = { noun: 'value set', name, sha256: digestOf(source), current } as const;
  return { ...reach, mayStore: true, assignments: [], ...grouped(agents), problems: [], triedBy: [] };
}

const rankOf = ({ mode }: ModuleReach['agents'][number]): number =>
  mode === null ? -1 : ASSIGNMENT_MODES.indexOf(mode);

/** Maximum problems that are shown; the rest is counted. */
const SHOWN = 5;

function problemsOf(agents: readonly ReachedAgent[]): readonly string[] {
  const wrong = agents.flatMap(({ name, node_id, problem }) =>
    problem === null ? [] : [`${name ?? node_id}: ${problem}`],
  );
  const more = wrong.length > SHOWN ? [`and ${wrong.length - SHOWN} more machines whose values are wrong`] : [];
  return [...wrong.slice(0, SHOWN), ...more];
}
