/** Collects from the store what explains removals. */
import { toTimestamp } from '../../src/kernel/clock.js';
import { findOperator } from '../auth/operator-store.js';
import { type AuditRow, listAuditRows } from '../core/audit-store.js';
import type { Queryable } from '../database/schema.js';
import { assignmentCause } from './assignment-cause.js';
import { assignmentHistory } from './assignment-history.js';
import type { CurrentAssignments } from './current-assignments.js';
import type { CurrentModule } from './current-modules.js';
import { findModuleHeads } from './module-store.js';
import { type Deed, type ModuleFacts, type RemovedResource, removalCause } from './removal-cause.js';

export interface CausesInput {
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
