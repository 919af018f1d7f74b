/** Shows which agents a command is about to run on, and asks. */
import type { Agent } from '../../contract/agents.js';
import { shellWord } from '../../identity/shell-word.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { agentName, count } from '../format.js';
import { type Line, linesOf, styled } from '../view.js';

/** Fails before anything is asked of the orchestrator when an answer is needed and nobody can give it. */
export function requireExecConsent({ prompt, globals }: Context): void {
  if (globals.yes || prompt.possible) return;
  throw new Fault(
    'confirmation_required',
    'a command on all agents of a selector needs consent, and there is no terminal to ask on',
    { hint: 'add --yes to run it without being asked, or name the agents' },
  );
}

/** Throws `cancelled`. */
export async function confirmExec(
  context: Context,
  { agents, command }: { readonly agents: readonly Agent[]; readonly command: readonly string[] },
): Promise<void> {
  if (context.globals.yes) return;
  await context.present(
    linesOf(
      agents.map((agent): Line => [`  ${agentName(agent)}`, agent.connected ? '' : styled('warn', '  not connected')]),
    ),
  );
  await context.prompt.consent(`Run this on ${count(agents.length, 'agent')}: ${command.map(shellWord).join(' ')}?`);
}
