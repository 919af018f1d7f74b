/** Follows the stream of a rollout: the one of the request that begins it, or that of a stored rollout. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient, SuccessBody } from '../../client/api-client.js';
import { retryAfterMs } from '../../client/http-messages.js';
import type { Rollout, RolloutEvent, RolloutRecord, RolloutResult } from '../../contract/rollouts.js';
import type { RunResult } from '../../contract/runs.js';
import { Fault, isFault, isFaultCode } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import type { Fleet } from '../nodes/choose-agents.js';
import type { RunKind } from '../render/plan-lines.js';
import { type AgentRun, hasResult, type RunAgent, standingOf } from './agent-run.js';
import { createRunProgress, type RunProgress, summaryWords } from './follow-run.js';
import { showsResources } from './pace.js';
import { isSettled, rolloutStage } from './rollout-record.js';
import { throughCuts } from './through-cuts.js';

export interface RolloutRuns {
  /** Null if no rollout was started. */
  readonly rollout: Rollout | null;
  /** The newest record in the stream; null for a plan, which has none. */
  readonly record: RolloutRecord | null;
  readonly runs: readonly AgentRun[];
}

type Lines = AsyncIterable<Exclude<RolloutEvent, { readonly event: 'error' }>>;

interface Followed {
  readonly kind: RunKind;
  readonly fleet: Fleet;
}

/** Follows the stream of a request. Throws its fault; that of a broken connection says how to keep watching an apply. */
export async function followRequest(
  context: Context,
  { kind, fleet }: Followed,
  stream: Lines,
  onStarted: (id: string, agents: number) => void = () => {},
  again: RolloutAgain | null = null,
): Promise<RolloutRuns> {
  const known = new Map(fleet.kind === 'agents' ? fleet.agents.map((agent) => [agent.node_id, agent] as const) : []);
  const agentOf = (named: Pick<RolloutResult, 'node_id' | 'name'>): RunAgent =>
    known.get(named.node_id) ?? unknownAgent(named);
  const runs = new Map<string, AgentRun>();
  let record: RolloutRecord | null = null;
  let progress = createRunProgress(context, kind, 0);
  let id: string | null = null;
  const cuts = {
    again: () => (id === null || again === null ? null : again.open(id)),
    onCut: () => progress.stage('waiting for the orchestrator'),
    signal: again?.signal ?? context.signal,
  };
  try {
    for await (const line of throughCuts(stream, cuts)) {
      if (line.event === 'started') {
        if (id === line.rollout_id) continue;
        id = line.rollout_id;
        onStarted(id, line.agents);
        progress = createRunProgress(context, kind, line.agents);
      } else if (line.event === 'resource') {
        progress.resource(agentOf(line), line.resource);
      } else if (line.event === 'agent') {
        const run = runOf(agentOf(line.agent), line.agent);
        const isRepeated = endOf(runs.get(line.agent.node_id)) === endOf(run);
        runs.set(line.agent.node_id, run);
        if (!isRepeated) progress.finished(run);
      } else if (line.event === 'rollout') {
        warnOfValues(context, line.rollout, record);
        record = line.rollout;
        progress.stage(rolloutStage(record));
      } else {
        const { result } = line;
        return {
          rollout: result,
          record,
          runs: result.results.map((one) => runs.get(one.node_id) ?? runOf(agentOf(one), { ...one, result: null })),
        };
      }
    }
  } catch (error) {
    const isLost = id !== null && kind === 'apply' && isFault(error, ...LOST);
    throw isLost && id !== null ? lost(id, error) : error;
  }
  throw id === null || kind !== 'apply'
    ? new Fault('unreachable', 'the orchestrator ended the answer too early')
    : lost(id);
}

/** Warns when the record says that further stored values have changed. */
function warnOfValues(context: Context, now: RolloutRecord, before: RolloutRecord | null): void {
  const known = before?.value_changes ?? [];
  for (const { source, name, by, at } of now.value_changes ?? []) {
    if (known.some((one) => one.source === source && one.name === name && one.at === at)) continue;
    const what = source === 'values' ? `value set ${name}` : `the values of assignment ${name}`;
    context.warn(`${by} has changed ${what} during the rollout: agents that begin later get the new values`);
  }
}

/** How a rollout is followed again after its connection was lost. */
export interface RolloutAgain {
  readonly open: (id: string) => () => Lines;
  readonly signal: AbortSignal;
}

/** Returns what distinguishes one end of an agent from another. */
const endOf = (run: AgentRun | undefined): string | undefined =>
  run && `${standingOf(run)} ${hasResult(run) ? run.result.operation_id : run.reported?.operation_id}`;

/** Faults of a stream after which the rollout goes on, or is taken up again by the next start of the orchestrator. */
const LOST = ['unreachable', 'unauthenticated', 'shutting_down'] as const;

const unknownAgent = ({ node_id, name }: Pick<RolloutResult, 'node_id' | 'name'>): RunAgent => ({
  node_id,
  name,
  initial_hostname: '',
});

function runOf(agent: RunAgent, reported: RolloutResult & { readonly result: RunResult | null }): AgentRun {
  if (reported.result !== null) return { agent, result: reported.result };
  const { code, message, hint } = reported.error ?? {
    code: 'internal',
    message: `it ${reported.status}, without a reason`,
    hint: null,
  };
  const data = reported.operation_id === null ? {} : { operation_id: reported.operation_id };
  const options = hint === null ? { data } : { data, hint };
  return { agent, fault: new Fault(isFaultCode(code) ? code : 'internal', message, options), reported };
}

/** Returns the fault of a lost stream. `cause` is `unauthenticated` for an expired session, else the connection error. */
function lost(id: string, cause?: Fault): Fault {
  const isExpired = isFault(cause, 'unauthenticated');
  const what = isExpired ? 'the session ended' : 'the connection broke';
  return new Fault(
    isExpired ? 'unauthenticated' : 'unreachable',
    `${what} while rollout ${id} was under way; it goes on without it`,
    { hint: `watch it with: orch rollouts watch ${id}`, cause, data: { rollout_id: id } },
  );
}

export type RolloutDetail = SuccessBody<'getRollout'>;

/** Milliseconds between two attempts to reach the orchestrator. */
const PAUSE_MS = 1_000;
/** Attempts without any answer before `watchRollout` gives up. */
const ATTEMPTS = 300;

/**
 * Follows a stored rollout until it has ended or halted, and returns it then. Connects again after an expired session and while
 * the orchestrator restarts. Throws the fault of the first request.
 */
export async function watchRollout(context: Context, api: ApiClient, first: RolloutDetail): Promise<RolloutDetail> {
  const { signal } = context;
  const params = { rollout_id: first.rollout_id };
  const query = { progress: showsResources(context) };
  const progress = createRunProgress(context, 'apply', Math.max(2, first.counts.agents));
  const shown = new Map<string, string>();
  let record: RolloutRecord | null = null;
  let attempts = 0;
  let detail = first;
  while (!isOver(detail)) {
    let pause = PAUSE_MS;
    try {
      for await (const line of api.stream('getRollout', { params, query, signal })) {
        attempts = 0;
        if (line.event === 'result') break;
        if (line.event === 'rollout') {
          warnOfValues(context, line.rollout, record);
          record = line.rollout;
        }
        showLine(progress, line, shown);
      }
      detail = await api.call('getRollout', { params, signal });
    } catch (error) {
      if (signal.aborted || !isFault(error, ...LOST, 'store_unavailable')) throw error;
      if (attempts === 0) progress.stage('waiting for the orchestrator');
      attempts += 1;
      if (attempts > (isFault(error, 'unauthenticated') ? 1 : ATTEMPTS)) throw lost(first.rollout_id, error);
      pause = retryAfterMs(error, PAUSE_MS);
    }
    if (!isOver(detail)) await sleep(pause, undefined, { signal });
  }
  context.progress.end();
  return detail;
}

/** Returns whether nothing more happens by itself; applies in flight of a halted rollout still end. */
const isOver = (rollout: RolloutRecord): boolean => isSettled(rollout) && rollout.counts.running === 0;

type Line = Lines extends AsyncIterable<infer L> ? Exclude<L, { readonly event: 'result' }> : never;

/** Shows a line, unless the stream has only repeated it. `shown` has the last end of each agent by node ID. */
function showLine(progress: RunProgress, line: Line, shown: Map<string, string>): void {
  if (line.event === 'resource') progress.resource(unknownAgent(line), line.resource);
  else if (line.event === 'rollout') progress.stage(rolloutStage(line.rollout));
  else if (line.event === 'agent') {
    const { node_id, status, operation_id, summary, error } = line.agent;
    const end = `${status} ${operation_id}`;
    if (shown.get(node_id) === end) return;
    shown.set(node_id, end);
    const words = error?.message ?? (summary === null ? null : summaryWords(summary, 'apply'));
    progress.ended(unknownAgent(line.agent), words === null ? status : `${status} (${words})`);
  }
}
