/** Evaluates the standing of one agent: what its modules give against what was applied, and what the last drift check found. */
import type { Standing } from '../../../src/contract/standing-names.js';
import type { Trial } from '../../../src/contract/standings.js';
import { isFault } from '../../../src/kernel/fault.js';
import { fewOf } from '../../../src/kernel/few-of.js';
import { SizedCache } from '../../../src/kernel/sized-cache.js';
import type { Steps } from '../../../src/kernel/steps.js';
import type { AgentLabels } from '../../../src/language/clause.js';
import { keyText, resourceKey } from '../../../src/resources/resource-key.js';
import type { Core } from '../../core/core.js';
import type { Queryable } from '../../database/schema.js';
import type { AgentRow } from '../../fleet/agent-store.js';
import type { AgentInputs } from '../agent-inputs.js';
import type { DesiredSets } from '../applies/desired-set.js';
import { type CurrentAssignment, type CurrentAssignments, labelsOf } from '../assignments/assignment-store.js';
import { standingDrift } from '../drift/drift-excuses.js';
import { latestDriftState } from '../drift/drift-store.js';
import type { Lanes } from '../lanes.js';
import type { CurrentModules } from '../modules/current-modules.js';
import { findOperation } from '../operations/operation-store.js';
import type { RunContents, StoredContent } from '../runs/run-contents.js';
import { inSlices } from '../slices.js';
import {
  type AppliedResourceRow,
  comparableResource,
  comparableRow,
  listAppliedResources,
} from '../state/applied-resource-store.js';
import { hashesOf } from '../state/believed-state.js';
import { trialOf } from '../state/trials.js';

/** The standing of an agent at one moment, and what an apply would be about. */
export interface Evaluation {
  readonly standing: Standing;
  /** The differences, or why the modules cannot be resolved; null without any. */
  readonly reason: string | null;
  /** Hash of the content that an apply would send, without removals; null if the modules cannot be resolved. */
  readonly wantedSha256: string | null;
  /** Modules with a resource that differs. */
  readonly modules: readonly string[];
  /** Resources that the last drift check found to differ, as `kind identity`; empty unless the standing is `drifted`. */
  readonly drifted: readonly string[];
  readonly assignments: readonly CurrentAssignment[];
  /** Modules that the last apply named and no assignment gives: the next apply names them again, to keep them. */
  readonly named: readonly string[];
  readonly labels: AgentLabels;
  /** The agent's trial; null unless the standing is `on_trial`. */
  readonly trial: Trial | null;
  /** The last apply, if it brought values with it that the agent has now. */
  readonly ownValues: OwnValues | null;
}

interface OwnValues {
  readonly operationId: string;
  /** Names of the inputs. */
  readonly inputs: readonly string[];
}

interface EvaluatorOptions extends Pick<Core, 'clock'> {
  readonly desiredSets: DesiredSets;
  readonly assignments: CurrentAssignments;
  readonly current: CurrentModules;
  readonly contents: RunContents;
  readonly lanes: Lanes;
}

/** Number of comparisons that are kept. Agents with the same content before and after share one. */
const KEPT_COMPARISONS = 20_000;

export class Evaluator {
  private readonly options: EvaluatorOptions;
  private readonly compared = new SizedCache<string, readonly string[]>(KEPT_COMPARISONS);

  constructor(options: EvaluatorOptions) {
    this.options = options;
  }

  /** Must not be called in the agent's lane. */
  async evaluate(db: Queryable, inputs: AgentInputs): Promise<Evaluation> {
    const { desiredSets } = this.options;
    const { row: agent } = inputs;
    const labels = labelsOf(agent, inputs.tags);
    if (inputs.isOnTrial) {
      const evaluation = await this.onTrial(db, inputs, labels);
      // Null if the trial has ended since the agent was read.
      if (evaluation !== null) return evaluation;
    }
    const named = await this.namedBefore(db, inputs);
    const isApplied = agent.state_operation_id !== null;
    const ownValues = ownValuesOf(inputs);
    const base = { modules: [], drifted: [], named, labels, trial: null, wantedSha256: null, reason: null, ownValues };
    try {
      const wanted = await desiredSets.wanted(db, inputs, { named });
      const { assignments, encoded } = wanted;
      const known = { ...base, assignments, wantedSha256: encoded.sha256 };
      const given = wanted.modules.map(({ name }) => name);
      if (!isApplied) {
        if (given.length === 0) return { ...known, standing: 'unmanaged' };
        return { ...known, standing: 'never_applied', modules: given, reason: null };
      }
      const modules = wanted.isConfirmation ? [] : await this.differing(db, agent, wanted.content, encoded.sha256);
      if (modules.length > 0) {
        return { ...known, standing: 'behind', modules, reason: withOwnValues(differ(modules), ownValues) };
      }
      if (wanted.content.resources.length === 0 && given.length === 0) return { ...known, standing: 'unmanaged' };
      return { ...known, ...(await this.drift(db, inputs)) };
    } catch (error) {
      if (!isFault(error)) throw error;
      const assignments = await this.options.assignments.of(db, labels);
      return {
        ...base,
        assignments,
        standing: isApplied ? 'behind' : 'never_applied',
        reason: withOwnValues(shortened(error.message), ownValues),
      };
    }
  }

  /** Returns the evaluation of an agent on trial: it has what was tried, so the stored modules do not matter. */
  private async onTrial(db: Queryable, inputs: AgentInputs, labels: AgentLabels): Promise<Evaluation | null> {
    const trial = await trialOf(db, inputs.row.trial_operation_id);
    if (trial === null) return null;
    const assignments = await this.options.assignments.matching(db, inputs);
    const { standing, reason } = await this.drift(db, inputs);
    const names = differ(trial.modules.map(({ module }) => module));
    return {
      standing: 'on_trial',
      reason: withOwnValues(standing === 'drifted' ? `${names}; drifted: ${reason}` : names, ownValuesOf(inputs)),
      wantedSha256: null,
      modules: [],
      drifted: [],
      assignments,
      named: [],
      labels,
      trial,
      ownValues: ownValuesOf(inputs),
    };
  }

  private async drift(
    db: Queryable,
    { row: agent, foundDrifted }: AgentInputs,
  ): Promise<Pick<Evaluation, 'standing' | 'reason' | 'modules' | 'drifted'>> {
    const filter = { nodeId: agent.node_id, since: agent.created_id };
    const inSync = { standing: 'in_sync', reason: null, modules: [], drifted: [] } as const;
    if (!foundDrifted || (await latestDriftState(db, filter)) !== 'drifted') return inSync;
    const pending = await standingDrift(db, { ...filter, now: this.options.clock.now() });
    if (pending.length === 0) return inSync;
    const modules = [...new Set(pending.map(({ module }) => module))];
    const drifted = pending.map(({ kind, identity }) => `${kind} ${identity}`);
    return { standing: 'drifted', reason: differ(modules), modules, drifted };
  }

  /** Returns the modules that the last apply named, that no assignment gave and that still exist. */
  private async namedBefore(
    db: Queryable,
    { row: { state_operation_id, state_content_id }, modules }: AgentInputs,
  ): Promise<readonly string[]> {
    if (state_operation_id === null) return [];
    const contentId = state_content_id ?? (await findOperation(db, state_operation_id))?.content_id ?? null;
    if (contentId === null) return [];
    const { adHoc } = await this.options.contents.get(db, contentId);
    if (adHoc.size === 0) return [];
    return this.options.current.present(db, [...adHoc], modules);
  }

  /** Returns the modules whose resources differ between the believed state and the content. */
  private async differing(
    db: Queryable,
    { node_id, state_content_id, state_operation_id }: AgentRow,
    wanted: StoredContent,
    sha256: string,
  ): Promise<readonly string[]> {
    const { contents, lanes } = this.options;
    const before = state_content_id ?? `${node_id} ${state_operation_id}`;
    const key = `${before} ${sha256}`;
    const known = this.compared.get(key);
    if (known !== undefined) return known;
    const believed =
      state_content_id === null
        ? textsOfRows(await lanes.enter(node_id, () => listAppliedResources(db, node_id)))
        : textsOf(await contents.get(db, state_content_id));
    const modules = await inSlices(differingModules(await inSlices(believed), await inSlices(textsOf(wanted))));
    if (this.compared.get(key) === undefined) this.compared.set(key, modules, 1);
    return modules;
  }
}

function ownValuesOf({ row, valueInputs: inputs }: AgentInputs): OwnValues | null {
  const { state_operation_id: operationId } = row;
  return operationId === null || inputs.length === 0 ? null : { operationId, inputs };
}

const withOwnValues = (reason: string, own: OwnValues | null): string =>
  own === null
    ? reason
    : `${reason}; applied with values of its own: ${fewOf(own.inputs)}, operation ${own.operationId}`;

/** Resources by their keys, each as its module and a text that equals another one when nothing about the resource differs. */
type Texts = ReadonlyMap<string, { readonly module: string; readonly text: string }>;

function* textsOf({ resources, secrets }: StoredContent): Steps<Texts> {
  const texts = new Map<string, { module: string; text: string }>();
  for (const resource of resources) {
    const text = comparableResource(resource, hashesOf(resource, secrets));
    texts.set(resourceKey(resource), { module: resource.module, text });
    yield;
  }
  return texts;
}

function* textsOfRows(rows: readonly AppliedResourceRow[]): Steps<Texts> {
  const texts = new Map<string, { module: string; text: string }>();
  for (const row of rows) {
    texts.set(keyText(row), { module: row.module, text: comparableRow(row) });
    yield;
  }
  return texts;
}

function* differingModules(before: Texts, after: Texts): Steps<readonly string[]> {
  const modules = new Set<string>();
  for (const [key, { module, text }] of after) {
    const last = before.get(key);
    if (last?.text !== text) modules.add(module).add(last?.module ?? module);
    yield;
  }
  for (const [key, { module }] of before) {
    if (!after.has(key)) modules.add(module);
    yield;
  }
  return [...modules].sort();
}

/** Maximum number of modules that a reason names. */
const NAMED = 5;

function differ(modules: readonly string[]): string {
  const more = modules.length > NAMED ? ` and ${modules.length - NAMED} more` : '';
  return `${modules.length === 1 ? 'module' : 'modules'} ${modules.slice(0, NAMED).join(', ')}${more}`;
}

const shortened = (text: string): string => (text.length > 300 ? `${text.slice(0, 299)}…` : text);
