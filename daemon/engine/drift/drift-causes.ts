/** Names what ran on a machine when a drifted file was changed. It is likely to be the cause, and nothing more. */
import type { DriftResource, LikelyCause } from '../../../src/contract/runs.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import type { Queryable } from '../../database/schema.js';

interface CausesQuery {
  readonly nodeId: string;
  /** Apply that the check compared with. */
  readonly appliedBy: string;
  /** The check. IDs rise, so an apply with a higher one began after it. */
  readonly driftId: string;
  /** End of the check in Unix seconds. */
  readonly until: number;
}

/** Seconds by which times of the machine may differ from those of the orchestrator, after its clock was measured. */
const TOLERANCE = 5;

/** Maximum number of sessions and of applies that are compared with the changes. */
const CANDIDATES = 500;

/**
 * Adds the likely causes of the changes whose time is known. The last apply left the file as it should be, and the check found it
 * changed. A time outside of that span comes from a clock that was moved, and is dropped.
 */
export async function likelyCauses(
  db: Queryable,
  { nodeId, appliedBy, driftId, until }: CausesQuery,
  given: DriftResource[],
): Promise<DriftResource[]> {
  if (given.every(({ changed_at }) => changed_at == null)) return given;
  const applied = await db
    .selectFrom('operations')
    .select('finished_at')
    .where('operation_id', '=', appliedBy)
    .executeTakeFirst();
  const since = applied?.finished_at == null ? null : toSeconds(applied.finished_at) - TOLERANCE;
  const resources = given.map(({ changed_at, ...resource }): DriftResource => {
    const isPossible = changed_at != null && since !== null && changed_at >= since && changed_at <= until + TOLERANCE;
    return isPossible ? { ...resource, changed_at } : resource;
  });
  const times = resources.flatMap(({ changed_at }) => changed_at ?? []);
  if (times.length === 0) return resources;
  const span = {
    from: times.reduce((first, time) => Math.min(first, time)) - TOLERANCE,
    to: times.reduce((last, time) => Math.max(last, time)) + TOLERANCE,
  };
  const candidates = [
    ...(await sessionsIn(db, nodeId, span)),
    ...(await appliesIn(db, { nodeId, appliedBy, driftId }, span)),
  ];
  return resources.map((resource) => {
    const { changed_at: at } = resource;
    if (at == null) return resource;
    const causes = candidates
      .filter(({ started_at, ended_at }) => started_at - TOLERANCE <= at && at <= (ended_at ?? at) + TOLERANCE)
      .sort((a, b) => b.started_at - a.started_at)
      .map(
        ({ isRecorded, ...cause }): LikelyCause => ({
          ...cause,
          offset_secs: isRecorded ? Math.max(0, at - cause.started_at - TOLERANCE) : null,
        }),
      );
    return causes.length === 0 ? resource : { ...resource, likely_causes: causes };
  });
}

type Candidate = Omit<LikelyCause, 'offset_secs'> & { readonly isRecorded: boolean };

/** A span in Unix seconds. */
interface Span {
  readonly from: number;
  readonly to: number;
}

async function sessionsIn(db: Queryable, nodeId: string, { from, to }: Span): Promise<readonly Candidate[]> {
  const rows = await db
    .selectFrom('terminal_sessions')
    .select(['session_id', 'kind', 'operator', 'opened_at', 'closed_at', 'recording'])
    .where('node_id', '=', nodeId)
    .where('opened_at', '<=', to * 1000)
    .where((is) => is.or([is('closed_at', 'is', null), is('closed_at', '>=', from * 1000)]))
    .orderBy('session_id', 'desc')
    .limit(CANDIDATES)
    .execute();
  return rows.map(({ session_id, kind, operator, opened_at, closed_at, recording }) => ({
    kind: kind === 'shell' ? 'terminal' : 'command',
    id: session_id,
    by: operator,
    started_at: toSeconds(opened_at),
    ended_at: closed_at === null ? null : toSeconds(closed_at),
    isRecorded: !['off', 'failed', 'pruned'].includes(recording),
  }));
}

/**
 * Returns the applies in the span, without the one that the check compared with, which left everything as it should be, and without
 * those that began after the check, such as the one that repairs what it found.
 */
async function appliesIn(
  db: Queryable,
  { nodeId, appliedBy, driftId }: Omit<CausesQuery, 'until'>,
  { from, to }: Span,
): Promise<readonly Candidate[]> {
  const rows = await db
    .selectFrom('operations')
    .select(['operation_id', 'requested_by', 'started_at', 'finished_at'])
    .where('node_id', '=', nodeId)
    .where('operation_id', '>', appliedBy)
    .where('started_at', '<=', to * 1000)
    .where('operation_id', '<', driftId)
    .where((is) => is.or([is('finished_at', 'is', null), is('finished_at', '>=', from * 1000)]))
    .orderBy('operation_id', 'desc')
    .limit(CANDIDATES)
    .execute();
  return rows.map(({ operation_id, requested_by, started_at, finished_at }) => ({
    kind: 'apply',
    id: operation_id,
    by: requested_by,
    started_at: toSeconds(started_at),
    ended_at: finished_at === null ? null : toSeconds(finished_at),
    isRecorded: false,
  }));
}
