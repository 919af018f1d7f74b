/** Runs a plan, an apply or a drift check on agents at a pace, and reports the progress. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { RunEvent, RunResult } from '../../contract/runs.js';
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import { type WalkResult, walk } from '../../kernel/walk.js';
import type { ResourceResult } from '../../resources/result.js';
import type { Context } from '../context.js';
import { integer } from '../define-command.js';
import { agentName, count } from '../format.js';
import type { RunModules } from '../modules/send-modules.js';
import { isNoteworthy, type RunKind, resourceName } from '../render/plan-lines.js';
import { type AgentRun, hasResult, type Result, type RunAgent, standingOf } from './agent-run.js';

export interface Work {
  readonly kind: RunKind;
  readonly agents: readonly Agent[];
  readonly pace?: Pace;
  /** True if an assignment or selector chose the agents: faults then stay with their agent, even for a single one. */
  readonly fleet?: boolean;
  /** Returns the reason why no further agent starts; null while they may. */
  stopReason?(): string | null;
  run(agent: Agent, progress: RunProgress): Promise<Result>;
}

/** Default number of agents in parallel. */
const AT_ONCE = 8;

/** Faults that fail the whole command. */
const FATAL = ['unauthenticated', 'role_forbidden', 'admin_required', 'unreachable', 'tls_mismatch'] as const;

/** Runs work on agents. Returns faults with their agent; throws those of a single named agent and those that concern all agents. */
export async function runAgents(context: Context, work: Work): Promise<readonly AgentRun[]> {
  const { kind, agents, pace = {}, fleet = false } = work;
  const progress = createRunProgress(context, kind, agents.length);
  const thrown: unknown[] = [];
  const runs = await walk<Agent, Visit>({
    agents,
    concurrency: pace.concurrency ?? AT_ONCE,
    canary: pace.canary ?? 0,
    maxFailures: pace.maxFailures ?? null,
    isConnected: ({ connected }) => connected,
    stopReason: () => (thrown.length > 0 ? 'not started: the command fails' : (work.stopReason?.() ?? null)),
    run: async (agent) => {
      try {
        return visitOf({ agent, result: await work.run(agent, progress) });
      } catch (error) {
        if ((agents.length === 1 && !fleet) || !isFault(error) || isFatal(error)) thrown.push(error);
        return visitOf({ agent, fault: isFault(error) ? error : new Fault('internal', messageOf(error)) });
      }
    },
    skip: (agent, why) => visitOf({ agent, fault: new Fault('rollout_stopped', why) }),
    onResult: async ({ run }) => {
      if (thrown.length === 0) progress.finished(run);
    },
  });
  if (thrown.length > 0) throw thrown[0];
  return runs.map(({ run }) => run);
}

interface Visit extends WalkResult {
  readonly run: AgentRun;
}

const visitOf = (run: AgentRun): Visit => ({ run, status: standingOf(run) });

const isFatal = (fault: Fault): boolean =>
  FATAL.some((code) => code === fault.code && fault.data?.operation_id === undefined);

/** Plans on agents. Stores nothing. */
export async function planAgents(
  context: Context,
  api: ApiClient,
  { agents, modules, pace, fleet }: RunTargets,
): Promise<readonly AgentRun[]> {
  // Loaded here, because drift checks and the list of operations need no modules.
  const { planBody } = await import('../modules/send-modules.js');
  const body = planBody(modules);
  return runAgents(context, {
    kind: 'plan',
    agents,
    ...(pace === undefined ? {} : { pace }),
    ...(fleet === undefined ? {} : { fleet }),
    run: (agent, progress) => {
      const params = { node_id: agent.node_id };
      const stream = api.stream('planAgent', { params, body, signal: context.signal });
      return followRun(stream, { resource: (resource) => progress.resource(agent, resource) });
    },
  });
}

export interface RunTargets extends Pick<Work, 'pace' | 'fleet'> {
  readonly agents: readonly Agent[];
  readonly modules: RunModules;
}

export const paceOptions = {
  concurrency: integer('N', 'most agents at a time [8; 32 with --assignment]; a bound starts with one', 1),
  canary: integer('N', 'number of connected agents that go first; the rest starts when all of them have succeeded'),
  maxFailures: integer('N', 'start no further agent once N have failed; never more in flight than may still fail', 1),
} as const;

/** Pace of a run; undefined members take the defaults of `paceOptions`. */
export interface Pace {
  readonly concurrency?: number | undefined;
  readonly canary?: number | undefined;
  readonly maxFailures?: number | undefined;
}

interface RunProgress {
  resource(agent: RunAgent, resource: ResourceResult): void;
  finished(run: AgentRun): void;
}

const DOING: Readonly<Record<RunKind, string>> = { plan: 'planning', apply: 'applying', drift: 'checking' };
/** Words for resources with changes. */
const FOUND: Readonly<Record<RunKind, string>> = { plan: 'to change', apply: 'changed', drift: 'different' };

/** Reports progress: by resource for a single agent, by agent for several. `agents` is their number. */
export function createRunProgress({ progress, globals }: Context, kind: RunKind, agents: number): RunProgress {
  let finished = 0;
  let resources = 0;
  let changes = 0;
  const tell = (last: string) => {
    const done = agents === 1 ? '' : `${bar(finished, agents)} ${finished} of ${count(agents, 'agent')}, `;
    progress.live(`${DOING[kind]}: ${done}${count(resources, 'resource')}, ${count(changes, 'change')}  ${last}`);
  };
  return {
    resource: (agent, resource) => {
      resources += 1;
      if (isNoteworthy(resource)) changes += 1;
      const name = `${agentName(agent)}: ${resource.status} ${resourceName(resource)}`;
      tell(name);
      if (agents > 1 || kind !== 'apply') return;
      if (globals.verbose || isNoteworthy(resource)) progress.step(name);
    },
    finished: (run) => {
      finished += 1;
      tell(agentName(run.agent));
      if (agents > 1) progress.step(`${agentName(run.agent)}: ${standing(run, kind)}`);
    },
  };
}

function standing(run: AgentRun, kind: RunKind): string {
  if (!hasResult(run)) return run.fault.message;
  const { changed, pending, failed, unchanged } = run.result.summary;
  const counts = `${changed + pending} ${FOUND[kind]}, ${failed} failed, ${unchanged} unchanged`;
  return `${standingOf(run)} (${counts})`;
}

const WIDTH = 20;
const bar = (done: number, all: number): string => {
  const filled = Math.round((done / all) * WIDTH);
  return `[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}]`;
};

interface Follower {
  started?(operationId: string): void;
  resource(resource: ResourceResult): void;
}

/**
 * Follows the stream of a run and returns its result. Throws the fault of the stream; after a lost connection or an expired
 * session its hint says how to keep watching.
 */
export async function followRun(
  stream: AsyncIterable<Exclude<RunEvent, { readonly event: 'error' }>>,
  follower: Follower,
): Promise<RunResult> {
  let operation: string | null = null;
  try {
    for await (const line of stream) {
      if (line.event === 'result') return line.result;
      if (line.event === 'resource') follower.resource(line.resource);
      else if (line.operation_id !== null) {
        operation = line.operation_id;
        follower.started?.(operation);
      }
    }
  } catch (error) {
    throw operation !== null && isFault(error, 'unreachable', 'unauthenticated') ? lost(operation, error) : error;
  }
  throw operation === null ? new Fault('unreachable', 'the orchestrator ended the answer too early') : lost(operation);
}

/** Returns the fault of a lost stream. `cause` is `unauthenticated` for an expired session, else the connection error. */
function lost(operation: string, cause?: Fault): Fault {
  const isExpired = isFault(cause, 'unauthenticated');
  const what = isExpired ? 'the session ended' : 'the connection broke';
  return new Fault(
    isExpired ? 'unauthenticated' : 'unreachable',
    `${what} while operation ${operation} was running; it goes on without it`,
    { hint: `watch it with: orch ops watch ${operation}`, cause, data: { operation_id: operation } },
  );
}
