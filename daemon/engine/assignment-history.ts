/** Reads from the audit log how assignments and the tags of an agent have changed. */
import { toTimestamp } from '../../src/kernel/clock.js';
import { type AuditRow, listAuditRows } from '../core/audit-store.js';
import type { Queryable } from '../database/schema.js';
import { findAgent } from '../fleet/agent-store.js';
import type { AssignmentChange, AssignmentContent, AssignmentHistory, TagChange } from './assignment-cause.js';
import type { CurrentAssignments } from './current-assignments.js';

/** Events of a kind that are looked through. */
const EVENTS = 200;

export interface HistoryOptions {
  readonly nodeId: string;
  readonly assignments: CurrentAssignments;
  /** Unix milliseconds. */
  readonly since: number;
}

export async function assignmentHistory(
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
