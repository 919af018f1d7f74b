/** Computes the desired resources of an agent, and the managed resources to remove. */

import { sql } from 'kysely';
import type { RunResult } from '../../src/contract/runs.js';
import { SizedCache } from '../../src/kernel/sized-cache.js';
import { mapped } from '../../src/kernel/steps.js';
import type { AgentFacts } from '../../src/language/fill.js';
import { type RevivedRemovals, reviveRemovals, secretsOfRemovals } from '../../src/language/revive.js';
import { noLongerDesired } from '../../src/resources/believed-state.js';
import type { DesiredCheck } from '../../src/resources/checks/check.js';
import type { DesiredResource, Removal } from '../../src/resources/desired.js';
import { keyText } from '../../src/resources/resource-key.js';
import { maskResource } from '../../src/resources/tainted-body.js';
import { preparedQuery } from '../database/prepared-query.js';
import type { Queryable } from '../database/schema.js';
import type { AgentRow } from '../fleet/agent-store.js';
import type { Tags } from '../fleet/tag-store.js';
import type { AgentSecrets, ResolvedSecrets } from './agent-secrets.js';
import { type AppliedResourceRow, listAppliedResources, removalOf } from './applied-resource-store.js';
import { ASSIGNMENTS_REVISION, type CurrentAssignments } from './assignments/assignment-store.js';
import { inSlices, type Lanes } from './lanes.js';
import { type CurrentModule, type CurrentModules, resolveLocated, type SentModule } from './modules/current-modules.js';
import { type EncodedContent, encodeContent, type StoredContent } from './run-contents.js';

export interface DesiredSet {
  /** Modules without duplicates, in the order of application. */
  readonly modules: readonly CurrentModule[];
  /** Names of the assignments that match the agent. */
  readonly assignments: readonly string[];
  /** With secrets, as an apply sends them. */
  readonly resources: readonly DesiredResource[];
  /** Removals that can be sent, with the secrets they need. */
  readonly removals: readonly Removal[];
  /** Health checks, with secrets. */
  readonly verify: readonly DesiredCheck[];
  /** With masks in the place of secrets, as an apply stores it. */
  readonly content: StoredContent;
  readonly encoded: EncodedContent;
  /** Managed resources that are no longer desired, in the order of their application. */
  readonly removed: readonly AppliedResourceRow[];
  /** All resources that are managed now; empty when they are exactly the desired ones. */
  readonly managed: readonly AppliedResourceRow[];
  /** True when the managed resources are exactly the desired ones. */
  readonly isConfirmation: boolean;
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
  readonly assignments: CurrentAssignments;
  readonly secrets: AgentSecrets;
  readonly lanes: Lanes;
}

interface Resolving {
  readonly modules: readonly CurrentModule[];
  readonly facts: AgentFacts;
  readonly adHoc: ReadonlySet<string>;
  /** Secrets of the modules. */
  readonly resolved: ResolvedSecrets;
}

type Resolved = Pick<DesiredSet, 'resources' | 'verify' | 'content' | 'encoded' | 'warnings'>;

/** Characters of JSON of the resolved contents that are kept: the benchmark row of 100 files misses its goal without them. */
const KEPT_CHARACTERS = 8_000_000;

export class DesiredSets {
  private readonly options: DesiredSetsOptions;
  private readonly shared = new SizedCache<string, Resolved>(KEPT_CHARACTERS);

  constructor(options: DesiredSetsOptions) {
    this.options = options;
  }

  /**
   * Returns the desired set: the modules of every matching assignment, then the named ones. Must not be called in the agent's
   * lane, because it waits for that lane. Throws `module_not_found` and the faults of `resolve`.
   */
  async of(db: Queryable, agent: AgentRow, { named: names, sent = [] }: ModuleRequest): Promise<DesiredSet> {
    const { current, assignments: all, secrets, lanes } = this.options;
    const named = [...new Set([...names, ...sent.map(({ name }) => name)])];
    const inputs = await inputsOf(db, agent.node_id);
    const assignments = await all.matching(db, agent, inputs);
    const always = new Set(assignments.flatMap((assignment) => assignment.modules));
    const modules = await current.find(db, [...new Set([...always, ...named])], sent);
    const resolved = await secrets.resolve(db, agent, new Set(modules.flatMap(({ secrets: names }) => [...names])));
    const adHoc = new Set(named.filter((name) => !always.has(name)));
    const facts = factsOf(agent, inputs.tags);
    const { resources, verify, content, encoded, warnings } = await this.resolved(db, {
      modules,
      facts,
      adHoc,
      resolved,
    });
    const set = {
      modules,
      assignments: assignments.map(({ name }) => name),
      resources,
      verify,
      removals: [],
      content,
      encoded,
      removed: [],
      managed: [],
      isConfirmation: false,
      warnings,
    };
    const isConfirmation = inputs.stateSha256 === encoded.sha256;
    if (isConfirmation) return { ...set, isConfirmation };
    // Holding the lane keeps every apply of the agent from ending during the read.
    const managed = await lanes.enter(agent.node_id, () => listAppliedResources(db, agent.node_id));
    const removed = await inSlices(noLongerDesired(managed, keyText, resources));
    if (removed.length === 0) return { ...set, managed };
    return { ...set, managed, removed, ...(await this.withRemovals(db, agent, content, removed)) };
  }

  /** Resolves the modules. Agents with the same modules and the same facts in them share the result, if it holds no secrets. */
  private async resolved(db: Queryable, request: Resolving): Promise<Resolved> {
    const { modules, facts, adHoc } = request;
    if (modules.some(({ secrets }) => secrets.size > 0)) return this.resolve(db, request);
    const parts = modules.map(({ name, sha256, facts: read }) => [name, sha256, adHoc.has(name), ...read(facts)]);
    const key = JSON.stringify(parts);
    const known = this.shared.get(key);
    if (known !== undefined) return known;
    const made = await this.resolve(db, request);
    // Another request may have made the same one in the meantime.
    if (this.shared.get(key) === undefined) this.shared.set(key, made, made.encoded.json.length);
    return made;
  }

  private async resolve(db: Queryable, { modules, facts, adHoc, resolved }: Resolving): Promise<Resolved> {
    const { current } = this.options;
    const { resources, checks, warnings } = await resolveLocated(
      { modules, agent: facts, secret: resolved.source },
      (module, pointers) => current.locate(db, module, pointers),
    );
    const content: StoredContent = {
      resources: await inSlices(mapped(resources, maskResource)),
      removals: [],
      failures: [],
      adHoc,
      secrets: Object.fromEntries(resolved.hashes),
      verify: checks.map(maskResource),
    };
    const encoded = await inSlices(encodeContent(content));
    return { resources, verify: checks, content, encoded, warnings: await this.locate(db, modules, warnings) };
  }

  private async withRemovals(
    db: Queryable,
    agent: AgentRow,
    desired: StoredContent,
    removed: readonly AppliedResourceRow[],
  ): Promise<Pick<DesiredSet, 'removals' | 'content' | 'encoded'>> {
    const { removals, failures, hashes } = await this.revive(db, agent, removed.map(removalOf));
    const content = {
      ...desired,
      removals: await inSlices(mapped(removals, maskResource)),
      failures,
      secrets: { ...desired.secrets, ...Object.fromEntries(hashes) },
    };
    return { removals, content, encoded: await inSlices(encodeContent(content)) };
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

const factsOf = ({ node_id, name, attributes }: AgentRow, tags: Tags): AgentFacts => ({
  node_id,
  name: name ?? '',
  attributes,
  tags,
});

/** What the desired set of an agent depends on, besides its row and the modules. */
interface Inputs {
  /** Revision of the assignments. */
  readonly revision: string | null;
  /** Sorted by key. */
  readonly tags: Tags;
  /** Hash of the content that the believed state equals; null for none. */
  readonly stateSha256: string | null;
}

/** Reads the inputs with one statement. */
async function inputsOf(db: Queryable, nodeId: string): Promise<Inputs> {
  const [row] = await inputsById(db, nodeId);
  if (row === undefined) return { revision: null, tags: {}, stateSha256: null };
  const { revision, tags, state_sha256: stateSha256 } = row;
  return { revision, tags: JSON.parse(tags ?? '{}'), stateSha256 };
}

const inputsById = preparedQuery((db, nodeId: string) =>
  db.selectNoFrom((of) => [
    of.selectFrom('meta').select('value').where('key', '=', ASSIGNMENTS_REVISION).as('revision'),
    of
      .selectFrom((from) =>
        from.selectFrom('agent_tags').select(['key', 'value']).where('node_id', '=', nodeId).orderBy('key').as('tags'),
      )
      .select(sql<string>`json_group_object("key", "value")`.as('tags'))
      .as('tags'),
    of
      .selectFrom('agents')
      .innerJoin('run_contents', 'run_contents.content_id', 'agents.state_content_id')
      .innerJoin('operations', 'operations.operation_id', 'agents.state_operation_id')
      .select('run_contents.sha256')
      .where('agents.node_id', '=', nodeId)
      .as('state_sha256'),
  ]),
);
