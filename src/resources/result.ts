/** The result of one resource in a plan, an apply or a drift check: the same shape on the link, in the store and in the API. */
import * as Type from 'typebox';
import { nullable } from '../kernel/schema.js';

const ACTIONS = ['none', 'create', 'update', 'remove', 'release', 'run', 'restart', 'reload'] as const;
const RESOURCE_STATUSES = ['unchanged', 'pending', 'changed', 'failed', 'skipped'] as const;

export const ErrorSchema = Type.Object(
  { code: Type.String({ maxLength: 64 }), message: Type.String({ maxLength: 16384 }) },
  { additionalProperties: false },
);

export const FieldChangeSchema = Type.Object(
  { field: Type.String(), before: nullable(Type.String()), after: nullable(Type.String()) },
  { additionalProperties: false },
);

export const ResourceResultSchema = Type.Object(
  {
    module: Type.String(),
    kind: Type.String(),
    identity: Type.String(),
    id: nullable(Type.String()),
    name: nullable(Type.String()),
    action: Type.Enum(ACTIONS),
    status: Type.Enum(RESOURCE_STATUSES),
    changes: Type.Array(FieldChangeSchema),
    /** Unified diff of text content; at most `MAX_DIFF_CHARACTERS`. */
    diff: nullable(Type.String()),
    /** True when the resource holds a secret; every secret in `changes` and `diff` is masked. */
    sensitive: Type.Boolean(),
    reason: nullable(Type.String()),
    error: nullable(ErrorSchema),
    duration_ms: Type.Integer({ minimum: 0 }),
  },
  { additionalProperties: false },
);

export type ResourceResult = Type.Static<typeof ResourceResultSchema>;

/** The output of a script, with secrets masked. */
export const OutputSchema = Type.Object(
  {
    stdout: Type.String(),
    stderr: Type.String(),
    /** Null when the script did not end by itself. */
    exit_code: nullable(Type.Integer()),
    /** True when the middle of a stream was dropped. */
    truncated: Type.Boolean(),
  },
  { additionalProperties: false },
);
export type Output = Type.Static<typeof OutputSchema>;

export const SummarySchema = Type.Object(
  {
    total: Type.Integer(),
    unchanged: Type.Integer(),
    pending: Type.Integer(),
    changed: Type.Integer(),
    failed: Type.Integer(),
    skipped: Type.Integer(),
    /** Number of removals among `changed` (in a plan: among `pending`). */
    removed: Type.Integer(),
  },
  { additionalProperties: false },
);

export type Summary = Type.Static<typeof SummarySchema>;

/** Maximum characters of a diff; a longer one is cut, with a last line that says so. */
export const MAX_DIFF_CHARACTERS = 64 * 1024;

/** Maximum characters of all diffs of a run; further diffs are omitted. */
export const MAX_RUN_DIFF_CHARACTERS = 32 * 1024 * 1024;

/** Counts results by status. */
export function summarize(results: readonly Pick<ResourceResult, 'status' | 'action'>[]): Summary {
  const summary = { total: results.length, unchanged: 0, pending: 0, changed: 0, failed: 0, skipped: 0, removed: 0 };
  for (const { status, action } of results) {
    summary[status] += 1;
    if (action === 'remove' && (status === 'changed' || status === 'pending')) summary.removed += 1;
  }
  return summary;
}
