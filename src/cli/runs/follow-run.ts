/** Follows the stream of a plan or an apply of one agent, and shows the progress of runs. */
import type { ApiClient } from '../../client/api-client.js';
import type { RunEvent, RunResult } from '../../contract/runs.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { ResourceResult, Summary } from '../../resources/result.js';
import type { Context } from '../context.js';
import { agentName, count } from '../format.js';
import { isNoteworthy, type RunKind, resourceName } from '../render/plan-lines.js';
import { type AgentRun, hasResult, type RunAgent, standingOf } from './agent-run.js';
import { throughCuts } from './through-cuts.js';

/** The members of a resource that the progress shows. */
type ShownResource = Pick<ResourceResult, 'kind' | 'identity' | 'status'>;

export interface RunProgress {
  resource(agent: RunAgent, resource: ShownResource): void;
  /** Shows that everything is applied and the machine has to come back. */
  awaiting(agent: RunAgent, leftSecs: number): void;
  /** Stops showing that. */
  end(): void;
  finished(run: AgentRun): void;
  /** Reports the end of an agent whose result is not at hand. */
  ended(agent: RunAgent, words: string): void;
  /** Shows what the whole rollout does now, such as its wave; '' for nothing. */
  stage(words: string): void;
}

/** Resources of one agent so far. */
interface Counts {
  readonly resources: number;
  readonly changes: number;
}

const DOING: Readonly<Record<RunKind, string>> = { plan: 'planning', apply: 'applying', drift: 'checking' };
/** Words for resources with changes. */
const FOUND: Readonly<Record<RunKind, string>> = { plan: 'to change', apply: 'changed', drift: 'different' };

/** Reports progress: by resource for a single agent, by agent for several. `agents` is their number. */
export function createRunProgress({ progress, globals, clock }: Context, kind: RunKind, agents: number): RunProgress {
  const finished = new Set<string>();
  let stage = '';
  let resources = 0;
  let changes = 0;
  let countdown: NodeJS.Timeout | undefined;
  const counts = new Map<string, Counts>();
  const countsOf = ({ node_id }: RunAgent): Counts => counts.get(node_id) ?? { resources: 0, changes: 0 };
  const report = (agent: RunAgent, now: Counts) => {
    const before = countsOf(agent);
    resources += now.resources - before.resources;
    changes += now.changes - before.changes;
    counts.set(agent.node_id, now);
  };
  const tell = (last: () => string) => {
    progress.live(() => {
      const { size } = finished;
      const done = agents === 1 ? '' : `${bar(size, agents)} ${size} of ${count(agents, 'agent')}, `;
      const now = stage === '' ? '' : `${stage}, `;
      return `${DOING[kind]}: ${done}${now}${count(resources, 'resource')}, ${count(changes, 'change')}  ${last()}`;
    });
  };
  const ended = (agent: RunAgent, words: string) => {
    finished.add(agent.node_id);
    tell(() => agentName(agent));
    if (agents > 1) progress.step(`${agentName(agent)}: ${words}`);
  };
  return {
    resource: (agent, resource) => {
      const before = countsOf(agent);
      report(agent, {
        resources: before.resources + 1,
        changes: before.changes + (isNoteworthy(resource) ? 1 : 0),
      });
      const name = () => `${agentName(agent)}: ${resource.status} ${resourceName(resource)}`;
      tell(name);
      if (agents > 1 || kind !== 'apply') return;
      if (globals.verbose || isNoteworthy(resource)) progress.step(name());
    },
    awaiting: (agent, leftSecs) => {
      const until = clock.monotonic() + leftSecs * 1000;
      const left = () => Math.max(0, Math.round((until - clock.monotonic()) / 1000));
      const line = () => `applied: waiting for ${agentName(agent)} to come back (${left()} s left)`;
      progress.live(line);
      progress.step(line());
      clearInterval(countdown);
      countdown = setInterval(() => progress.live(line), 1000);
      countdown.unref();
    },
    end: () => clearInterval(countdown),
    finished: (run) => {
      if (hasResult(run)) {
        const all = run.result.resources;
        report(run.agent, { resources: all.length, changes: all.filter(isNoteworthy).length });
      }
      ended(run.agent, standing(run, kind));
    },
    ended,
    stage: (words) => {
      if (words === stage) return;
      stage = words;
      tell(() => '');
      if (words !== '') progress.step(words);
    },
  };
}

const standing = (run: AgentRun, kind: RunKind): string =>
  hasResult(run) ? `${standingOf(run)} (${summaryWords(run.result.summary, kind)})` : run.fault.message;

/** Returns the numbers of resources in words. */
export const summaryWords = ({ changed, pending, failed, unchanged }: Summary, kind: RunKind): string =>
  `${changed + pending} ${FOUND[kind]}, ${failed} failed, ${unchanged} unchanged`;

const WIDTH = 20;
const bar = (done: number, all: number): string => {
  const filled = Math.round((done / all) * WIDTH);
  return `[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}]`;
};

type Lines = AsyncIterable<Exclude<RunEvent, { readonly event: 'error' }>>;

interface Follower {
  started?(operationId: string): void;
  resource(resource: ResourceResult): void;
  awaiting?(leftSecs: number): void;
}

/** How to follow an operation after its connection was lost. */
interface Resumption {
  /** Opens the stream of the stored operation, which repeats its resources. */
  readonly again: (operationId: string) => Lines;
  readonly onCut: (operationId: string) => void;
  readonly signal: AbortSignal;
}

/** Returns how to follow an operation of an apply again, with a note for each cut. */
export const resumption = (context: Context, api: ApiClient, signal: AbortSignal): Resumption => ({
  again: (operation_id) => api.stream('getOperation', { params: { operation_id }, signal }),
  onCut: (id) => context.note(`The connection broke; operation ${id} goes on, and is followed again.`),
  signal,
});

/**
 * Follows the stream of a run and returns its result. Throws the fault of the stream; after a lost connection or an expired
 * session its hint says how to keep watching.
 * @param resume follows the operation again after such an end [default: not]
 */
export async function followRun(stream: Lines, follower: Follower, resume?: Resumption): Promise<RunResult> {
  let operation: string | null = null;
  let at = 0;
  let shown = 0;
  const lines =
    resume === undefined
      ? stream
      : throughCuts(
          stream,
          whileKnown(resume, () => operation),
        );
  try {
    for await (const line of lines) {
      if (line.event === 'result') return line.result;
      if (line.event === 'resource') {
        at += 1;
        if (at <= shown) continue;
        shown = at;
        follower.resource(line.resource);
      } else if (line.event === 'awaiting') follower.awaiting?.(line.left_secs);
      else {
        // Each stream begins with it, and repeats the resources.
        at = 0;
        if (line.operation_id === null || line.operation_id === operation) continue;
        operation = line.operation_id;
        follower.started?.(operation);
      }
    }
  } catch (error) {
    throw operation !== null && isFault(error, 'unreachable', 'unauthenticated', 'shutting_down')
      ? lost(operation, error)
      : error;
  }
  throw operation === null ? new Fault('unreachable', 'the orchestrator ended the answer too early') : lost(operation);
}

function whileKnown({ again, onCut, signal }: Resumption, known: () => string | null) {
  return {
    again: () => {
      const id = known();
      return id === null ? null : () => again(id);
    },
    onCut: () => onCut(known() ?? ''),
    signal,
  };
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
