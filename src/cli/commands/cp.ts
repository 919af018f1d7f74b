/** `orch cp`: copies files between this machine and others. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { copyAgents, type MachineCopy } from '../copy/copy-agents.js';
import { type CopyPlan, planOf } from '../copy/copy-words.js';
import { argumentList, defineCommand } from '../define-command.js';
import { agentName, count } from '../format.js';
import { selectAgents, selectionOptions } from '../nodes/choose-agents.js';
import { resolveNodes } from '../nodes/resolve-node.js';
import { flag, integer } from '../options.js';
import { type Line, lines, linesOf, styled } from '../outcome.js';

/** Maximum number of machines at a time. */
const BATCH = 8;

export const command = defineCommand({
  examples: [
    'orch cp site.tar web-01:/srv/',
    'orch cp -r site web-01:/srv/site',
    'orch cp -rp web-01:/etc/nginx .',
    'orch cp -l role=web motd :/etc/motd',
    'orch cp web-01:/var/log/syslog web-02:/var/log/syslog logs',
  ],
  detail: [
    'The last word is the target. A path of a machine is NODE:PATH with an absolute path, or :PATH of all machines of',
    'a selector; a local file with a colon in its name is ./NAME. As with cp, a directory as target gets the sources',
    'into it, and several sources need one. From several machines they arrive in TARGET/NODE/.',
    'A file appears under its name when all of it has arrived and its SHA-256 is right. A replaced file keeps its',
    'mode, and for an agent of root its owner. New files get the mode of the source, less the umask; --preserve keeps',
    'modes and the times of changes. Bits such as setuid, owners and access lists are not copied.',
    'A named link is followed. Below a directory links are copied as links, and never written through. Blocks of',
    'zeros become holes. Devices, sockets and named pipes are not copied. Each entry that is not copied is named, and',
    'the rest goes on. After a lost connection the copy continues where it was, for up to five minutes without',
    'progress.',
    'The settings of the agent have to permit the paths (copy.read, copy.write). The audit log keeps paths, files,',
    'bytes and a SHA-256, never content. With --selector it asks if there are several machines; without a terminal it',
    'needs --yes. It ends with 0 if everything was copied, with 5 if the only failures are offline agents, else with',
    '3.',
  ],
  access: 'operator',
  consent: true,
  args: { words: argumentList('PATH', 'sources, and the target last: files and directories here, or NODE:PATH') },
  options: {
    ...selectionOptions,
    recursive: flag('copy directories with everything below them', { short: 'r' }),
    preserve: flag('keep modes and the times of changes', { short: 'p' }),
    batch: integer('N', `number of machines at a time [${BATCH}]`, 1),
  },
  run: async (context, { words, recursive, preserve, batch, ...selection }) => {
    const isSelected = selection.selector !== undefined || selection.status.length > 0;
    const plan = planOf(words, isSelected);
    if (isSelected && !context.globals.yes && !context.prompt.possible) {
      throw new Fault(
        'confirmation_required',
        'a copy to all machines of a selector needs consent, and there is no terminal',
        {
          hint: 'add --yes to copy without being asked, or name the machine',
        },
      );
    }
    const api = await context.api();
    const copies = isSelected ? await selected(context, api, { plan, selection }) : await named(context, api, plan);
    if (copies.length === 0) return { body: [], view: lines('No agent matches, so nothing is copied.') };
    if (isSelected && copies.length > 1) await confirm(context, { copies, plan });
    const isSpread = isSelected || copies.length > 1 || words.some((word) => /^[^/:]*\[[^/]*:/.test(word));
    return copyAgents(context, api, { plan, copies, isSpread, recursive, preserve, batch: batch ?? BATCH });
  },
});

interface Selected {
  readonly plan: CopyPlan;
  readonly selection: Omit<Parameters<typeof selectAgents>[1], 'nodes'>;
}

/** Returns the machines of the selector, all with the same paths. */
async function selected(
  context: Context,
  api: ApiClient,
  { plan, selection }: Selected,
): Promise<readonly MachineCopy[]> {
  const agents = await selectAgents(api, { nodes: [], ...selection }, context);
  const paths = plan.direction === 'write' ? [plan.target.path] : plan.sources.map(({ path }) => path);
  return agents.map((agent) => ({ agent, paths }));
}

/** Returns the machines that the words name, each with its paths. */
async function named(context: Context, api: ApiClient, plan: CopyPlan): Promise<readonly MachineCopy[]> {
  const words = plan.direction === 'write' ? [plan.target] : plan.sources;
  const byId = new Map<string, { agent: Agent; paths: string[] }>();
  for (const { node, path } of words) {
    for (const agent of await resolveNodes(api, [node], context)) {
      const known = byId.get(agent.node_id) ?? { agent, paths: [] };
      byId.set(agent.node_id, { agent, paths: [...known.paths, path] });
    }
  }
  return [...byId.values()];
}

/** Shows the machines and asks for consent. Throws `cancelled`. */
async function confirm(
  context: Context,
  { copies, plan }: { readonly copies: readonly MachineCopy[]; readonly plan: CopyPlan },
): Promise<void> {
  if (context.globals.yes) return;
  await context.present(
    linesOf(
      copies.map(
        ({ agent }): Line => [`  ${agentName(agent)}`, agent.connected ? '' : styled('warn', '  not connected')],
      ),
    ),
  );
  const machines = count(copies.length, 'machine');
  const what = plan.direction === 'write' ? plan.sources.join(', ') : plan.sources.map(({ path }) => path).join(', ');
  const way =
    plan.direction === 'write' ? `to ${plan.target.path} of ${machines}` : `from ${machines} to ${plan.target}`;
  await context.prompt.consent(`Copy ${what} ${way}?`);
}
