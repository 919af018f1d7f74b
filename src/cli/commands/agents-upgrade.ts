/** `orch agents upgrade`: replaces the releases of agents, canaries first. */
import type { ApiClient } from '../../client/api-client.js';
import { retryAfterMs } from '../../client/http-messages.js';
import type { Agent } from '../../contract/agents.js';
import { isFinalUpgrade, UPGRADE_WAIT } from '../../contract/upgrade-states.js';
import type { Upgrade } from '../../contract/upgrades.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { WalkResult } from '../../kernel/walk-agents.js';
import type { Context } from '../context.js';
import { defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { agentHandle, agentName, count } from '../format.js';
import { requireSelection, selectAgents, selectionOptions } from '../nodes/choose-agents.js';
import { optionalNodesArgument } from '../nodes/resolve-node.js';
import { visitAgents } from '../nodes/visit-agents.js';
import { flag, integer, text } from '../options.js';
import {
  headed,
  type Line,
  lines,
  linesOf,
  proseOf,
  type Span,
  stack,
  styled,
  type TableView,
  type View,
} from '../outcome.js';
import { parseDuration } from '../parse-time.js';

/** Agents that are upgraded at a time, each of which downloads a release. */
const CONCURRENCY = 8;
/** Milliseconds between two looks at an upgrade. */
const LOOK_MS = 1_000;
/** Milliseconds for download, trial and restarts, beside the wait for applies and terminals. */
const SPARE_MS = 30 * 60_000;

/** How the upgrade of an agent ended. */
interface UpgradedAgent extends WalkResult {
  readonly agent: Agent;
  readonly from_version: string;
  readonly version: string;
  /** Why it did not succeed, or null. */
  readonly reason: string | null;
}

/** `orch agents upgrade`. */
export const upgradeAgents = defineCommand({
  examples: [
    'orch agents upgrade web-01',
    'orch agents upgrade -l "*" --canary 1 --max-failures 1',
    'orch agents upgrade -l role=web --to 0.2.0',
  ],
  detail: [
    'Each agent downloads the release from the orchestrator, checks it, waits until no apply runs and no terminal is',
    'open, and restarts with it. If the new agent does not reach the orchestrator within three minutes, the old one',
    'returns and reports why. Without --to the agents get the version of the orchestrator. Agents that have it are',
    'left out. The releases are files orch-VERSION-linux-CPU.tar.gz in "packages" of the orchestrator\'s data',
    'directory; an orchestrator from a package also has its own. After Ctrl-C, agents that have begun finish by',
    'themselves.',
    'Ends with 0 if all succeeded, with 5 if the only failures are offline agents, else with 3.',
  ],
  access: 'operator',
  consent: true,
  args: { nodes: optionalNodesArgument },
  options: {
    ...selectionOptions,
    to: text('VERSION', 'version to install [that of the orchestrator]'),
    canary: integer('N', 'agents that go first; the others follow if all of these succeed [0]', 0),
    maxFailures: integer('N', 'stop after this many failures [no limit]', 1),
    concurrency: integer('N', `most agents at a time [${CONCURRENCY}]`, 1),
    wait: text('TIME', `how long an agent waits for applies and terminals [${UPGRADE_WAIT.standard / 3600}h]`),
    force: flag('interrupt applies and terminals instead of waiting'),
  },
  run: async (context, { nodes, selector, status, allowEmpty, to, canary, maxFailures, concurrency, wait, force }) => {
    requireSelection({ nodes, selector, status }, 'agents upgrade', '--selector "*" --canary 1');
    const waitSecs = wait === undefined ? UPGRADE_WAIT.standard : parseDuration(wait, '--wait');
    if (waitSecs > UPGRADE_WAIT.maximum) throw new Fault('usage', '--wait is at most 24h');
    const api = await context.api();
    const version = to ?? (await api.call('getStatus', { signal: context.signal })).version;
    const chosen = await selectAgents(api, { nodes, selector, status, allowEmpty }, context);
    const agents = chosen.filter(({ agent_version }) => agent_version !== version);
    if (agents.length === 0) {
      const all = chosen.length === 1 ? 'The agent has' : `All ${chosen.length} agents have`;
      return {
        body: [],
        view: lines(chosen.length === 0 ? 'No agent matches.' : `${all} version ${version} already.`),
      };
    }
    await confirm(context, { agents, version, force });
    const results = await upgradeAll(context, api, {
      agents,
      order: { version, force, wait_secs: waitSecs },
      pace: { canary: canary ?? 0, maxFailures: maxFailures ?? null, concurrency: concurrency ?? CONCURRENCY },
    });
    return {
      body: results.map(({ agent, ...result }) => ({ node_id: agent.node_id, name: agent.name, ...result })),
      names: results.flatMap(({ agent, status }) => (status === 'succeeded' ? [agentHandle(agent)] : [])),
      view: stack(resultTable(results), reasonsOf(results), ...logsOf(results)),
      exitStatus: exitStatusOf(results),
    };
  },
});

interface Request {
  readonly agents: readonly Agent[];
  readonly version: string;
  readonly force: boolean;
}

async function confirm(context: Context, { agents, version, force }: Request): Promise<void> {
  if (context.globals.yes) return;
  await context.present(
    proseOf(
      agents.map(
        (agent): Line => [
          `  ${agentName(agent)}  ${agent.agent_version} -> ${version}`,
          agent.connected ? '' : styled('warn', '  not connected'),
        ],
      ),
    ),
  );
  const how = force ? ', and interrupt their applies and terminals' : '';
  await context.prompt.consent(`Upgrade ${count(agents.length, 'agent')} to ${version}${how}?`);
}

interface Order {
  readonly version: string;
  readonly force: boolean;
  readonly wait_secs: number;
}

interface Walk {
  readonly agents: readonly Agent[];
  readonly order: Order;
  readonly pace: { readonly canary: number; readonly maxFailures: number | null; readonly concurrency: number };
}

function upgradeAll(
  context: Context,
  api: ApiClient,
  { agents, order, pace }: Walk,
): Promise<readonly UpgradedAgent[]> {
  const { signal, progress } = context;
  let finished = 0;
  const states = new Map<string, string>();
  const show = () =>
    progress.live(() => {
      const running = [...states].map(([name, state]) => `${name}: ${state}`).join(', ');
      return `upgrading: ${finished} of ${count(agents.length, 'agent')}  ${running}`;
    });
  const ended = (agent: Agent, status: UpgradedAgent['status'], reason: string | null): UpgradedAgent => ({
    agent,
    status,
    from_version: agent.agent_version,
    version: order.version,
    reason,
  });
  return visitAgents<UpgradedAgent>({
    agents,
    ...pace,
    signal,
    visit: async (agent) => {
      const name = agentName(agent);
      const onState = (state: string) => {
        states.set(name, state);
        show();
      };
      try {
        const upgrade = await upgradeOne(api, agent, order, { signal, onState });
        return ended(agent, upgrade.state === 'succeeded' ? 'succeeded' : 'failed', reasonOf(upgrade));
      } finally {
        states.delete(name);
      }
    },
    failed: (agent, fault) =>
      ended(agent, isFault(fault, 'agent_not_connected') ? 'unreachable' : 'failed', fault.message),
    skipped: (agent, why) => ended(agent, 'skipped', why),
    statusOf: ({ status }) => status,
    onResult: (result) => {
      finished += 1;
      show();
      if (agents.length > 1) progress.step(`${agentName(result.agent)}: ${saidOf(result)}`);
    },
  });
}

interface Watch {
  readonly signal: AbortSignal;
  readonly onState: (state: string) => void;
}

/** Requests an upgrade and returns it once it has ended. An orchestrator that is away meanwhile is asked again. */
async function upgradeOne(api: ApiClient, agent: Agent, order: Order, { signal, onState }: Watch): Promise<Upgrade> {
  const params = { node_id: agent.node_id };
  let upgrade = await api.call('upgradeAgent', { params, body: order, signal });
  const end = performance.now() + order.wait_secs * 1000 + SPARE_MS;
  let wait = LOOK_MS;
  while (!isFinalUpgrade(upgrade.state)) {
    if (performance.now() > end) throw new Fault('agent_timeout', `it says nothing more; it was ${upgrade.state} last`);
    onState(upgrade.waits_for === null ? upgrade.state : `waiting for ${upgrade.waits_for}`);
    await pause(wait, signal);
    wait = LOOK_MS;
    try {
      const now = await api.call('getAgentUpgrade', { params, signal });
      if (now.upgrade_id !== upgrade.upgrade_id)
        throw new Fault('upgrade_failed', 'another upgrade has replaced this one');
      upgrade = now;
    } catch (error) {
      if (!isFault(error, 'unreachable', 'shutting_down', 'store_unavailable')) throw error;
      onState('waiting for the orchestrator');
      wait = retryAfterMs(error, LOOK_MS);
    }
  }
  return upgrade;
}

/** Waits. Throws the reason of the signal when that is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, ms);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}

function reasonOf({ state, error, from_version }: Upgrade): string | null {
  if (state === 'succeeded') return null;
  const why = error?.message ?? 'for an unknown reason';
  return state === 'rolled_back' ? `rolled back to ${from_version}: ${why}` : why;
}

const saidOf = ({ status, version, reason }: UpgradedAgent): string =>
  status === 'succeeded' ? `upgraded to ${version}` : headOf(reason ?? status);

/** The beginning of the reason of a roll-back, before the log of the new agent. */
const LOG = '; its log ends with:\n';

const headOf = (reason: string): string => reason.split(LOG, 1)[0] ?? reason;

/** Returns a line for each agent that was not upgraded. A column of the table would not fit a terminal. */
const reasonsOf = (results: readonly UpgradedAgent[]): View =>
  proseOf(results.flatMap(({ agent, reason }) => (reason === null ? [] : [`${agentName(agent)}: ${headOf(reason)}`])));

/** Returns the logs of new agents that did not work. */
const logsOf = (results: readonly UpgradedAgent[]): readonly View[] =>
  results.flatMap(({ agent, reason }) => {
    const [, log] = reason?.split(LOG) ?? [];
    return log === undefined
      ? []
      : [headed(`Log of ${agentName(agent)}`, linesOf(log.split('\n').map((line) => `  ${line}`)))];
  });

const resultTable = (results: readonly UpgradedAgent[]): TableView => ({
  kind: 'table',
  columns: [
    { title: 'AGENT', whole: true },
    { title: 'RESULT', whole: true },
    { title: 'FROM', whole: true },
    { title: 'TO', whole: true },
  ],
  rows: results.map(({ agent, status, from_version, version }) => [
    agentName(agent),
    statusOf(status),
    from_version,
    version,
  ]),
  empty: 'No agent matches.',
});

function statusOf(status: UpgradedAgent['status']): Span {
  if (status === 'succeeded') return styled('good', 'upgraded');
  return styled(status === 'skipped' ? 'dim' : 'bad', status);
}

function exitStatusOf(results: readonly UpgradedAgent[]): number {
  if (results.every(({ status }) => status === 'succeeded')) return EXIT.done;
  return results.every(({ status }) => status === 'succeeded' || status === 'unreachable')
    ? EXIT.offline
    : EXIT.partlyFailed;
}
