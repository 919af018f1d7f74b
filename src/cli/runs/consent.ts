/** Consent to an apply: shows the plans, and asks before anything is changed. */

import { Fault, isFaultCode } from '../../kernel/fault.js';
import { purgedBy } from '../../resources/purge.js';
import type { Context } from '../context.js';
import { agentName, count, formatDuration } from '../format.js';
import { resourceName } from '../render/plan-lines.js';
import { type AgentRun, hasResult, type RunAgent } from './agent-run.js';
import { type ApplyLimits, NO_LIMITS } from './apply-limits.js';
import { runsView } from './run-view.js';
import { endedLines } from './trial-lines.js';

/** Throws `confirmation_required` before any request if consent is needed and there is no terminal. */
export function requireConsent({ prompt, globals }: Context): void {
  if (globals.yes || prompt.possible) return;
  throw new Fault('confirmation_required', 'an apply needs consent, and there is no terminal to ask on', {
    hint: 'add --yes to apply without being asked, or look first with: orch plan',
  });
}

/** Maximum number of listed agents; the rest is counted. */
const NAMED = 10;

type Planned = Extract<AgentRun, { readonly result: unknown }>;

interface Consented {
  readonly planned: readonly Planned[];
  /** Agents without a plan, and those whose apply would be refused. */
  readonly missed: readonly AgentRun[];
  /** The limits, with the number of removals on one agent that the question has named. */
  readonly limits: ApplyLimits;
}

/** Offline agents that are applied to, without a plan, when they return. */
interface Awaiting {
  readonly awaited: readonly RunAgent[];
  /** Seconds for which they are waited for. */
  readonly secs: number;
}

const NO_ONE: Awaiting = { awaited: [], secs: 0 };

interface ConsentOptions {
  readonly awaiting?: Awaiting;
  /** Lines about the modules, before the question. */
  readonly lines?: readonly string[];
  readonly limits?: ApplyLimits;
  /** True to ask although no plan has changes [default: false]. */
  readonly asksAlways?: boolean;
}

/**
 * Shows plans that have changes or failed, and asks for consent. It does not ask about a plan whose apply would be refused: the
 * refusal of a single agent is thrown, and others are left out. A yes covers the removals that the question names. Throws
 * `cancelled`.
 */
export async function consentTo(
  context: Context,
  plans: readonly AgentRun[],
  { awaiting = NO_ONE, lines = [], limits = NO_LIMITS, asksAlways = false }: ConsentOptions = {},
): Promise<Consented> {
  context.progress.end();
  const complete = plans.filter(hasResult).filter(({ result }) => result.status === 'succeeded');
  const refused = complete.flatMap((run) => refusalOf(run, limits) ?? []);
  const planned = complete.filter(({ agent }) => !refused.some((other) => other.agent === agent));
  const missed = [...plans.filter((run) => !hasResult(run) || run.result.status !== 'succeeded'), ...refused];
  const changing = planned.filter(({ result }) => result.has_changes);
  if (changing.length > 0 || missed.length > 0) {
    const { confirmSecs } = limits;
    await context.present(runsView(plans, { kind: 'plan', verbose: context.globals.verbose, confirmSecs }));
  }
  const [only] = refused;
  if (plans.length === 1 && only !== undefined) throw only.fault;
  const told = [...lines, ...endedLines(planned)];
  const question = [
    ...(changing.length > 0 || awaiting.awaited.length > 0 ? told : []),
    ...awaitedLines(awaiting),
    ...(changing.length > 0 ? [questionFor(changing)] : []),
  ];
  const hasNothing = changing.length === 0 && planned.length > 0;
  if (asksAlways && hasNothing) await context.prompt.consent([...told, unchangedQuestion(planned)].join('\n'));
  else if (changing.length > 0) await context.prompt.consent(question.join('\n'));
  else if (question.length > 0) await context.prompt.consent([...question, 'Begin?'].join('\n'));
  else for (const line of told) context.note(line);
  const allowRemovals = limits.allowRemovals ?? removalsOf(planned, awaiting);
  return { planned, missed, limits: { ...limits, allowRemovals } };
}

/** Returns an agent whose apply would be refused whatever the answer is, with the refusal; null for others. */
function refusalOf({ agent, result }: Planned, { allowRemovals, outsideWindow }: ApplyLimits) {
  const refusals = 'refusals' in result ? (result.refusals ?? []) : [];
  const refusal = refusals.find(({ code, allow_removals: needed }) =>
    code === 'removal_guard' ? allowRemovals !== null && allowRemovals < (needed ?? 0) : !outsideWindow,
  );
  if (refusal === undefined || !isFaultCode(refusal.code)) return null;
  const { code, message, hint } = refusal;
  return { agent, fault: new Fault(code, message, hint === null ? {} : { hint }) };
}

/**
 * Returns the number of removals that a yes allows on each agent; null to leave it to the removal guard. Each agent is held to
 * its plan, and one that is applied to without a plan gets no such consent.
 */
function removalsOf(planned: readonly Planned[], { awaited }: Awaiting): number | null {
  if (awaited.length > 0) return null;
  const needed = planned.flatMap(({ result }) => ('refusals' in result ? (result.refusals ?? []) : []));
  const numbers = needed.flatMap(({ allow_removals }) => allow_removals ?? []);
  return numbers.length === 0 ? null : Math.max(...numbers);
}

function awaitedLines({ awaited, secs }: Awaiting): readonly string[] {
  const names = awaited.slice(0, NAMED).map(agentName).join(', ');
  const more = awaited.length > NAMED ? ` and ${awaited.length - NAMED} more` : '';
  return awaited.length === 0
    ? []
    : [`Not planned, and applied to if back within ${formatDuration(secs)}: ${names}${more}.`];
}

const nameOfAll = (runs: readonly Planned[]): string => {
  const [only] = runs;
  return runs.length === 1 && only ? agentName(only.agent) : count(runs.length, 'agent');
};

const unchangedQuestion = (planned: readonly Planned[]): string =>
  `Nothing changes on ${nameOfAll(planned)}. Apply it, which records that?`;

/** Returns the question, which names each removal. */
export function questionFor(changing: readonly Planned[]): string {
  const whom = nameOfAll(changing);
  const removals = changing.flatMap(({ agent, result }) =>
    result.resources
      .filter(({ action, status }) => action === 'remove' && status === 'pending')
      .map((resource) => `  - ${resourceName(resource)}${changing.length === 1 ? '' : ` on ${agentName(agent)}`}`),
  );
  const purges = changing.flatMap(({ agent, result }) =>
    result.resources
      .filter((resource) => purgedBy(resource) > 0)
      .map((resource) => {
        const where = changing.length === 1 ? '' : ` on ${agentName(agent)}`;
        const names = resource.changes.find(({ field }) => field === 'deleted')?.before ?? '';
        return `  - in ${resource.identity}${where}, what nothing declares: ${names}`;
      }),
  );
  if (removals.length === 0 && purges.length === 0) return `Apply this to ${whom}?`;
  if (removals.length === 0) return `${[`This deletes from ${whom}:`, ...purges].join('\n')}\nApply it?`;
  return `${[`This removes from ${whom}:`, ...removals, ...purges].join('\n')}\nApply it, with ${count(removals.length, 'removal')}?`;
}
