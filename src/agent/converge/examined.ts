/** A resource after a look at it, and what that means. */
import { assertNever } from '../../kernel/fault.js';
import type { Decision } from '../../resources/kind.js';
import type { Finding, Status } from './run-item.js';
import type { Refusal, Target } from './target.js';
import type { Due } from './triggers.js';

export type Change = Extract<Decision, { steps: unknown }>;

/** A resource that has to be changed. */
export interface Pending {
  readonly target: Target;
  readonly change: Change;
  readonly existed: boolean;
  readonly due: Due;
}

/** A resource after a look at it: done with, or to be changed. */
export type Examined = { readonly finding: Finding } | { readonly pending: Pending };

/** A decision as what a run goes on with. */
export function examined(
  target: Target,
  decision: Decision,
  { existed, due }: Pick<Pending, 'existed' | 'due'>,
): Examined {
  switch (decision.action) {
    case 'none':
      return { finding: { target, action: 'none', status: 'unchanged', existed } };
    case 'fail':
      return { finding: failed(target, decision, existed) };
    case 'release':
      return { finding: { target, action: 'release', status: 'pending', reason: decision.reason, existed } };
    case 'create':
    case 'update':
    case 'remove':
    case 'run':
    case 'reload':
    case 'restart':
      return { pending: { target, change: withReason(decision, due), existed, due } };
    default:
      return assertNever(decision);
  }
}

/** Why a change is made, with what has triggered it. */
function withReason(change: Change, { because }: Due): Change {
  if (because === null) return change;
  return { ...change, reason: change.reason === undefined ? because : `${change.reason}; ${because}` };
}

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

/** What is still to be done after a change, as a refusal; null when it is done. */
export function differenceIn(target: Target, result: Examined | undefined): Refusal | null {
  if (result === undefined) throw new Error(`${target.source.identity} was not looked at again`);
  if ('pending' in result) {
    const fields = result.pending.change.changes.map(({ field }) => field);
    const what = fields.length > 0 ? `: ${fields.join(', ')}` : '';
    return { code: 'not_converged', message: `${target.source.identity} still differs after the change${what}` };
  }
  const { error, status } = result.finding;
  if (error) return error;
  return status === 'unchanged'
    ? null
    : { code: 'not_converged', message: `${target.source.identity} is still there after its removal` };
}

/** What needs something of this status is not attempted. */
export const isBad = (status: Status | undefined): boolean => status === 'failed' || status === 'skipped';

/** True when a removal leaves nothing behind, be it that nothing was there. */
export const isGone = (examined: Examined): boolean => 'pending' in examined || examined.finding.status === 'unchanged';
