/** Runs `orch exec` without a terminal: chooses how output is shown, and builds the outcome. */
import type { ApiClient } from '../../client/api-client.js';
import type { Context } from '../context.js';
import { EXIT } from '../exit-status.js';
import { agentHandle } from '../format.js';
import { type Outcome, type Outcomes, styled } from '../outcome.js';
import { loadPaint, wantsColor } from '../render/paint.js';
import { notWritten } from '../render/printer.js';
import type { InputStream } from '../render/streams.js';
import { execAgents, type FleetExec } from './exec-agents.js';
import {
  type ExecResult,
  execBody,
  exitStatusOfEnd,
  exitStatusOfEnds,
  statusOfEnd,
  summaryLines,
  wordsOfEnd,
} from './exec-end.js';
import { execInput, MOST_KEPT } from './exec-input.js';
import { RunningCommands } from './running-commands.js';
import {
  KeptOutput,
  OutputGroups,
  type OutputTargets,
  openOutlet,
  prefixedSink,
  prefixesFor,
  throughSink,
} from './sinks.js';

interface ExecPlan extends Pick<FleetExec, 'agents' | 'order' | 'batch'> {
  /** True for several agents or a selector: faults then stay with their agent, even for a single one. */
  readonly fleet: boolean;
  readonly group: boolean;
  /** Input of each command; null for none. */
  readonly input: InputStream | null;
}

/** How output is shown while commands run. */
type Show = Pick<FleetExec, 'sinkFor' | 'onEnd'>;

export async function execOutcome(context: Context, api: ApiClient, plan: ExecPlan): Promise<Outcomes> {
  const { output, quiet } = context.globals;
  const showsOutput = output === 'table' || output === 'wide' || (quiet && output === 'name');
  if (!showsOutput) return forPrograms(context, api, plan);
  return forPeople(context, api, plan);
}

/** Shows the output itself as the answer. */
async function forPeople(context: Context, api: ApiClient, plan: ExecPlan): Promise<Outcome> {
  const running = new RunningCommands(context, plan.fleet);
  const outlets = outletsOf(context, () => void running.end('the reader closed the output'));
  try {
    const groups = new OutputGroups();
    const show = plan.group ? showGroups(groups) : await showLive(outlets, plan);
    const results = await run(context, api, { ...plan, ...show, running });
    if (plan.group) await groups.print(outlets, await paintsOf(context));
    context.progress.end();
    if (outlets.out.closed) return closedOutcome(outlets);
    tellEnd(context, plan, results);
    return { exitStatus: statusOf(plan, results, running) };
  } catch (error) {
    if (outlets.out.closed && !context.signal.aborted) return closedOutcome(outlets);
    throw error;
  } finally {
    running.stop();
    outlets.out.stop();
    outlets.err.stop();
  }
}

/** Returns the outcome of a closed standard output. Throws if it failed for another reason than a closed reader. */
function closedOutcome({ out }: OutputTargets): Outcome {
  if (out.problem !== null) throw notWritten(out.problem);
  return { exitStatus: EXIT.brokenPipe };
}

/** Returns one object for one agent, and a stream with one object per agent for several. */
async function forPrograms(context: Context, api: ApiClient, plan: ExecPlan): Promise<Outcomes> {
  const running = new RunningCommands(context, plan.fleet);
  const outputs = new Map<unknown, KeptOutput>();
  const outcomeOf = (result: ExecResult): Outcome => {
    const output = outputs.get(result.agent) ?? new KeptOutput();
    outputs.delete(result.agent);
    const isGood = statusOfEnd(result.end) === 'succeeded';
    return { body: execBody(result, output), names: isGood ? [agentHandle(result.agent)] : [] };
  };
  const sinkFor: Show['sinkFor'] = (agent) => {
    const output = new KeptOutput();
    outputs.set(agent, output);
    return output;
  };
  if (!plan.fleet) {
    try {
      const [only] = await run(context, api, { ...plan, sinkFor, onEnd: async () => {}, running });
      if (only === undefined) return {};
      return { ...outcomeOf(only), exitStatus: exitStatusOfEnd(only.end) };
    } finally {
      running.stop();
    }
  }
  return streamOutcomes(
    async (hand) => {
      const onEnd: Show['onEnd'] = (result) => hand({ ...outcomeOf(result), oneLine: true });
      const results = await run(context, api, { ...plan, sinkFor, onEnd, running });
      return { exitStatus: statusOf(plan, results, running) };
    },
    () => running.stop(),
    () => running.end('the reader closed the output'),
  );
}

interface Running extends ExecPlan, Show {
  readonly running: RunningCommands;
}

async function run(context: Context, api: ApiClient, plan: Running): Promise<readonly ExecResult[]> {
  const { input: stdin, agents, running } = plan;
  const tooMuch = `more than ${MOST_KEPT / 2 ** 20} MiB of standard input would have to be kept for agents that begin later: raise --batch`;
  const onOverflow = () => void running.end(tooMuch);
  const input = stdin === null ? null : execInput({ stdin, readers: agents.length, onOverflow });
  const results = await Promise.race([execAgents(context, api, { ...plan, input }), running.left]);
  const [only] = results;
  // For a single named agent its fault is the answer.
  if (!plan.fleet && only?.end.kind === 'fault') throw only.end.fault;
  return results;
}

function outletsOf(context: Context, onClosed: () => void): OutputTargets {
  const { streams, progress, globals, env, color } = context;
  const onWrite = () => progress.end();
  return {
    out: openOutlet({ stream: streams.stdout, onWrite, onClosed }),
    err: openOutlet({ stream: streams.stderr, onWrite, onClosed: () => {} }),
    color: { out: color, err: wantsColor(env, globals.color, streams.stderr.isTTY === true) },
  };
}

async function showLive(outlets: OutputTargets, { agents, fleet }: ExecPlan): Promise<Show> {
  const onEnd = async () => {};
  if (!fleet) return { sinkFor: () => throughSink(outlets), onEnd };
  const prefixOf = await prefixesFor(agents, outlets.color);
  return {
    sinkFor: (agent) => prefixedSink(outlets, { out: prefixOf(agent, 'out'), err: prefixOf(agent, 'err') }),
    onEnd,
  };
}

function showGroups(groups: OutputGroups): Show {
  const outputs = new Map<unknown, KeptOutput>();
  return {
    sinkFor: (agent) => {
      const output = new KeptOutput();
      outputs.set(agent, output);
      return output;
    },
    onEnd: async (result) => {
      groups.add(result, outputs.get(result.agent) ?? new KeptOutput());
      outputs.delete(result.agent);
    },
  };
}

async function paintsOf({ color, env, globals, streams }: Context) {
  return {
    out: await loadPaint(color),
    err: await loadPaint(wantsColor(env, globals.color, streams.stderr.isTTY === true)),
  };
}

function tellEnd({ note }: Context, { fleet }: ExecPlan, results: readonly ExecResult[]): void {
  const [only] = results;
  if (fleet) for (const line of summaryLines(results)) note(line);
  // The exit status tells a failure. Only ends that the command cannot have reported itself are printed.
  else if (only?.end.kind === 'exit' && (only.end.exit.reason !== 'exited' || !only.end.complete)) {
    note([styled('bad', 'orch: '), `the command is over: ${wordsOfEnd(only.end)}`]);
  }
}

function statusOf({ fleet }: ExecPlan, results: readonly ExecResult[], { interrupted }: RunningCommands): number {
  const [only] = results;
  if (!fleet && only !== undefined) return exitStatusOfEnd(only.end);
  return interrupted ? EXIT.interrupted : exitStatusOfEnds(results.map(({ end }) => end));
}

/** Passes an outcome to the stream. Resolves once it is printed. */
type Hand = (outcome: Outcome) => Promise<void>;

/**
 * Makes a stream of outcomes from work that passes them on one by one.
 * @param work runs at once and returns the last outcome
 * @param finish called at the end in any case
 */
async function* streamOutcomes(
  work: (hand: Hand) => Promise<Outcome>,
  finish: () => void,
  onLeft: () => Promise<void>,
): AsyncGenerator<Outcome> {
  const waiting: { readonly outcome: Outcome; readonly printed: () => void }[] = [];
  let wake = () => {};
  let end: { readonly outcome: Outcome } | { readonly error: unknown } | null = null;
  const hand: Hand = (outcome) =>
    new Promise((resolve) => {
      waiting.push({ outcome, printed: resolve });
      wake();
    });
  void work(hand)
    .then(
      (outcome) => {
        end = { outcome };
      },
      (error: unknown) => {
        end = { error };
      },
    )
    .then(() => wake());
  const ended = () => end;
  let isLeft = true;
  try {
    for (;;) {
      const next = waiting.shift();
      if (next !== undefined) {
        yield next.outcome;
        next.printed();
        continue;
      }
      const last = ended();
      if (last !== null) {
        isLeft = false;
        if ('error' in last) throw last.error;
        yield last.outcome;
        return;
      }
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    if (isLeft) await onLeft();
    finish();
  }
}
