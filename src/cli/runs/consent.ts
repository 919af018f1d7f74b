/** Consent to an apply: shows the plans, and asks before anything is changed. */
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentName, count } from '../format.js';
import { resourceName } from '../render/plan-lines.js';
import { type AgentRun, hasResult } from './agent-run.js';
import { runsView } from './run-view.js';

/** Throws `confirmation_required` before any request if consent is needed and there is no terminal. */
export function requireConsent({ prompt, globals }: Context): void {
  if (globals.yes || prompt.possible) return;
  throw new Fault('confirmation_required', 'an apply needs consent, and there is no terminal to ask on', {
    hint: 'add --yes to apply without being asked, or look first with: orch plan',
  });
}

type Planned = Extract<AgentRun, { readonly result: unknown }>;

interface Consented {
  readonly planned: readonly Planned[];
  /** Agents without a plan. */
  readonly missed: readonly AgentRun[];
}

/** Shows plans that have changes or failed, and asks for consent. Throws `cancelled`. */
export async function consentTo(context: Context, plans: readonly AgentRun[]): Promise<Consented> {
  context.progress.end();
  const planned = plans.filter(hasResult).filter(({ result }) => result.status === 'succeeded');
  const missed = plans.filter((run) => !hasResult(run) || run.result.status !== 'succeeded');
  const changing = planned.filter(({ result }) => result.has_changes);
  if (changing.length > 0 || missed.length > 0) {
    await context.present(runsView(plans, { kind: 'plan', verbose: context.globals.verbose }));
  }
  if (changing.length > 0) await context.prompt.consent(questionFor(changing));
  return { planned, missed };
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
