/** Computes the desired resources of an agent, and the managed resources to remove. */

import type { RunResult } from '../../src/contract/runs.js';
import type { AgentFacts } from '../../src/language/fill.js';
import { type RevivedRemovals, reviveRemovals, secretsOfRemovals } from '../../src/language/revive.js';
import { noLongerDesired } from '../../src/resources/believed-state.js';
import type { DesiredResource, Removal } from '../../src/resources/desired.js';
import { keyText } from '../../src/resources/resource-key.js';
import type { ResourceResult } from '../../src/resources/result.js';
import type { Queryable } from '../database/schema.js';
import type { AgentRow } from '../fleet/agent-store.js';
import { tagsOf } from '../fleet/tag-store.js';
import type { AgentSecrets, ResolvedSecrets, SecretHashes } from './agent-secrets.js';
import { type AppliedResourceRow, listAppliedResources, removalOf } from './applied-resource-store.js';
import type { AssignedModules } from './assignments/assignment-store.js';
import { inSlices, type Lanes } from './lanes.js';
import { type CurrentModule, type CurrentModules, resolveLocated, type SentModule } from './modules/current-modules.js';

export interface DesiredSet {
  /** Modules without duplicates, in the order of application. */
  readonly modules: readonly CurrentModule[];
  /** Names of the assignments that match the agent. */
  readonly assignments: readonly string[];
  /** Modules that only the request names. */
  readonly adHoc: ReadonlySet<string>;
  readonly resources: readonly DesiredResource[];
  /** Hashes of the secrets in the resources and removals. */
  readonly secrets: SecretHashes;
  /** Managed resources that are no longer desired, in the order of their application. */
  readonly removed: readonly AppliedResourceRow[];
  /** Removals that can be sent. */
  readonly removals: readonly Removal[];
  /** Results of removals that cannot be sent because a secret they need is not available. */
  readonly failures: readonly ResourceResult[];
  /** All resources that are managed now. */
  readonly managed: readonly AppliedResourceRow[];
  readonly warnings: RunResult['warnings'];
}

/** Modules that a request adds to those of the assignments. */
interface ModuleRequest {
  readonly named: readonly string[];
  /** Modules whose texts came with the request: they count as named, and replace stored ones. */
  readonly sent?: readonly SentModule[];
}

interface DesiredSetsOptions {
  readonly current: CurrentModules;
  readonly assigned: AssignedModules;
  readonly secrets: AgentSecrets;
  readonly lanes: Lanes;
}

export class DesiredSets {
  private readonly options: DesiredSetsOptions;

  constructor(options: DesiredSetsOptions) {
    this.options = options;
  }

  /**
   * Returns the desired set: the modules of every matching assignment, then the named ones. Must not be called in the agent's
   * lane, because it waits for that lane. Throws `module_not_found` and the faults of `resolve`.
   */
  async of(db: Queryable, agent: AgentRow, { named: names, sent = [] }: ModuleRequest): Promise<DesiredSet> {
    const { current, assigned, secrets, lanes } = this.options;
    const named = [...new Set([...names, ...sent.map(({ name }) => name)])];
    const assignments = await assigned(db, agent);
    const always = new Set(assignments.flatMap((assignment) => assignment.modules));
    const modules = await current.find(db, [...new Set([...always, ...named])], sent);
    const resolved = await secrets.resolve(db, agent, new Set(modules.flatMap(({ secrets: names }) => [...names])));
    const { resources, warnings } = await resolveLocated(
      { modules, agent: await factsOf(db, agent), secret: resolved.source },
      (module, pointers) => current.locate(db, module, pointers),
    );
    // Holding the lane keeps every apply of the agent from ending during the read.
    const managed = await lanes.enter(agent.node_id, () => listAppliedResources(db, agent.node_id));
    const removed = await inSlices(noLongerDesired(managed, keyText, resources));
    const revived = await this.revive(db, agent, removed.map(removalOf));
    return {
      modules,
      assignments: assignments.map(({ name }) => name),
      adHoc: new Set(named.filter((name) => !always.has(name))),
      resources,
      secrets: Object.fromEntries([...resolved.hashes, ...revived.hashes]),
      removed,
      removals: revived.removals,
      failures: revived.failures,
      managed,
      warnings: await this.locate(db, modules, warnings),
    };
  }

  private async revive(
    db: Queryable,
    agent: AgentRow,
    masked: readonly Removal[],
  ): Promise<RevivedRemovals & Pick<ResolvedSecrets, 'hashes'>> {
    const { source, hashes } = await this.options.secrets.resolve(db, agent, secretsOfRemovals(masked));
    return { ...reviveRemovals(masked, source), hashes };
  }

  private async locate(
    db: Queryable,
    modules: readonly CurrentModule[],
    warnings: readonly { readonly module: string; readonly path: string; readonly message: string }[],
  ): Promise<RunResult['warnings']> {
    const located: RunResult['warnings'] = [];
    for (const { module, path, message } of warnings) {
      const source = modules.find(({ name }) => name === module);
      const places = source && (await this.options.current.locate(db, source, [path]));
      const place = places?.get(path) ?? { line: 1, column: 1 };
      located.push({ module, path, message, ...place });
    }
    return located;
  }
}

async function factsOf(db: Queryable, agent: AgentRow): Promise<AgentFacts> {
  const { node_id, name, attributes } = agent;
  return { node_id, name: name ?? '', attributes, tags: await tagsOf(db, node_id) };
}
