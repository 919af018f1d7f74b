/** Computes the desired resources of an agent, and the managed resources to remove. */

import type { RunResult } from '../../../src/contract/runs.js';
import { Fault } from '../../../src/kernel/fault.js';
import { isNodeId, type NodeId } from '../../../src/kernel/ids.js';
import { SizedCache } from '../../../src/kernel/sized-cache.js';
import { mapped, type Steps } from '../../../src/kernel/steps.js';
import type { AgentFacts } from '../../../src/language/evaluate.js';
import { type ReadFacts, readFactsOf, withReadFacts } from '../../../src/language/facts-read.js';
import { type GivenValues, type ModuleValues, valueSteps, valuesFor } from '../../../src/language/inputs/choose.js';
import { inputsSet, withOneOff } from '../../../src/language/inputs/one-off-values.js';
import {
  type RevivedRemovals,
  refusalOf,
  revive,
  reviveRemovals,
  secretsIn,
  secretsOfRemovals,
} from '../../../src/language/revive.js';
import { STANDARD_KINDS } from '../../../src/language/schema.js';
import { secretsInValue } from '../../../src/language/values.js';
import { noLongerDesired } from '../../../src/resources/believed-state.js';
import type { DesiredCheck } from '../../../src/resources/checks/check.js';
import type { DesiredResource, Removal } from '../../../src/resources/desired.js';
import { withRemovalTriggers } from '../../../src/resources/listeners.js';
import { keyText, resourceKey } from '../../../src/resources/resource-key.js';
import { isTainted, maskResource } from '../../../src/resources/tainted-body.js';
import type { Queryable } from '../../database/schema.js';
import type { AgentRow } from '../../fleet/agent-store.js';
import { reportedFacts } from '../../fleet/fact-store.js';
import type { Tags } from '../../fleet/tag-store.js';
import type { AgentInputs } from '../agent-inputs.js';
import type { AgentSecrets, ResolvedSecrets } from '../agent-secrets.js';
import type { CurrentAssignment, CurrentAssignments } from '../assignments/assignment-store.js';
import type { Lanes } from '../lanes.js';
import {
  type CurrentModule,
  type CurrentModules,
  resolveLocated,
  type SentModule,
} from '../modules/current-modules.js';
import type { AgentWithInputs } from '../runs/agent-gate.js';
import type { AgentSessions } from '../runs/agent-sessions.js';
import { type EncodedContent, encodeContent, type RunContents, type StoredContent } from '../runs/run-contents.js';
import { inSlices } from '../slices.js';
import {
  type AppliedResourceRow,
  listAppliedResources,
  listenersOfRow,
  removalOf,
} from '../state/applied-resource-store.js';
import { secretsOf } from '../state/applied-secrets.js';
import type { CurrentValues } from '../values/current-values.js';
import type { GivenOneOff } from '../values/one-off-store.js';
import { type ApplyTarget, type EarlierContent, earlierContent, restoresOf } from './earlier-content.js';
import { type FactRemovals, NO_FACT_REMOVALS, removalsByFacts } from './fact-removals.js';

/** The desired state of an agent. */
interface WantedSet
  extends Pick<
    DesiredSet,
    'modules' | 'resources' | 'verify' | 'content' | 'encoded' | 'isConfirmation' | 'warnings' | 'valueInputs' | 'facts'
  > {
  /** The assignments that match the agent. */
  readonly assignments: readonly CurrentAssignment[];
}

export interface DesiredSet {
  /** Modules without duplicates, in the order of application; none for an earlier desired state. */
  readonly modules: readonly CurrentModule[];
  /** Names of its modules. */
  readonly names: readonly string[];
  /** Earlier operation whose desired state it is, or `nothing`; null for modules. */
  readonly restores: string | null;
  /** Remarks about an earlier desired state, and about removals that changed facts cause. */
  readonly notes: readonly string[];
  /** Names of the assignments that match the agent. */
  readonly matching: readonly string[];
  /** Names of the assignments that give its modules: those that match, or none for an earlier desired state. */
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
  /** Hash of the content without removals. */
  readonly wantedSha256: string;
  /** Managed resources that are no longer desired, in the order of their application. */
  readonly removed: readonly AppliedResourceRow[];
  /** All resources that are managed now; empty when they are exactly the desired ones. */
  readonly managed: readonly AppliedResourceRow[];
  /** True when the managed resources are exactly the desired ones. */
  readonly isConfirmation: boolean;
  /** Inputs and shared values of its modules that one-off values set, by name; none for an earlier desired state. */
  readonly valueInputs: readonly string[];
  readonly warnings: RunResult['warnings'];
  /** Reported facts on which it depends; null for an earlier desired state. */
  readonly facts: ReadFacts | null;
  /** Resources among `removed` that go only because such facts have changed. */
  readonly removedByFacts: FactRemovals;
}

type Unmanaged = Omit<DesiredSet, 'wantedSha256' | 'removals' | 'removed' | 'managed' | 'removedByFacts'>;

/** Modules that a request adds to those of the assignments. */
interface ModuleRequest {
  readonly named: readonly string[];
  /** Modules whose texts came with the request: they count as named, and replace stored ones. */
  readonly sent?: readonly SentModule[];
  /** True to have the agent read the versions of packages now that the modules name. */
  readonly asksPackages?: boolean;
  /** Values above all stored ones; null for none. */
  readonly oneOff?: GivenOneOff | null;
}

interface DesiredSetsOptions {
  readonly current: CurrentModules;
  readonly values: CurrentValues;
  readonly assignments: CurrentAssignments;
  readonly secrets: AgentSecrets;
  readonly lanes: Lanes;
  readonly contents: RunContents;
  readonly sessions: AgentSessions;
  readonly packages: PackageVersions;
}

/** Versions of packages on agents, which modules may name. */
export interface PackageVersions {
  /** Throws `agent_not_connected`, `agent_timeout` and `expression_error`. */
  ask(nodeId: NodeId, names: readonly string[]): Promise<void>;
  /** Asks for the packages in the background that the agent was never asked for. */
  askMissing(nodeId: NodeId, names: readonly string[]): void;
}

interface Resolving {
  readonly modules: readonly CurrentModule[];
  readonly facts: AgentFacts;
  /** Values of inputs that concern the agent. */
  readonly values: GivenValues;
  /** The values of each module. */
  readonly chosen: readonly ModuleValues[];
  readonly adHoc: ReadonlySet<string>;
  /** Secrets of the modules and of their values. */
  readonly resolved: ResolvedSecrets;
  /** True if there may be some. */
  readonly isSecret: boolean;
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
   * lane, because it waits for that lane. The caller ensures that no apply of the agent ends between the reading of `agent` and
   * the return. Throws `module_not_found`, the faults of `resolve` and those of `readPackages`.
   */
  async of(db: Queryable, agent: AgentInputs, request: ModuleRequest): Promise<DesiredSet> {
    const { assignments, ...wanted } = await this.wanted(db, agent, request);
    const matching = assignments.map(({ name }) => name);
    const set = await this.withManaged(db, agent.row, {
      ...wanted,
      names: wanted.modules.map(({ name }) => name),
      restores: null,
      notes: [],
      matching,
      assignments: matching,
    });
    if (set.removed.length === 0 || set.facts === null) return set;
    const removedByFacts = await removalsByFacts(db, {
      stateOperationId: agent.row.state_operation_id,
      removed: set.removed,
      now: set.facts,
      resourcesWith: async (facts) => (await this.wanted(db, agent, request, facts)).resources,
    });
    return { ...set, removedByFacts, notes: notesOfRemovals(removedByFacts) };
  }

  /**
   * Returns what the agent is to have, without what an apply would remove. Throws as `of` does.
   * @param before values of reported facts that replace those of now
   */
  async wanted(
    db: Queryable,
    agent: AgentInputs,
    request: ModuleRequest,
    before: ReadFacts | null = null,
  ): Promise<WantedSet> {
    const { named: given, sent = [], oneOff = null } = request;
    const { current, assignments: all, secrets, values: stored } = this.options;
    const named = [...new Set([...given, ...sent.map(({ name }) => name)])];
    const assignments =
      before === null
        ? await all.matching(db, agent)
        : await all.of(db, withReadFacts(factsOf(agent.row, agent.tags), before));
    const always = new Set(assignments.flatMap((assignment) => assignment.modules));
    const modules = await current.find(db, [...new Set([...always, ...named])], { sent, revision: agent.modules });
    if (before === null) await this.readPackages(agent.row, modules, request.asksPackages === true);
    const known = factsOf(agent.row, agent.tags);
    const areReported = modules.some((module) => module.facts.areReported);
    const now = areReported ? { ...known, facts: await reportedFacts(db, agent.row.node_id) } : known;
    const facts = before === null ? now : withReadFacts(now, before);
    const fleet = await stored.of(db, agent, assignments);
    const values = valuesFor(oneOff === null ? fleet : withOneOff(fleet, oneOff.read), facts);
    const chosen = await inSlices(valuesOfModules(modules, values));
    const names = new Set(modules.flatMap(({ secrets: own }, at) => [...own, ...secretsInValues(chosen[at])]));
    const resolved = await secrets.resolve(db, agent.row, names);
    const adHoc = new Set(named.filter((name) => !always.has(name)));
    const resolution = await this.resolved(db, {
      modules,
      facts,
      values,
      chosen,
      adHoc,
      resolved,
      isSecret: names.size > 0,
    });
    const isConfirmation = agent.stateSha256 === resolution.encoded.sha256;
    const own = oneOff === null ? [] : valuesFor({ layers: oneOff.read.layers, rank: [] }, facts).layers;
    const valueInputs = inputsSet(
      own,
      modules.map(({ compiled }) => compiled),
    );
    return { ...resolution, modules, assignments, isConfirmation, valueInputs, facts: readFactsOf(modules, facts) };
  }

  /** Has the agent read the versions of packages that the modules name. Throws `agent_too_old` and the faults of `PackageVersions.ask`. */
  private async readPackages(row: AgentRow, modules: readonly CurrentModule[], isAsked: boolean): Promise<void> {
    const { packages, sessions } = this.options;
    const names = [...new Set(modules.flatMap(({ facts }) => facts.packages))];
    const { node_id: nodeId } = row;
    if (names.length === 0 || !isNodeId(nodeId)) return;
    if (isAsked) {
      sessions.require({ nodeId, row }, 'packages');
      await packages.ask(nodeId, names);
    } else if (sessions.can(nodeId, 'packages') === true) packages.askMissing(nodeId, names);
  }

  /**
   * Returns the desired state of an earlier operation as a desired set, with the present values of its secrets. Must not be
   * called in the agent's lane. Throws the faults of `earlierContent`, `secret_unavailable` and
   * `expression_error`.
   */
  async earlier(db: Queryable, agent: AgentWithInputs, to: ApplyTarget): Promise<DesiredSet> {
    const { assignments: all, contents, secrets } = this.options;
    const { row, inputs } = agent;
    const earlier = await earlierContent(db, contents, { agent, to });
    const assignments = await all.matching(db, inputs);
    const matching = assignments.map(({ name }) => name);
    const always = new Set(assignments.flatMap((assignment) => assignment.modules));
    const names = await inSlices(secretsOf([...earlier.resources, ...earlier.verify]));
    const { source, hashes } = await secrets.resolve(db, row, names);
    const refusal = refusalOf([...names], source);
    if (refusal !== null) throw secretGone(earlier, refusal);
    const resources = await inSlices(mapped(earlier.resources, (resource) => revive(resource, source)));
    const verify = earlier.verify.map((check) => revive(check, source));
    const invalid = resources
      .filter(isTainted)
      .find(({ kind, body }) => !STANDARD_KINDS.get(kind)?.resolved.check(body));
    if (invalid !== undefined) throw invalidNow(earlier, invalid);
    const content: StoredContent = {
      resources: await inSlices(mapped(resources, maskResource)),
      removals: [],
      failures: [],
      adHoc: new Set(earlier.modules.filter((name) => !always.has(name))),
      secrets: Object.fromEntries(hashes),
      verify: verify.map(maskResource),
    };
    const encoded = await inSlices(encodeContent(content));
    return this.withManaged(db, row, {
      modules: [],
      names: earlier.modules,
      restores: restoresOf(to),
      notes: notesOf(earlier, { hashes, assignments: matching }),
      matching,
      assignments: [],
      resources,
      verify,
      content,
      encoded,
      isConfirmation: inputs.stateSha256 === encoded.sha256,
      valueInputs: [],
      warnings: [],
      facts: null,
    });
  }

  /** Adds the managed resources to a set, and removals of those that it does not contain. */
  private async withManaged(db: Queryable, agent: AgentRow, set: Unmanaged): Promise<DesiredSet> {
    const { resources, encoded } = set;
    const unmanaged = {
      ...set,
      wantedSha256: encoded.sha256,
      removals: [],
      removed: [],
      managed: [],
      removedByFacts: NO_FACT_REMOVALS,
    };
    if (set.isConfirmation) return unmanaged;
    // Holding the lane keeps every apply of the agent from ending during the read.
    const managed = await this.options.lanes.enter(agent.node_id, () => listAppliedResources(db, agent.node_id));
    const removed = await inSlices(noLongerDesired(managed, keyText, resources));
    if (removed.length === 0) return { ...unmanaged, managed };
    return { ...unmanaged, managed, removed, ...(await this.withRemovals(db, agent, set, removed)) };
  }

  /** Resolves the modules. Agents with the same modules and the same facts in them share the result, if it holds no secrets. */
  private async resolved(db: Queryable, request: Resolving): Promise<Resolved> {
    const { modules, facts, chosen, adHoc, isSecret } = request;
    if (isSecret) return this.resolve(db, request);
    const parts = await inSlices(
      mapped(modules, ({ name, sha256, facts: read }, at) =>
        JSON.stringify([name, sha256, adHoc.has(name), read.values(facts), chosen[at]]),
      ),
    );
    const key = parts.join();
    const known = this.shared.get(key);
    if (known !== undefined) return known;
    const made = await this.resolve(db, request);
    // Another request may have made the same one in the meantime.
    if (this.shared.get(key) === undefined) this.shared.set(key, made, made.encoded.json.length);
    return made;
  }

  private async resolve(db: Queryable, { modules, facts, values, adHoc, resolved }: Resolving): Promise<Resolved> {
    const { current } = this.options;
    const { resources, checks, warnings } = await resolveLocated(
      { modules, agent: facts, secret: resolved.source, values },
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
    { resources, content: desired }: Unmanaged,
    removed: readonly AppliedResourceRow[],
  ): Promise<Pick<DesiredSet, 'resources' | 'removals' | 'content' | 'encoded'>> {
    const { removals, failures, hashes } = await this.revive(db, agent, removed.map(removalOf));
    const rows = new Map(removed.map((row) => [keyText(row), row]));
    const listening = (all: readonly DesiredResource[]) =>
      withRemovalTriggers(all, removals, (removal) => {
        const row = rows.get(resourceKey(removal));
        return row === undefined ? [] : listenersOfRow(row);
      });
    const content = {
      ...desired,
      resources: listening(desired.resources),
      removals: await inSlices(mapped(removals, maskResource)),
      failures,
      secrets: { ...desired.secrets, ...Object.fromEntries(hashes) },
    };
    return { resources: listening(resources), removals, content, encoded: await inSlices(encodeContent(content)) };
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

/** Maximum number of removals that notes name. */
const NOTED_REMOVALS = 5;

function notesOfRemovals(removals: FactRemovals): readonly string[] {
  const named = [...removals].slice(0, NOTED_REMOVALS);
  const more = removals.size - named.length;
  return [
    ...named.map(([{ kind, identity }, change]) => `${kind} ${identity} goes because ${change}`),
    ...(more > 0 ? [`changed facts take ${more} more resources away`] : []),
  ];
}

/** Returns the remarks of an operator's interest. `hashes` are those of the present values. */
function notesOf(
  { label, notes, secrets }: EarlierContent,
  { hashes, assignments }: { readonly hashes: ResolvedSecrets['hashes']; readonly assignments: readonly string[] },
): readonly string[] {
  const changed = [...hashes].filter(([name, hash]) => secrets[name] !== undefined && secrets[name] !== hash);
  const names = changed.map(([name]) => name);
  const many = assignments.length > 1;
  return [
    ...notes,
    ...(names.length === 0
      ? []
      : [
          names.length === 1
            ? `the present value of ${names[0]} differs from that of ${label}`
            : `the present values of ${names.join(', ')} differ from those of ${label}`,
        ]),
    ...(assignments.length === 0
      ? []
      : [
          `${many ? 'assignments' : 'assignment'} ${assignments.join(', ')} ${many ? 'match' : 'matches'} this agent: the next apply without --to brings the assigned modules back`,
        ]),
  ];
}

/** Says that a resource does not accept the present value of a secret. */
const invalidNow = ({ label }: EarlierContent, { kind, identity, taint = {} }: DesiredResource): Fault =>
  new Fault(
    'expression_error',
    `${kind} ${identity} of ${label} does not accept the present value of a secret in ${Object.keys(taint).join(', ')} (it is not shown)`,
    { hint: `correct the secret: ${secretsIn({ taint }).join(', ')}` },
  );

const secretGone = ({ label }: EarlierContent, refusal: string): Fault =>
  new Fault('secret_unavailable', `${refusal}, and ${label} needs it`, {
    hint: 'create the secret or change its restriction, or apply modules instead: orch secrets list',
  });

function* valuesOfModules(modules: readonly CurrentModule[], given: GivenValues): Steps<readonly ModuleValues[]> {
  const chosen: ModuleValues[] = [];
  for (const { compiled } of modules) chosen.push(yield* valueSteps(compiled, given));
  return chosen;
}

/** Returns the names of the secrets in the values of a module's inputs. */
const secretsInValues = (values: ModuleValues | undefined): readonly string[] => secretsInValue(values?.inputs ?? {});

export const factsOf = ({ node_id, name, attributes }: AgentRow, tags: Tags): AgentFacts => ({
  node_id,
  name: name ?? '',
  attributes,
  tags,
});
