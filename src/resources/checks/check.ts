/** Health checks of modules, as the orchestrator resolves them and sends them over the link, and their results. */
import * as Type from 'typebox';
import { closed, nullable } from '../../kernel/schema.js';
import { SpanSchema } from '../desired.js';

/** Maximum checks of one agent (`docs/protocols/limits.md`). */
export const MAX_RUN_CHECKS = 1000;
/** Maximum characters of all checks of one agent as JSON. They travel in one message. */
export const MAX_CHECKS_CHARACTERS = 512 * 1024;
/** Maximum characters of a reason. */
export const MAX_REASON = 1024;

export const DesiredCheckSchema = closed({
  module: Type.String({ maxLength: 128 }),
  /** Unique within the module. */
  name: Type.String({ maxLength: 1024 }),
  /** A `CheckKind`; a newer orchestrator may send others. */
  kind: Type.String({ maxLength: 64 }),
  /** Seconds after the end of the apply in which the check must pass once. */
  within_secs: Type.Integer({ minimum: 1, maximum: 3600 }),
  /** Maximum seconds of one attempt. */
  timeout_secs: Type.Integer({ minimum: 1, maximum: 3600 }),
  /** The body with every expression filled in. */
  body: Type.Record(Type.String(), Type.Unknown()),
  /** Secret parts of strings, by JSON pointer in the body. */
  taint: Type.Optional(Type.Record(Type.String(), Type.Array(SpanSchema))),
});

/** A health check of one agent. */
export type DesiredCheck = Type.Static<typeof DesiredCheckSchema>;

const CHECK_STATUSES = ['healthy', 'unhealthy', 'not_run'] as const;

/** The agent's report about a check: its position in the run, and its end. */
export const CheckReportSchema = closed({
  index: Type.Integer({ minimum: 0, maximum: MAX_RUN_CHECKS }),
  status: Type.Enum(CHECK_STATUSES),
  duration_ms: Type.Integer({ minimum: 0 }),
  /** Why it is not healthy, with secrets masked; null for a healthy one. */
  reason: nullable(Type.String({ maxLength: MAX_REASON })),
});
export type CheckReport = Type.Static<typeof CheckReportSchema>;

/** A check in results of plans (`pending`), applies and `orch verify`. */
export const CheckResultSchema = closed({
  module: Type.String({ description: 'Name of the module' }),
  name: Type.String({ description: 'Name of the check, unique within the module' }),
  kind: Type.String({ description: 'Kind of the check: script, http, tcp or unit' }),
  status: Type.Enum(['pending', ...CHECK_STATUSES], {
    description: 'pending: in a plan; not_run: something before it failed',
  }),
  duration_ms: Type.Integer({ minimum: 0, description: 'Milliseconds that it took' }),
  reason: nullable(Type.String({ description: 'Why it is not healthy, with secrets masked; null for a healthy one' })),
});
export type CheckResult = Type.Static<typeof CheckResultSchema>;

/** Returns the results of reported checks, in the order of the run. A check without a report did not run. */
export function checkResults(checks: readonly DesiredCheck[], reports: readonly CheckReport[]): CheckResult[] {
  const byIndex = new Map(reports.map((report) => [report.index, report]));
  return checks.map(({ module, name, kind }, index) => {
    const { status = 'not_run', duration_ms = 0, reason = null } = byIndex.get(index) ?? {};
    return { module, name, kind, status, duration_ms, reason };
  });
}

/** Returns checks that have not run yet, as a plan shows them. */
export const pendingChecks = (checks: readonly DesiredCheck[]): CheckResult[] =>
  checks.map(({ module, name, kind }) => ({ module, name, kind, status: 'pending', duration_ms: 0, reason: null }));

/** Error of a run with failed checks, such as `check "page" of module web failed: … (and 2 more)`; null without one. */
export function verifyError(results: readonly CheckResult[]): { code: 'verify_failed'; message: string } | null {
  const failed = results.filter(({ status }) => status === 'unhealthy');
  const [first] = failed;
  if (first === undefined) return null;
  const more = failed.length === 1 ? '' : ` (and ${failed.length - 1} more)`;
  const message = `check "${first.name}" of module ${first.module} failed: ${first.reason ?? 'it gave no reason'}${more}`;
  return { code: 'verify_failed', message };
}
