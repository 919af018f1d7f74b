/** The result of one resource in a plan, an apply or a drift check: the same shape on the link, in the store and in the API. */
import * as Type from 'typebox';
import { nullable } from '../kernel/schema.js';

const ACTIONS = ['none', 'create', 'update', 'remove', 'release', 'run', 'restart', 'reload'] as const;
const RESOURCE_STATUSES = ['unchanged', 'pending', 'changed', 'failed', 'skipped'] as const;

export const ErrorSchema = Type.Object(
  {
    code: Type.String({ maxLength: 64, description: 'Stable snake_case name of the error' }),
    message: Type.String({ maxLength: 16384, description: 'The failure and the next step' }),
  },
  { additionalProperties: false },
);

export const FieldChangeSchema = Type.Object(
  {
    field: Type.String({ description: 'Name of the field, such as mode' }),
    before: nullable(Type.String({ description: 'Value on the machine; null without one' })),
    after: nullable(Type.String({ description: 'Wanted value; null for a removal' })),
  },
  { additionalProperties: false },
);

export const ResourceResultSchema = Type.Object(
  {
    module: Type.String({ description: 'Name of the module' }),
    kind: Type.String({ description: 'Kind of the resource, such as file-unix' }),
    identity: Type.String({ description: 'Path or name of the resource on the machine' }),
    id: nullable(Type.String({ description: '`id` in the module; null without one' })),
    name: nullable(Type.String({ description: '`name` in the module; null without one' })),
    action: Type.Enum(ACTIONS, { description: 'What the run does, or would do, with the resource' }),
    status: Type.Enum(RESOURCE_STATUSES, {
      description: 'pending: a plan or drift check found a difference; skipped: it was not its turn',
    }),
    changes: Type.Array(FieldChangeSchema, { description: 'Differences field by field' }),
    diff: nullable(Type.String({ description: 'Unified diff of text content; null without one' })),
    sensitive: Type.Boolean({
      description: 'True when the resource holds a secret; every secret in `changes` and `diff` is masked',
    }),
    reason: nullable(
      Type.String({ description: 'Why the action is taken, or the resource is skipped; null without a reason' }),
    ),
    error: nullable(ErrorSchema),
    duration_ms: Type.Integer({ minimum: 0, description: 'Milliseconds that it took' }),
  },
  { additionalProperties: false },
);

export type ResourceResult = Type.Static<typeof ResourceResultSchema>;

/** The output of a script, with secrets masked. */
export const OutputSchema = Type.Object(
  {
    stdout: Type.String({ description: 'Standard output, with secrets masked' }),
    stderr: Type.String({ description: 'Standard error, with secrets masked' }),
    exit_code: nullable(Type.Integer({ description: 'Exit status; null when the script did not end by itself' })),
    truncated: Type.Boolean({ description: 'True when the middle of a stream was dropped' }),
  },
  { additionalProperties: false },
);
export type Output = Type.Static<typeof OutputSchema>;

export const SummarySchema = Type.Object(
  {
    total: Type.Integer({ description: 'Number of resources' }),
    unchanged: Type.Integer({ description: 'Resources that are as wanted' }),
    pending: Type.Integer({ description: 'Resources with a difference that the run does not change' }),
    changed: Type.Integer({ description: 'Changed resources' }),
    failed: Type.Integer({ description: 'Failed resources' }),
    skipped: Type.Integer({ description: 'Resources whose turn did not come' }),
    removed: Type.Integer({ description: 'Removals among `changed`; in a plan among `pending`' }),
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
