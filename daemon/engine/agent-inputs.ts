/** Reads agents with everything that their desired sets depend on, except secrets: one statement, however many agents. */
import { chunks } from '../database/batches.js';
import { preparedQuery } from '../database/prepared-query.js';
import type { Queryable, Row } from '../database/schema.js';
import { storedJson } from '../database/stored-json.js';
import { type AgentRow, agentOf } from '../fleet/agent-store.js';
import type { Tags } from '../fleet/tag-store.js';
import { ASSIGNMENTS_REVISION } from './assignments/assignment-store.js';
import { MODULES_REVISION } from './modules/module-store.js';
import { VALUES_REVISION } from './values/value-store.js';

export interface AgentInputs {
  readonly row: AgentRow;
  /** Sorted by key. */
  readonly tags: Tags;
  /** Revisions of all assignments, of all modules and of all value sets; null before their first change. */
  readonly assignments: string | null;
  readonly modules: string | null;
  readonly values: string | null;
  /** Hash of the content that the believed state equals; null for none. */
  readonly stateSha256: string | null;
  /** True if the newest drift check with a result found drift; an apply may have repaired it since. */
  readonly foundDrifted: boolean;
  /** True if a module that came with its last apply is not published. */
  readonly isOnTrial: boolean;
  /** Inputs that the one-off values of its last apply set; none for stored values alone. */
  readonly valueInputs: readonly string[];
}

/** Agents read at a time. */
const PAGE = 200;

/** Returns the agents with these node IDs, in no particular order. */
export async function readAgentInputs(db: Queryable, nodeIds: readonly string[]): Promise<readonly AgentInputs[]> {
  const [only] = nodeIds;
  if (nodeIds.length === 1 && only !== undefined) return inputsOf(await inputsById(db, only));
  const agents: AgentInputs[] = [];
  for (const part of chunks(nodeIds, PAGE)) {
    agents.push(...inputsOf(await selectInputs(db).where('agents.node_id', 'in', part).execute()));
  }
  return agents;
}

const inputsById = preparedQuery((db, nodeId: string) => selectInputs(db).where('agents.node_id', '=', nodeId));

/** Selects a row for each tag of an agent, and one for an agent without tags. */
const selectInputs = (db: Queryable) =>
  db
    .selectFrom('agents')
    .leftJoin('agent_tags', 'agent_tags.node_id', 'agents.node_id')
    .selectAll('agents')
    .select(['agent_tags.key as tag_key', 'agent_tags.value as tag_value'])
    .select((of) => [
      of.selectFrom('meta').select('value').where('key', '=', ASSIGNMENTS_REVISION).as('assignments'),
      of.selectFrom('meta').select('value').where('key', '=', MODULES_REVISION).as('modules'),
      of.selectFrom('meta').select('value').where('key', '=', VALUES_REVISION).as('values'),
      of
        .selectFrom('run_contents')
        .select('sha256')
        .whereRef('content_id', '=', 'agents.state_content_id')
        .as('state_sha256'),
      of
        .selectFrom('drift_records')
        .select('drift_records.status')
        .whereRef('drift_records.node_id', '=', 'agents.node_id')
        .whereRef('drift_id', '>=', 'agents.created_id')
        .where('drift_records.status', 'in', ['drifted', 'in_sync'])
        .orderBy('drift_id', 'desc')
        .limit(1)
        .as('drift_status'),
      of
        .selectFrom('operation_sources')
        .select('operation_sources.name')
        .whereRef('operation_sources.operation_id', '=', 'agents.trial_operation_id')
        .where('operation_sources.status', '=', 'on_trial')
        .limit(1)
        .as('tried'),
      of
        .selectFrom('operations')
        .select('value_inputs_json')
        .whereRef('operations.operation_id', '=', 'agents.state_operation_id')
        .as('value_inputs'),
    ])
    .orderBy('agent_tags.key');

interface InputRow extends Row<'agents'> {
  /** Null for an agent without tags. */
  readonly tag_key: string | null;
  readonly tag_value: string | null;
  readonly assignments: string | null;
  readonly modules: string | null;
  readonly values: string | null;
  readonly state_sha256: string | null;
  readonly drift_status: string | null;
  /** Name of a module on trial; null for none. */
  readonly tried: string | null;
  /** JSON of the inputs that one-off values set; null for none. */
  readonly value_inputs: string | null;
}

function inputsOf(rows: readonly InputRow[]): readonly AgentInputs[] {
  const agents = new Map<string, AgentInputs & { readonly tags: Record<string, string> }>();
  for (const { tag_key, tag_value, assignments, modules, values, ...facts } of rows) {
    const { state_sha256, drift_status, tried, value_inputs, ...row } = facts;
    const known = agents.get(row.node_id);
    const agent = known ?? {
      row: agentOf(row),
      tags: Object.create(null),
      assignments,
      modules,
      values,
      stateSha256: state_sha256,
      foundDrifted: drift_status === 'drifted',
      isOnTrial: tried !== null,
      valueInputs: value_inputs === null ? [] : storedJson<readonly string[]>(value_inputs),
    };
    if (known === undefined) agents.set(row.node_id, agent);
    if (tag_key !== null && tag_value !== null) agent.tags[tag_key] = tag_value;
  }
  return [...agents.values()];
}
