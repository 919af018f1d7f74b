/** Collects from the store what explains removals. */
import { toTimestamp } from '../../../src/kernel/clock.js';
import type { AgentLabels } from '../../../src/language/clause.js';
import { hasExpression } from '../../../src/language/expression.js';
import type { ModuleDefinition } from '../../../src/language/schema.js';
import { matches, type Selector } from '../../../src/language/selector.js';
import { CATALOGUE } from '../../../src/resources/catalogue.js';
import { findOperator } from '../../auth/operator-store.js';
import { type AuditRow, listAuditRows } from '../../core/audit-store.js';
import type { Queryable } from '../../database/schema.js';
import { findAgent } from '../../fleet/agent-store.js';
import type { CurrentModule } from '../modules/current-modules.js';
import { findModuleHeads } from '../modules/module-store.js';
import type { CurrentAssignment, CurrentAssignments } from './assignment-store.js';

interface CausesInput {
  readonly nodeId: string;
  readonly removals: readonly RemovedResource[];
  /** The modules of the apply. */
  readonly modules: readonly CurrentModule[];
  readonly assignments: CurrentAssignments;
}

/** Deletions of modules that are looked through for the right one. */
const DELETIONS = 200;

/** One cause for each removal, in their order. */
export async function removalCauses(db: Queryable, input: CausesInput): Promise<readonly string[]> {
  const { nodeId, removals } = input;
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
  const history = await assignmentHistory(db, { nodeId, assignments: input.assignments, since });
  return removals.map((removal) => {
    const { module, applied_at } = removal;
    const known = facts.get(module) ?? { state: 'not_named', cause: assignmentCause(module, applied_at, history) };
    const changed = tagChange !== undefined && tagChange.timestamp >= removal.applied_at;
    return removalCause(removal, known, changed ? deedOf(tagChange) : null);
  });
}

/** Null for a module that is there and not part of the apply. */
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
    const who = (await findOperator(db, uploaded_by))?.username ?? uploaded_by;
    const uploaded = { who, when: toTimestamp(uploaded_at) };
    return { state: 'named', revision, uploaded, uploadedAt: uploaded_at, definition };
  }
  if ((await findModuleHeads(db, [module])).length > 0) return null;
  const deletions = await listAuditRows(db, { eventTypes: ['module.deleted'], from: since, limit: DELETIONS });
  const deletion = deletions.find((row) => row.target_id === module);
  return { state: 'deleted', deed: deletion === undefined ? null : deedOf(deletion) };
}

const deedOf = (row: AuditRow): Deed => ({ who: row.actor_name, when: toTimestamp(row.timestamp) });

/** What somebody did, and when, in words. */
interface Deed {
  readonly who: string;
  /** RFC 3339. */
  readonly when: string;
}

/** What the store tells about the module of a removal. */
type ModuleFacts =
  /** It is not in the store any more. */
  | { readonly state: 'deleted'; readonly deed: Deed | null }
  /** It is there and not part of this apply; why no assignment brings it any more, as far as that is known. */
  | { readonly state: 'not_named'; readonly cause: string | null }
  | {
      readonly state: 'named';
      readonly revision: number;
      readonly uploaded: Deed;
      /** Unix milliseconds. */
      readonly uploadedAt: number;
      readonly definition: ModuleDefinition;
    };

interface RemovedResource {
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
  readonly id: string | null;
  /** The apply that last put it there. */
  readonly operation_id: string;
  readonly applied_at: number;
  /** 1 when its module was only named in a request. */
  readonly ad_hoc: number;
}

/** One clause for a message. `tagChange` is the last change of the agent's tags since the resource was applied. */
function removalCause(resource: RemovedResource, facts: ModuleFacts, tagChange: Deed | null): string {
  const { module } = resource;
  switch (facts.state) {
    case 'deleted':
      return `module ${module} was deleted${by(facts.deed)}`;
    case 'not_named':
      return resource.ad_hoc === 1
        ? `module ${module} was only named in operation ${resource.operation_id}`
        : (facts.cause ?? `no assignment names module ${module} for this agent any more`);
    case 'named':
      return causeWithinModule(resource, facts, tagChange);
  }
}

function causeWithinModule(
  resource: RemovedResource,
  { revision, uploaded, uploadedAt, definition }: Extract<ModuleFacts, { state: 'named' }>,
  tagChange: Deed | null,
): string {
  const { module } = resource;
  const declared = declarationOf(resource, definition);
  if (declared === 'none' || (declared === 'perhaps' && uploadedAt > resource.applied_at)) {
    return `revision ${revision} of module ${module}, uploaded${by(uploaded)}, does not declare it`;
  }
  if (tagChange !== null) return `the tags of the agent were changed${by(tagChange)}`;
  return declared === 'literal'
    ? `no variant of it in module ${module} matches the agent any more`
    : `an attribute of the agent that module ${module} uses has changed`;
}

const by = (deed: Deed | null): string => (deed === null ? '' : ` by ${deed.who} at ${deed.when}`);

/** Whether a definition declares a resource: under this very identity, perhaps under one with expressions, or not. */
function declarationOf(
  { kind, identity, id }: RemovedResource,
  definition: ModuleDefinition,
): 'literal' | 'perhaps' | 'none' {
  let found: 'perhaps' | 'none' = 'none';
  for (const entry of definition.resources ?? []) {
    const choices = entry.resource ? [entry.resource] : (entry.variants ?? []).map((variant) => variant.resource);
    for (const [name, body] of choices.flatMap((choice) => Object.entries(choice))) {
      const candidate = CATALOGUE.get(name);
      if (candidate === undefined || candidate.family !== CATALOGUE.get(kind)?.family) continue;
      const written = candidate.identity(body, entry.id ?? null);
      if (written === identity || (id !== null && entry.id === id)) return 'literal';
      if (hasExpression(written)) found = 'perhaps';
    }
  }
  return found;
}

/** What an assignment was before or after a change. */
interface AssignmentContent {
  readonly modules: readonly string[];
  readonly selector: string;
}

interface AssignmentChange {
  readonly name: string;
  /** Unix milliseconds. */
  readonly at: number;
  readonly deed: Deed;
  readonly before: AssignmentContent;
  /** Null when it was deleted. */
  readonly after: AssignmentContent | null;
}

interface TagChange {
  /** Unix milliseconds. */
  readonly at: number;
  readonly deed: Deed;
  readonly before: AgentLabels['tags'];
  readonly after: AgentLabels['tags'];
}

interface AssignmentHistory {
  /** Those of now. */
  readonly assignments: readonly CurrentAssignment[];
  /** Newest first. */
  readonly changes: readonly AssignmentChange[];
  /** Of the agent, newest first. */
  readonly tagChanges: readonly TagChange[];
  /** Of the agent, as they are now. */
  readonly attributes: AgentLabels['attributes'];
}

/** One clause for a message, or null when the history does not tell. `since` is when the resource was applied. */
function assignmentCause(module: string, since: number, history: AssignmentHistory): string | null {
  return (
    causeOfChange(
      module,
      history.changes.filter(({ at }) => at >= since),
    ) ?? causeOfTags(module, since, history)
  );
}

/** The newest change that took the module away from somebody. */
function causeOfChange(module: string, changes: readonly AssignmentChange[]): string | null {
  for (const { name, deed, before, after } of changes) {
    if (!before.modules.includes(module)) continue;
    const by = `by ${deed.who} at ${deed.when}`;
    if (after === null) return `assignment ${name} was deleted ${by}`;
    if (!after.modules.includes(module)) return `module ${module} was taken out of assignment ${name} ${by}`;
    if (after.selector !== before.selector) {
      return `the selector of assignment ${name} was changed from "${before.selector}" to "${after.selector}" ${by}`;
    }
  }
  return null;
}

/** The newest change of tags after which an assignment of the module did not match any more. */
function causeOfTags(module: string, since: number, history: AssignmentHistory): string | null {
  const { attributes, tagChanges, assignments } = history;
  for (const { name, selector, modules } of assignments) {
    if (!modules.includes(module)) continue;
    const change = tagChanges.find(
      ({ at, before, after }) =>
        at >= since &&
        matches(selector, { attributes, tags: before }) &&
        !matches(selector, { attributes, tags: after }),
    );
    if (change === undefined) continue;
    const { deed } = change;
    return `assignment ${name} (${selector.text}) does not match any more: ${tagsThatChanged(selector, change)} by ${deed.who} at ${deed.when}`;
  }
  return null;
}

/** `tag role=web was removed`, of the tags that the selector asks for. */
function tagsThatChanged({ terms }: Selector, { before, after }: TagChange): string {
  const keys = [...new Set(terms.map(({ key }) => key))].filter((key) => key.startsWith('tag.'));
  const told = keys.map((key) => key.slice('tag.'.length)).flatMap((key) => changeOf(key, before[key], after[key]));
  return told.length === 0 ? 'the tags were changed' : told.join(' and ');
}

function changeOf(key: string, before: string | undefined, after: string | undefined): readonly string[] {
  if (before === after) return [];
  if (before === undefined) return [`tag ${shown(key, after ?? '')} was set`];
  if (after === undefined) return [`tag ${shown(key, before)} was removed`];
  return [`tag ${key} was changed from "${before}" to "${after}"`];
}

const shown = (key: string, value: string): string => (value === '' ? key : `${key}=${value}`);

/** Events of a kind that are looked through. */
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
    attributes: agent === null ? {} : JSON.parse(agent.attributes_json),
  };
}

function assignmentChange(row: AuditRow): readonly AssignmentChange[] {
  const { before, after = null }: { before?: AssignmentContent; after?: AssignmentContent | null } = JSON.parse(
    row.metadata_json,
  );
  return before === undefined ? [] : [{ name: row.target_id, ...placeOf(row), before, after }];
}

function tagChange(row: AuditRow): readonly TagChange[] {
  const { before, after }: Partial<Pick<TagChange, 'before' | 'after'>> = JSON.parse(row.metadata_json);
  return before === undefined || after === undefined ? [] : [{ ...placeOf(row), before, after }];
}

const placeOf = (row: AuditRow) => ({
  at: row.timestamp,
  deed: { who: row.actor_name, when: toTimestamp(row.timestamp) },
});
