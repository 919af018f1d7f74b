/** `orch verify`. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { ROLLOUT_CONCURRENCY } from '../../contract/rollout-concurrency.js';
import type { Verification } from '../../contract/runs.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { defineCommand } from '../define-command.js';
import { EXIT, exitStatusOfCode } from '../exit-status.js';
import { agentHandle, agentName, count } from '../format.js';
import { chooseAgents, fleetOptions, requireOneChoice } from '../nodes/choose-agents.js';
import { optionalNodesArgument } from '../nodes/resolve-node.js';
import { visitAgents } from '../nodes/visit-agents.js';
import { integer } from '../options.js';
import { type Line, lines, linesOf, type Outcome, stackOf, styled, textLines, type View } from '../outcome.js';
import { checkLines } from '../render/check-lines.js';
import { spansOf } from '../render/paint.js';
import { waitOption, waitSecsOf, whenFree } from '../runs/when-free.js';

export const verifyAgents = defineCommand({
  examples: [
    'orch verify web-01',
    'orch verify -l role=web',
    'orch verify --status online',
    'orch verify --assignment web --concurrency 20',
  ],
  detail: [
    'The checks are those of the modules that were applied last. Ends with 1 if a check is not healthy. An agent',
    'without checks is healthy.',
  ],
  access: 'operator',
  args: { nodes: optionalNodesArgument },
  options: {
    ...fleetOptions,
    concurrency: integer('N', `most agents at a time [${ROLLOUT_CONCURRENCY.standard}]`, 1),
    wait: waitOption,
  },
  run: async (context, { concurrency, wait, ...choice }) => {
    const waitSecs = waitSecsOf(wait);
    const { nodes } = choice;
    requireOneChoice(choice, 'verify', { local: false });
    const api = await context.api();
    const agents = await chooseAgents(api, choice, context);
    const isSingle = nodes.length === 1;
    const most = concurrency ?? ROLLOUT_CONCURRENCY.standard;
    return outcomeOf(
      await verifyAll(context, api, { agents, isSingle, concurrency: most, waitSecs }),
      context,
      isSingle,
    );
  },
});

/** An agent with the results of its checks, or with the fault that kept them from running. */
type Verified =
  | { readonly agent: Agent; readonly result: Verification }
  | { readonly agent: Agent; readonly fault: Fault };

interface Fleet {
  readonly agents: readonly Agent[];
  readonly concurrency: number;
  /** True for one named agent, whose fault is that of the command. */
  readonly isSingle: boolean;
  /** Seconds to wait for a busy agent; null to fail at once. */
  readonly waitSecs: number | null;
}

function verifyAll(
  context: Context,
  api: ApiClient,
  { agents, concurrency, isSingle, waitSecs }: Fleet,
): Promise<readonly Verified[]> {
  const { signal } = context;
  return visitAgents<Verified>({
    agents,
    concurrency,
    isSingle,
    fatal: ['unreachable'],
    visit: async (agent) => {
      const verify = () => api.call('verifyAgent', { params: { node_id: agent.node_id }, signal });
      return { agent, result: await whenFree(context, api, { agent, secs: waitSecs }, verify) };
    },
    failed: (agent, fault) => ({ agent, fault }),
    skipped: (agent, why) => ({ agent, fault: new Fault('cancelled', why) }),
    statusOf: (run) => ('fault' in run ? 'unreachable' : run.result.ok ? 'succeeded' : 'failed'),
  });
}

function outcomeOf(runs: readonly Verified[], { globals }: Context, isSingle: boolean): Outcome {
  const [only] = runs;
  const isHealthy = (run: Verified) => 'result' in run && run.result.ok;
  const faults = runs.flatMap((run) => ('fault' in run ? [exitStatusOfCode(run.fault.code)] : []));
  const [first] = faults;
  const alike = first !== undefined && faults.length === runs.length && faults.every((status) => status === first);
  return {
    body:
      isSingle && only !== undefined && 'result' in only
        ? only.result
        : { ok: runs.every(isHealthy), results: runs.map(bodyOf) },
    names: runs.filter((run) => !isHealthy(run)).map(({ agent }) => agentHandle(agent)),
    view: viewOf(runs, globals.verbose || isSingle),
    exitStatus: runs.every(isHealthy) ? EXIT.done : alike ? first : EXIT.error,
  };
}

const bodyOf = (run: Verified) => ({
  node_id: run.agent.node_id,
  name: run.agent.name,
  ok: 'result' in run && run.result.ok,
  checks: 'result' in run ? run.result.checks : [],
  error: 'result' in run ? run.result.error : { code: run.fault.code, message: run.fault.message },
});

function viewOf(runs: readonly Verified[], verbose: boolean): View {
  if (runs.length === 0) return lines('No agent matches, so there is nothing to do.');
  const healthy = runs.filter((run) => 'result' in run && run.result.ok).length;
  const total = `${count(runs.length, 'agent')}: ${healthy} healthy, ${runs.length - healthy} not.`;
  return stackOf([...runs.map((run) => linesOf(agentLines(run, verbose))), ...(runs.length > 1 ? [lines(total)] : [])]);
}

function agentLines(run: Verified, verbose: boolean): readonly Line[] {
  const head = styled('strong', agentName(run.agent));
  if ('fault' in run) return [[head, ': ', styled('bad', run.fault.message)]];
  const { checks, error } = run.result;
  if (checks.length === 0) return [[head, ': no health checks']];
  // A failed check explains itself below.
  const shown = error === null || error.code === 'verify_failed' ? [] : textLines(error.message);
  return [
    head,
    ...checkLines(checks, verbose),
    ...shown.map((line): Line => [styled('bad', '  error: '), ...spansOf(line)]),
  ];
}
