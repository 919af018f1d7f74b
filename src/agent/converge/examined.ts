/** The result of examining a resource: settled, or to be changed. */
import { assertNever } from '../../kernel/fault.js';
import type { Quote } from '../../resources/command.js';
import { withLines } from '../../resources/command.js';
import type { Decision } from '../../resources/kind.js';
import type { Quotable } from './discretion.js';
import type { Finding, Status } from './run-item.js';
import type { Refusal, Target } from './target.js';
import type { Due } from './triggers.js';

export type Change = Extract<Decision, { steps: unknown }>;

/** A resource that has to be changed. */
export interface Pending {
  readonly target: Target;
  readonly change: Change;
  /** True if it existed before the apply, and was not created by orch. */
  readonly existed: boolean;
  /** True if it exists now. */
  readonly isThere: boolean;
  readonly due: Due;
}

/** An examined resource: its final finding, or the change that it needs. */
export type Examined = { readonly finding: Finding } | { readonly pending: Pending };

/** Turns a kind's decision into the form that a run continues with. */
export function examined(
  target: Target,
  decision: Decision,
  { existed, isThere, due, quotable }: Omit<Pending, 'target' | 'change'> & { readonly quotable: Quotable },
): Examined {
  switch (decision.action) {
    case 'none':
      return { finding: { target, action: 'none', status: 'unchanged', existed } };
    case 'fail':
      return { finding: failed(target, { code: decision.code, message: textOf(decision, target, quotable) }, existed) };
    case 'release':
      return { finding: { target, action: 'release', status: 'pending', reason: decision.reason, existed } };
    case 'create':
    case 'update':
    case 'remove':
    case 'run':
    case 'reload':
    case 'restart':
      return { pending: { target, change: withReason(decision, due), existed, isThere, due } };
    default:
      return assertNever(decision);
  }
}

const textOf = ({ message, output }: Quote, target: Target, quotable: Quotable): string =>
  output === undefined ? message : withLines(message, quotable([target], output));

/** Adds the cause of a due trigger to the reason of a change. */
function withReason(change: Change, { because }: Due): Change {
  if (because === null) return change;
  return { ...change, reason: change.reason === undefined ? because : `${change.reason}; ${because}` };
}

/** The end of a removal whose thing existed when the apply began, and that another of its changes has taken along. */
export const removedBefore = (target: Target): Examined => ({
  finding: {
    target,
    action: 'remove',
    status: 'changed',
    reason: 'it went with an earlier change of this apply',
    existed: true,
  },
});

export const failed = (target: Target, { code, message }: Refusal, existed: boolean | null): Finding => ({
  target,
  action: 'none',
  status: 'failed',
  error: { code, message },
  existed,
});

export const skipped = (target: Target, error: Refusal, reason: string): Finding => ({
  target,
  action: 'none',
  status: 'skipped',
  error,
  reason,
  existed: null,
});

/** Returns a refusal that names what still differs after a change; null when nothing does. */
export function differenceIn(target: Target, result: Examined | undefined, quotable: Quotable): Refusal | null {
  if (result === undefined) throw new Error(`${target.source.identity} was not looked at again`);
  if ('pending' in result) {
    const { changes, unmet } = result.pending.change;
    const what = unmet ? textOf(unmet, target, quotable) : changes.map(({ field }) => field).join(', ');
    const message = `${target.source.identity} still differs after the change${what === '' ? '' : `: ${what}`}`;
    return { code: 'not_converged', message };
  }
  const { error, status } = result.finding;
  if (error) return error;
  return status === 'unchanged'
    ? null
    : { code: 'not_converged', message: `${target.source.identity} is still there after its removal` };
}

/** True for a status that keeps dependents from being attempted. */
export const isBad = (status: Status | undefined): boolean => status === 'failed' || status === 'skipped';

/** True when a removal leaves nothing behind, or found nothing to remove. */
export const isGone = (examined: Examined): boolean =>
  'pending' in examined || examined.finding.status === 'unchanged' || examined.finding.action === 'remove';
