/** The view and the outcome of runs: agents with equal results in one group, and the totals last. */

import { NOTHING } from '../../contract/run-targets.js';
import { fewOf } from '../../kernel/few-of.js';
import type { CheckResult } from '../../resources/checks/check.js';
import { agentHandle, agentName, count } from '../format.js';
import {
  type Line,
  lines,
  linesOf,
  type Outcome,
  type Span,
  stack,
  stackOf,
  styled,
  textLines,
  type View,
} from '../outcome.js';
import { checkLines } from '../render/check-lines.js';
import { spansOf } from '../render/paint.js';
import { countLines, planLines, type RunKind } from '../render/plan-lines.js';
import { confirmLines, restoredLines } from '../render/undoing-lines.js';
import { type AgentRun, exitStatusOfRuns, hasResult, type Result, runsBody, standingOf } from './agent-run.js';

interface RunsOptions {
  readonly kind: RunKind;
  readonly verbose: boolean;
  /** Seconds after the apply in which the machine has to come back; null for those of the modules. */
  readonly confirmSecs?: number | null;
}

/** Maximum number of listed names; the rest is counted. */
const NAMED = 10;

export function runsView(runs: readonly AgentRun[], options: RunsOptions): View {
  const shown = runs.length === 1 || options.verbose ? runs : runs.filter(isNoteworthyRun);
  const groups = new Map<string, AgentRun[]>();
  for (const run of shown) {
    const key = JSON.stringify(sameness(run));
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [run]);
    else group.push(run);
  }
  const parts = [...groups.values()].map((group) => linesOf(groupLines(group, options)));
  if (runs.length === 0) return lines('No agent matches, so there is nothing to do.');
  return stackOf([...parts, ...(runs.length > 1 ? [lines(totals(runs, options.kind))] : [])]);
}

const isNoteworthyRun = (run: AgentRun): boolean =>
  !hasResult(run) || run.result.has_changes || standingOf(run) !== 'succeeded';

/** Returns what must be equal for two agents to share a group. */
function sameness(run: AgentRun): unknown {
  if (!hasResult(run)) return [run.fault.code, withoutAgent(run.fault.message, run)];
  const { status, resources, error, summary } = run.result;
  const checks = checksOf(run.result).map(({ duration_ms: _, ...check }) => check);
  return [
    inputsOf(run.result),
    status,
    error,
    summary,
    checks,
    resources.map(({ duration_ms: _, ...resource }) => resource),
  ];
}

const withoutAgent = (text: string, { agent }: AgentRun): string =>
  text.replaceAll(agent.node_id, '…').replaceAll(agent.name ?? agent.node_id, '…');

function groupLines(group: readonly AgentRun[], { kind, verbose, confirmSecs = null }: RunsOptions): readonly Line[] {
  const [first] = group;
  if (first === undefined) return [];
  const head = styled('strong', namesOf(group));
  if (!hasResult(first)) return [[head, ': ', styled('bad', first.fault.message)], ...hintLines(first.fault.hint)];
  const { resources, error } = first.result;
  const warnings = 'warnings' in first.result ? first.result.warnings : [];
  const notes = 'notes' in first.result ? (first.result.notes ?? []) : [];
  const inputs = inputsOf(first.result);
  return [
    [head, ...headSpans(group, first.result, kind)],
    // An apply shows no details: the operator has seen the plan, or skipped it.
    ...planLines(resources, { verbose, details: verbose || kind !== 'apply' }),
    ...(error === null ? [] : textLines(error.message).map((line) => [styled('bad', '  error: '), ...spansOf(line)])),
    ...warnings.map(
      (warning): Line => [
        styled('warn', '  warning: '),
        `${warning.module}:${warning.line}:${warning.column}: ${warning.message}`,
      ],
    ),
    ...notes.map((note): Line => [styled('warn', '  note: '), note]),
    ...(inputs.length === 0
      ? []
      : [[styled('warn', '  note: '), `with values for this apply alone: ${fewOf(inputs)}`]]),
    ...trialLines(first, kind),
    ...('plan_hash' in first.result && kind === 'plan' ? confirmLines(first.result, confirmSecs) : []),
    ...('restored' in first.result ? restoredLines(first.result) : []),
    ...countLines(kind, first.result),
    ...checkLines(checksOf(first.result), verbose),
  ];
}

/** Returns that a drift check compared with what is on trial, and that a plan ends a trial. */
function trialLines(
  { agent: { trial }, result }: Extract<AgentRun, { readonly result: unknown }>,
  kind: RunKind,
): Line[] {
  const ended = 'ends_trial' in result ? (result.ends_trial ?? []) : [];
  const note = (text: string): Line => [styled('warn', '  note: '), text];
  return [
    ...(ended.length === 0 || kind !== 'plan' ? [] : [note(`ends the trial of ${ended.join(', ')}`)]),
    ...(trial == null || kind !== 'drift'
      ? []
      : [
          note(
            `on trial: compared with ${trial.modules.map(({ module }) => module).join(', ')} as tried, not published`,
          ),
        ]),
  ];
}

const checksOf = (result: Result): readonly CheckResult[] => ('checks' in result ? (result.checks ?? []) : []);

const hintLines = (hint = ''): readonly Line[] =>
  textLines(hint).map((line, index) => [styled('dim', index === 0 ? '  hint: ' : '        '), ...spansOf(line)]);

const SUCCESSES: readonly string[] = ['succeeded', 'in_sync', 'drifted'];

/** Renders an unsuccessful status, the operation of a single apply, and the operation that it goes back to. */
function headSpans(group: readonly AgentRun[], result: Result, kind: RunKind): readonly Span[] {
  const { status, operation_id } = result;
  const restores = 'restores' in result ? result.restores : undefined;
  const unusual = SUCCESSES.includes(status) ? [] : [styled('bad', ` ${status}`)];
  const named = group.length === 1 && kind === 'apply' && operation_id !== null;
  return [
    ...unusual,
    ...(named ? [styled('dim', `  operation ${operation_id}`)] : []),
    ...(restores == null ? [] : [styled('accent', `  back to ${restoredName(restores)}`)]),
  ];
}

const inputsOf = (result: Result): readonly string[] => ('value_inputs' in result ? (result.value_inputs ?? []) : []);

/** Names an earlier desired state. */
export const restoredName = (restores: string): string =>
  restores === NOTHING ? 'no desired state' : `the desired state of operation ${restores}`;

function namesOf(group: readonly AgentRun[]): string {
  const names = group.map(({ agent }) => agentName(agent));
  if (names.length === 1) return names.join('');
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${names.slice(0, NAMED).join(', ')}${more} (${count(names.length, 'agent')})`;
}

function totals(runs: readonly AgentRun[], kind: RunKind): Line {
  const succeeded = runs.filter((run) => standingOf(run) === 'succeeded');
  const changes = succeeded.filter((run) => hasResult(run) && run.result.has_changes).length;
  const failed = runs.filter((run) => standingOf(run) === 'failed').length;
  const offline = runs.filter((run) => standingOf(run) === 'unreachable').length;
  const skipped = runs.filter((run) => standingOf(run) === 'skipped').length;
  const changed = { plan: 'to change', apply: 'changed', drift: 'drifted' }[kind];
  const same = { plan: 'with nothing to do', apply: 'unchanged', drift: 'in sync' }[kind];
  const all: readonly (readonly [number, Line])[] = [
    [changes, `${changes} ${changed}`],
    [succeeded.length - changes, `${succeeded.length - changes} ${same}`],
    [failed, styled('bad', `${failed} failed`)],
    [offline, styled('warn', `${offline} offline`)],
    [skipped, styled('warn', `${skipped} not started`)],
  ];
  const parts = all.filter(([number]) => number > 0).map(([, line]) => line);
  const spans = parts.flatMap((line, index) => [index === 0 ? '' : ', ', ...spansOf(line)]);
  return [styled('strong', `${count(runs.length, 'agent')}: `), ...spans, '.'];
}

interface RunOutcomeOptions {
  readonly kind: RunKind;
  /** True if changes give the exit status 2. */
  readonly detailed: boolean;
  readonly verbose: boolean;
  /** True if an assignment or selector chose the agents: the body is then a fleet's, even for a single one. */
  readonly fleet?: boolean;
  readonly confirmSecs?: number | null;
}

/** Builds the outcome of runs. `-o name` prints the agents with changes. */
export function runOutcome(
  runs: readonly AgentRun[],
  { kind, detailed, verbose, fleet = false, confirmSecs = null }: RunOutcomeOptions,
): Outcome {
  const [only] = runs;
  const isSingle = !fleet && runs.length === 1 && only !== undefined && hasResult(only);
  return {
    body: isSingle ? only.result : runsBody(runs),
    names: runs.filter((run) => hasResult(run) && run.result.has_changes).map(({ agent }) => agentHandle(agent)),
    view: runsView(runs, { kind, verbose, confirmSecs }),
    exitStatus: exitStatusOfRuns(runs, detailed),
  };
}

/** Adds lines below a view. */
export const withLines = (outcome: Outcome, added: readonly string[]): Outcome =>
  added.length === 0 || outcome.view === undefined
    ? outcome
    : { ...outcome, view: stack(outcome.view, lines(...added)) };
