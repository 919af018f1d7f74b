/** How a command ended on an agent: as exit status, in words, as JSON, and in the summary of a fleet. */
import { constants } from 'node:os';
import type { Agent } from '../../contract/agents.js';
import type { Fault } from '../../kernel/fault.js';
import type { Exit, ExitReason } from '../../terminal/exit.js';
import { EXIT, exitStatusOfCode, exitStatusOfFailure } from '../exit-status.js';
import { agentName, count } from '../format.js';
import { type Line, type Span, styled } from '../outcome.js';

export type ExecEnd =
  /** The command ended; `complete` if all output that the agent has read arrived. */
  | { readonly kind: 'exit'; readonly exit: Exit; readonly complete: boolean }
  /** It did not start, or its connection was lost. */
  | { readonly kind: 'fault'; readonly fault: Fault }
  | { readonly kind: 'skipped'; readonly why: string };

export interface ExecResult {
  readonly agent: Agent;
  readonly end: ExecEnd;
}

type ExecStanding = 'succeeded' | 'failed' | 'unreachable' | 'skipped';

/** Returns the command's own exit status if it has one. Never returns 0 in doubt. */
export function exitStatusOfEnd(end: ExecEnd): number {
  if (end.kind === 'fault') return exitStatusOfFailure(exitStatusOfCode(end.fault.code), EXIT.lost);
  if (end.kind !== 'exit') return EXIT.lost;
  const { reason, code, signal } = end.exit;
  if (reason === 'timed_out') return EXIT.timedOut;
  if (reason === 'closed' || reason === 'operator_removed') return EXIT.closed;
  if (reason !== 'exited') return EXIT.lost;
  if (signal !== null) return signalStatus(signal);
  return code === null || (code === 0 && !end.complete) ? EXIT.lost : code;
}

export function statusOfEnd(end: ExecEnd): ExecStanding {
  if (end.kind === 'skipped') return 'skipped';
  if (end.kind === 'fault' && exitStatusOfCode(end.fault.code) === EXIT.offline) return 'unreachable';
  return exitStatusOfEnd(end) === EXIT.done ? 'succeeded' : 'failed';
}

/** Returns the exit status of a fleet. */
export function exitStatusOfEnds(ends: readonly ExecEnd[]): number {
  const failures = ends.map(statusOfEnd).filter((status) => status !== 'succeeded');
  if (failures.length === 0) return EXIT.done;
  return failures.every((status) => status === 'unreachable') ? EXIT.offline : EXIT.partlyFailed;
}

/** Describes an end: `exit status 3`, `ended by signal TERM`, or the message of a fault; '' for success. */
export function wordsOfEnd(end: ExecEnd): string {
  if (end.kind === 'skipped') return `not started: ${end.why}`;
  if (end.kind === 'fault') return end.fault.message;
  const { reason, code, signal } = end.exit;
  const incomplete = end.complete ? '' : ', and the end of its output is missing';
  if (reason !== 'exited') return REASONS[reason] + incomplete;
  if (signal !== null) return `ended by signal ${signal}${incomplete}`;
  return code === 0 && end.complete ? '' : `exit status ${code ?? 'unknown'}${incomplete}`;
}

const REASONS: Readonly<Record<Exclude<ExitReason, 'exited'>, string>> = {
  timed_out: 'timed out, and was ended',
  closed: 'ended by an operator',
  idle: 'ended after too much idle time',
  detached: 'ended after too long without an attached operator',
  expired: 'ended after its maximum duration',
  operator_removed: 'ended because its operator was removed, or lost the right to it',
  recording_failed: 'ended because it could not be recorded',
  disabled: 'ended because terminals were disabled on the agent',
  agent_lost: 'interrupted because the agent was lost',
  agent_stopped: 'interrupted because the agent was stopped',
  agent_rejected: 'interrupted because the agent was rejected',
  failed: 'could not be started',
};

function signalStatus(signal: string): number {
  const number = Object.entries(constants.signals).find(([name]) => name === `SIG${signal}`)?.[1];
  return number === undefined ? EXIT.lost : 128 + number;
}

/** The beginning of a command's output. */
interface ShownOutput {
  text(stream: 'out' | 'err'): string;
  readonly truncated: boolean;
}

/** Returns the JSON body of a result. `exit_status` is the status that `orch exec` of this agent alone ends with. */
export function execBody(result: ExecResult, output: ShownOutput): Readonly<Record<string, unknown>> {
  const { agent, end } = result;
  const exit = end.kind === 'exit' ? end.exit : null;
  return {
    node_id: agent.node_id,
    name: agent.name,
    exit_status: exitStatusOfEnd(end),
    exit_code: exit?.code ?? null,
    signal: exit?.signal ?? null,
    reason: exit?.reason ?? null,
    complete: end.kind === 'exit' && end.complete && end.exit.output_open !== true,
    stdout: output.text('out'),
    stderr: output.text('err'),
    truncated: output.truncated,
    error:
      exit !== null ? null : { code: end.kind === 'fault' ? end.fault.code : 'cancelled', message: wordsOfEnd(end) },
  };
}

/** Maximum number of listed names; the rest is counted. */
const NAMED = 10;

const LOOKS: Readonly<Record<ExecStanding, readonly ['good' | 'bad' | 'warn', string]>> = {
  succeeded: ['good', 'succeeded'],
  failed: ['bad', 'failed'],
  unreachable: ['warn', 'offline'],
  skipped: ['warn', 'not started'],
};

export function summaryLines(results: readonly ExecResult[]): readonly Line[] {
  const groups = new Map<string, ExecResult[]>();
  for (const result of results) {
    if (statusOfEnd(result.end) === 'succeeded') continue;
    const isOffline = statusOfEnd(result.end) === 'unreachable';
    const words = isOffline ? 'offline' : withoutAgent(wordsOfEnd(result.end), result);
    groups.set(words, [...(groups.get(words) ?? []), result]);
  }
  return [...[...groups].map(([words, group]): Line => [styled('bad', words), `: ${namesOf(group)}`]), totals(results)];
}

/** Lists agents: `web-01, web-02 and 3 more (5 agents)`. */
export function namesOf(results: readonly Pick<ExecResult, 'agent'>[]): string {
  const names = results.map(({ agent }) => agentName(agent));
  if (names.length === 1) return names.join('');
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${names.slice(0, NAMED).join(', ')}${more} (${count(names.length, 'agent')})`;
}

function totals(results: readonly ExecResult[]): Line {
  const spans: Span[] = [];
  for (const status of ['succeeded', 'failed', 'unreachable', 'skipped'] as const) {
    const number = results.filter(({ end }) => statusOfEnd(end) === status).length;
    if (number === 0) continue;
    const [style, word] = LOOKS[status];
    spans.push(...(spans.length === 0 ? [] : [', ']), styled(style, `${number} ${word}`));
  }
  return [styled('strong', `${count(results.length, 'agent')}: `), ...spans, '.'];
}

/** Masks the agent's name in a message, so that equal failures fall into one group. */
export const withoutAgent = (text: string, { agent }: Pick<ExecResult, 'agent'>): string =>
  text.replaceAll(agent.node_id, '…').replaceAll(agent.name ?? agent.node_id, '…');
