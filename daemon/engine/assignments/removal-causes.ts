/** Explains from the store and the audit log why an apply removes resources. */
import { toTimestamp } from '../../../src/kernel/clock.js';
import { fewOf } from '../../../src/kernel/few-of.js';
import type { AgentLabels } from '../../../src/language/clause.js';
import { choicesOf, membersOf } from '../../../src/language/compile-module.js';
import { hasExpression } from '../../../src/language/expression.js';
import type { ModuleDefinition } from '../../../src/language/schema.js';
import { matches, type Selector } from '../../../src/language/selector.js';
import { isAbsence } from '../../../src/resources/absence-name.js';
import { CATALOGUE } from '../../../src/resources/catalogue.js';
import { findOperator } from '../../auth/operator-store.js';
import { type AuditRow, listAuditRows, metadataOf } from '../../core/audit-store.js';
import type { Queryable } from '../../database/schema.js';
import { findAgent } from '../../fleet/agent-store.js';
import type { CurrentModule } from '../modules/current-modules.js';
import { findModuleHeads } from '../modules/module-store.js';
import type { AgentWithInputs } from '../runs/agent-gate.js';
import { valueEvents } from '../values/value-changes.js';
import type { CurrentAssignment, CurrentAssignments } from './assignment-store.js';

interface CausesInput {
  readonly agent: AgentWithInputs;
  readonly removals: readonly RemovedResource[];
  /** Modules of the apply. */
  readonly modules: readonly CurrentModule[];
  /** Inputs that one-off values of the apply set. */
  readonly valueInputs: readonly string[];
  readonly assignments: CurrentAssignments;
}

/** Maximum number of module deletions searched for the cause of a removal. */
const DELETIONS = 200;

/** Returns one cause for each removal, in their order. */
export async function removalCauses(db: Queryable, input: CausesInput): Promise<readonly string[]> {
  const { agent, removals } = input;
  const { nodeId } = agent;
  if (removals.length === 0) return [];
  const since = removals.reduce((first, { applied_at }) => Math.min(first, applied_at), Number.POSITIVE_INFINITY);
  const facts = new Map<string, ModuleFacts>();
  for (const module of new Set(removals.map((removal) => removal.module))) {
    const known = await moduleFacts(db, { module, since, modules: input.modules });
    if (known !== null) facts.set(module, known);
  }
  const [tagChange] = await listAuditRows(db, {
    eventTypes: ['agent.tags_changed'],
    agents: [nodeId],
    from: since,
    limit: 1,
  });
  const changes = (await valueEvents(db, { from: since })).filter(
    ({ event_type: type }) => type !== 'assignment.created' && type !== 'assignment.deleted',
  );
  const history = await assignmentHistory(db, { nodeId, assignments: input.assignments, since });
  return removals.map((removal) => {
    const { module, applied_at } = removal;
    const known = facts.get(module) ?? { state: 'not_named', cause: assignmentCause(module, applied_at, history) };
    const newest = [...(tagChange === undefined ? [] : [tagChange]), ...changes]
      .filter(({ timestamp, target_type: type }) => timestamp >= applied_at && (type === 'agent' || usesInputs(known)))
      .sort((a, b) => b.timestamp - a.timestamp)[0];
    const own = usesInputs(known) ? ownValuesCause(module, input) : null;
    return removalCause(removal, known, own ?? (newest === undefined ? null : labelChange(newest)));
  });
}

/** Returns null for a module that is stored but not part of the apply. */
async function moduleFacts(
  db: Queryable,
  {
    module,
    since,
    modules,
  }: { readonly module: string; readonly since: number; readonly modules: readonly CurrentModule[] },
): Promise<ModuleFacts | null> {
  const named = modules.find(({ name }) => name === module);
  if (named?.stored) {
    const { revision, uploaded_at, uploaded_by } = named.stored;
    const { definition } = named;
    const actor = (await findOperator(db, uploaded_by))?.username ?? uploaded_by;
    const uploaded = { actor, time: toTimestamp(uploaded_at) };
    return { state: 'named', revision, uploaded, uploadedAt: uploaded_at, definition };
  }
  if ((await findModuleHeads(db, [module])).length > 0) return null;
  const deletions = await listAuditRows(db, { eventTypes: ['module.deleted'], from: since, limit: DELETIONS });
  const deletion = deletions.find((row) => row.target_id === module);
  return { state: 'deleted', deletion: deletion === undefined ? null : stampOf(deletion) };
}

/** Says that this apply or the last one has values of its own for the module, as a clause; null for neither. */
function ownValuesCause(module: string, { agent, valueInputs }: CausesInput): string | null {
  const ofModule = (name: string) => name.startsWith(`${module}.`) || name.startsWith('shared.');
  const now = valueInputs.filter(ofModule);
  if (now.length > 0) return `this apply has values of its own for ${fewOf(now)}`;
  const before = agent.inputs.valueInputs.filter(ofModule);
  const operation = agent.row.state_operation_id;
  return before.length === 0 ? null : `operation ${operation} had values of its own for ${fewOf(before)}`;
}

const usesInputs = (facts: ModuleFacts): boolean =>
  facts.state === 'named' && Object.keys(facts.definition.inputs ?? {}).length > 0;

/** Says what has changed of what the agent's resources depend on, as a clause. */
function labelChange(row: AuditRow): string {
  const doer = by(stampOf(row));
  if (row.target_type === 'agent') return `the tags of the agent were changed${doer}`;
  if (row.target_type === 'assignment') return `the values of assignment ${row.target_id} were changed${doer}`;
  return `the value set ${row.target_id} was ${row.event_type === 'values.deleted' ? 'deleted' : 'changed'}${doer}`;
}

const stampOf = (row: AuditRow): ChangeStamp => ({ actor: row.actor_name, time: toTimestamp(row.timestamp) });

/** Actor and time of a change, for messages. */
interface ChangeStamp {
  readonly actor: string;
  /** RFC 3339. */
  readonly time: string;
}

/** State of the module of a removal. */
type ModuleFacts =
  /** The module is no longer stored. */
  | { readonly state: 'deleted'; readonly deletion: ChangeStamp | null }
  /** The module is stored but not part of this apply. `cause` says why no assignment names it now, if known. */
  | { readonly state: 'not_named'; readonly cause: string | null }
  | {
      readonly state: 'named';
      readonly revision: number;
      readonly uploaded: ChangeStamp;
      /** Unix milliseconds. */
      readonly uploadedAt: number;
      readonly definition: ModuleDefinition;
    };

interface RemovedResource {
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
  readonly id: string | null;
  /** ID of the apply that last put it there. */
  readonly operation_id: string;
  /** Unix milliseconds. */
  readonly applied_at: number;
  /** 1 when the module was only named in a request, else 0. */
  readonly ad_hoc: number;
}

/**
 * Returns one clause for a message.
 * @param change clause about the last change of the agent's tags or values since the resource was applied; null for none
 */
function removalCause(resource: RemovedResource, facts: ModuleFacts, change: string | null): string {
  const { module } = resource;
  switch (facts.state) {
    case 'deleted':
      return `module ${module} was deleted${by(facts.deletion)}`;
    case 'not_named':
      return resource.ad_hoc === 1
        ? `module ${module} was only named in operation ${resource.operation_id}`
        : (facts.cause ?? `no assignment names module ${module} for this agent now`);
    case 'named':
      return causeWithinModule(resource, facts, change);
  }
}

function causeWithinModule(
  resource: RemovedResource,
  { revision, uploaded, uploadedAt, definition }: Extract<ModuleFacts, { state: 'named' }>,
  change: string | null,
): string {
  const { module } = resource;
  const declared = declarationOf(resource, definition);
  if (declared === 'absent') return `module ${module} declares that it is absent`;
  if (declared === 'both') return `variants of module ${module} declare that it is there, and that it is absent`;
  if (declared === 'none' || (declared === 'perhaps' && uploadedAt > resource.applied_at)) {
    return `revision ${revision} of module ${module}, uploaded${by(uploaded)}, does not declare it`;
  }
  if (declared === 'conditional' && uploadedAt > resource.applied_at) {
    return `revision ${revision} of module ${module}, uploaded${by(uploaded)}, does not give it to the agent`;
  }
  if (change !== null) return change;
  if (declared === 'conditional') return `its condition or loop in module ${module} does not give it to the agent now`;
  return declared === 'literal'
    ? `no variant of it in module ${module} matches the agent now`
    : `a value that module ${module} uses has changed for the agent`;
}

const by = (stamp: ChangeStamp | null): string => (stamp === null ? '' : ` by ${stamp.actor} at ${stamp.time}`);

/**
 * Returns `literal` if the definition declares this identity or ID, or `conditional` if a condition or a loop decides about it,
 * and `absent` if it declares that this is not there, or `both` if that differs between the variants of an entry.
 * Returns `perhaps` if only an identity with expressions could match, else `none`.
 */
function declarationOf(
  { kind, identity, id }: RemovedResource,
  definition: ModuleDefinition,
): 'literal' | 'conditional' | 'absent' | 'both' | 'perhaps' | 'none' {
  let found: 'perhaps' | 'none' = 'none';
  for (const { entry, group } of membersOf(definition)) {
    const isDecided = [entry, group].some((one) => one?.if !== undefined || one?.for_each !== undefined);
    let [isThere, isAbsent] = [false, false];
    for (const [name, body] of choicesOf(entry).flatMap(({ choice }) => Object.entries(choice))) {
      const candidate = CATALOGUE.get(name);
      if (candidate === undefined || candidate.family !== CATALOGUE.get(kind)?.family) continue;
      const written = candidate.identity(body, entry.id ?? null);
      if (isAbsence(name) !== isAbsence(kind)) isAbsent ||= isAbsence(name) && written === identity;
      else if (written === identity || (id !== null && idWithoutKey(id) === entry.id)) isThere = true;
      else if (hasExpression(written)) found = 'perhaps';
    }
    if (isAbsent) return isThere ? 'both' : 'absent';
    if (isThere) return isDecided ? 'conditional' : 'literal';
  }
  return found;
}

/** Returns the id of a resource without the key of the element of a loop, which the id of an instance has. */
const idWithoutKey = (id: string): string => id.replace(/\[.*\]$/s, '');

/** Content of an assignment before or after a change. */
interface AssignmentContent {
  readonly modules: readonly string[];
  readonly selector: string;
}

interface AssignmentChange {
  readonly name: string;
  /** Unix milliseconds. */
  readonly at: number;
  readonly stamp: ChangeStamp;
  readonly before: AssignmentContent;
  /** Null when the assignment was deleted. */
  readonly after: AssignmentContent | null;
}

interface TagChange {
  /** Unix milliseconds. */
  readonly at: number;
  readonly stamp: ChangeStamp;
  readonly before: AgentLabels['tags'];
  readonly after: AgentLabels['tags'];
}

interface AssignmentHistory {
  /** The current assignments. */
  readonly assignments: readonly CurrentAssignment[];
  /** Changes of assignments, newest first. */
  readonly changes: readonly AssignmentChange[];
  /** Changes of the agent's tags, newest first. */
  readonly tagChanges: readonly TagChange[];
  readonly nodeId: string;
  /** Current attributes of the agent. */
  readonly attributes: AgentLabels['attributes'];
}

/**
 * Returns one clause for a message, or null without an explaining change. `since` is the time of application in Unix
 * milliseconds.
 */
function assignmentCause(module: string, since: number, history: AssignmentHistory): string | null {
  return (
    causeOfChange(
      module,
      history.changes.filter(({ at }) => at >= since),
    ) ?? causeOfTags(module, since, history)
  );
}

/** Returns the newest change of an assignment that dropped the module or changed the selector, as a clause; null if none. */
function causeOfChange(module: string, changes: readonly AssignmentChange[]): string | null {
  for (const { name, stamp, before, after } of changes) {
    if (!before.modules.includes(module)) continue;
    const by = `by ${stamp.actor} at ${stamp.time}`;
    if (after === null) return `assignment ${name} was deleted ${by}`;
    if (!after.modules.includes(module)) return `module ${module} was taken out of assignment ${name} ${by}`;
    if (after.selector !== before.selector) {
      return `the selector of assignment ${name} was changed from "${before.selector}" to "${after.selector}" ${by}`;
    }
  }
  return null;
}

/** Returns the newest tag change after which an assignment of the module no longer matched, as a clause; null if none. */
function causeOfTags(module: string, since: number, history: AssignmentHistory): string | null {
  const { attributes, nodeId, tagChanges, assignments } = history;
  for (const { name, selector, modules } of assignments) {
    if (!modules.includes(module)) continue;
    const change = tagChanges.find(
      ({ at, before, after }) =>
        at >= since &&
        matches(selector, { attributes, nodeId, tags: before }) &&
        !matches(selector, { attributes, nodeId, tags: after }),
    );
    if (change === undefined) continue;
    const { stamp } = change;
    return `assignment ${name} (${selector.text}) no longer matches: ${tagsThatChanged(selector, change)} by ${stamp.actor} at ${stamp.time}`;
  }
  return null;
}

/** Describes the changes of the tags that the selector uses, such as `tag role=web was removed`. */
function tagsThatChanged({ terms }: Selector, { before, after }: TagChange): string {
  const keys = [...new Set(terms.map(({ key }) => key))].filter((key) => key.startsWith('tag.'));
  const changes = keys.map((key) => key.slice('tag.'.length)).flatMap((key) => changeOf(key, before[key], after[key]));
  return changes.length === 0 ? 'the tags were changed' : changes.join(' and ');
}

function changeOf(key: string, before: string | undefined, after: string | undefined): readonly string[] {
  if (before === after) return [];
  if (before === undefined) return [`tag ${shown(key, after ?? '')} was set`];
  if (after === undefined) return [`tag ${shown(key, before)} was removed`];
  return [`tag ${key} was changed from "${before}" to "${after}"`];
}

const shown = (key: string, value: string): string => (value === '' ? key : `${key}=${value}`);

/** Maximum number of audit events searched per kind. */
const EVENTS = 200;

interface HistoryOptions {
  readonly nodeId: string;
  readonly assignments: CurrentAssignments;
  /** Unix milliseconds. */
  readonly since: number;
}

async function assignmentHistory(
  db: Queryable,
  { nodeId, assignments, since: from }: HistoryOptions,
): Promise<AssignmentHistory> {
  const eventTypes = ['assignment.updated', 'assignment.deleted'];
  const changes = await listAuditRows(db, { eventTypes, from, limit: EVENTS });
  const tags = await listAuditRows(db, { eventTypes: ['agent.tags_changed'], agents: [nodeId], from, limit: EVENTS });
  const agent = await findAgent(db, nodeId);
  return {
    assignments: await assignments.all(db),
    changes: changes.flatMap(assignmentChange),
    tagChanges: tags.flatMap(tagChange),
    nodeId,
    attributes: agent?.attributes ?? {},
  };
}

function assignmentChange(row: AuditRow): readonly AssignmentChange[] {
  const { before, after = null } = metadataOf<Partial<Pick<AssignmentChange, 'before' | 'after'>>>(row);
  return before === undefined ? [] : [{ name: row.target_id, ...placeOf(row), before, after }];
}

function tagChange(row: AuditRow): readonly TagChange[] {
  const { before, after } = metadataOf<Partial<Pick<TagChange, 'before' | 'after'>>>(row);
  return before === undefined || after === undefined ? [] : [{ ...placeOf(row), before, after }];
}

const placeOf = (row: AuditRow) => ({
  at: row.timestamp,
  stamp: { actor: row.actor_name, time: toTimestamp(row.timestamp) },
});
