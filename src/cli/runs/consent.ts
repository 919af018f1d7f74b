/** Consent to an apply: shows the plans, and asks before anything is changed. */
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentName, count, formatDuration } from '../format.js';
import { resourceName } from '../render/plan-lines.js';
import { type AgentRun, hasResult, type RunAgent } from './agent-run.js';
import { runsView } from './run-view.js';

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
  /** Agents without a plan. */
  readonly missed: readonly AgentRun[];
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
  /** Seconds of `--confirm-within`; null without it. */
  readonly confirmSecs?: number | null;
}

/** Shows plans that have changes or failed, and asks for consent. Throws `cancelled`. */
export async function consentTo(
  context: Context,
  plans: readonly AgentRun[],
  { awaiting = NO_ONE, confirmSecs = null }: ConsentOptions = {},
): Promise<Consented> {
  context.progress.end();
  const planned = plans.filter(hasResult).filter(({ result }) => result.status === 'succeeded');
  const missed = plans.filter((run) => !hasResult(run) || run.result.status !== 'succeeded');
  const changing = planned.filter(({ result }) => result.has_changes);
  if (changing.length > 0 || missed.length > 0) {
    await context.present(runsView(plans, { kind: 'plan', verbose: context.globals.verbose, confirmSecs }));
  }
  const question = [...awaitedLines(awaiting), ...(changing.length > 0 ? [questionFor(changing)] : [])];
  if (changing.length > 0) await context.prompt.consent(question.join('\n'));
  else if (question.length > 0) await context.prompt.consent([...question, 'Begin?'].join('\n'));
  return { planned, missed };
}

function awaitedLines({ awaited, secs }: Awaiting): readonly string[] {
  const names = awaited.slice(0, NAMED).map(agentName).join(', ');
  const more = awaited.length > NAMED ? ` and ${awaited.length - NAMED} more` : '';
  return awaited.length === 0
    ? []
    : [`Not planned, and applied to if back within ${formatDuration(secs)}: ${names}${more}.`];
}

/** Returns the question, which names each removal. */
export function questionFor(changing: readonly Planned[]): string {
  const [only] = changing;
  const whom = changing.length === 1 && only ? agentName(only.agent) : count(changing.length, 'agent');
  const removals = changing.flatMap(({ agent, result }) =>
    result.resources
      .filter(({ action, status }) => action === 'remove' && status === 'pending')
      .map((resource) => `  - ${resourceName(resource)}${changing.length === 1 ? '' : ` on ${agentName(agent)}`}`),
  );
  if (removals.length === 0) return `Apply this to ${whom}?`;
  return `${[`This removes from ${whom}:`, ...removals].join('\n')}\nApply it, with ${count(removals.length, 'removal')}?`;
}
