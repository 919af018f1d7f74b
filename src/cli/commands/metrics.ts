/** `orch metrics` and `orch top`: measurements of one agent, and of the fleet. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { METRICS_LIMIT } from '../../contract/metrics.js';
import { Fault } from '../../kernel/fault.js';
import type { MetricsSample } from '../../kernel/schema.js';
import type { Context } from '../context.js';
import { defineCommand } from '../define-command.js';
import {
  agentHandle,
  formatAge,
  formatBytes,
  formatDuration,
  formatTime,
  type TimeCell,
  timeCells,
} from '../format.js';
import { nextCursor } from '../list-pages.js';
import { isSelection, readEach, requireSelection, selectAgents, selectionOptions } from '../nodes/choose-agents.js';
import { optionalNodesArgument } from '../nodes/resolve-node.js';
import { choice, flag, text } from '../options.js';
import {
  type Column,
  fields,
  headed,
  type Line,
  lines,
  linesOf,
  type Outcome,
  styled,
  type TableView,
  type View,
} from '../outcome.js';
import { parseWhen } from '../parse-time.js';
import { bar, percent, percentOf, sparkline } from '../render/chart.js';
import { addMeasurements, fleetBody, readFleet, SORTS, sortFleet } from '../top/fleet.js';
import { snapshotView } from '../top/fleet-view.js';

/** Poll interval of `--watch` in milliseconds. The orchestrator measures at its own interval. */
const WATCH_EVERY = 2_000;

const METRICS_COLUMNS: readonly Column[] = [
  { title: 'AGENT', whole: true },
  { title: 'CPU', right: true, whole: true },
  { title: 'MEMORY', right: true, whole: true },
  { title: 'DISK', right: true, whole: true },
  { title: 'UPTIME' },
  { title: 'MEASURED' },
];

/** `orch metrics`: the measurements of an agent. */
export const showMetrics = defineCommand({
  examples: [
    'orch metrics web-01',
    'orch metrics -l role=web',
    'orch metrics web-01 --since 6h',
    'orch metrics web-01 --watch',
  ],
  detail: ['Shows the latest processors, memory, disk and uptime.'],
  access: 'viewer',
  columns: METRICS_COLUMNS,
  args: { nodes: optionalNodesArgument },
  options: {
    ...selectionOptions,
    history: flag('show earlier measurements'),
    since: text('TIME', 'with --history, start time: 2h, 2025-03-01, Unix seconds'),
    watch: flag('print each new measurement, until Ctrl-C', { short: 'w' }),
  },
  run: async (context, { history, since, watch, ...selection }) => {
    requireSelection(selection, 'metrics');
    const api = await context.api();
    const agents = await selectAgents(api, selection, context);
    const [agent] = agents;
    if (agent === undefined || agents.length > 1 || isSelection(selection)) {
      refuseForSeveral({ '--history': history, '--since': since !== undefined, '--watch': watch });
      return showLatest(context, api, agents);
    }
    if (watch) return follow(context, api, agent);
    if (history || since !== undefined) return showHistory(context, api, { agent, since });
    const sample = await api.call('getLatestMetrics', {
      params: { node_id: agent.node_id },
      signal: context.signal,
    });
    if (sample === undefined) return nothing(agent);
    return { body: sample, view: sampleView(agentHandle(agent), sample, context.clock.now()) };
  },
});

function refuseForSeveral(flags: Readonly<Record<string, boolean>>): void {
  const [flag] = Object.keys(flags).filter((name) => flags[name]);
  if (flag !== undefined) throw new Fault('usage', `${flag} shows one agent`, { hint: 'name it, or see: orch top' });
}

/** Shows the latest measurement of each agent in one table. */
async function showLatest(context: Context, api: ApiClient, agents: readonly Agent[]): Promise<Outcome> {
  const { signal, clock } = context;
  const rows = await readEach(agents, async (agent) => ({
    agent,
    sample: (await api.call('getLatestMetrics', { params: { node_id: agent.node_id }, signal })) ?? null,
  }));
  return {
    body: rows.map(({ agent: { node_id, name }, sample }) => ({ node_id, name, sample })),
    names: agents.map(agentHandle),
    view: latestTable(rows, timeCells(clock.now(), context.globals)),
  };
}

interface LatestMetrics {
  readonly agent: Agent;
  readonly sample: MetricsSample | null;
}

const latestTable = (rows: readonly LatestMetrics[], timeOf: TimeCell): TableView => ({
  kind: 'table',
  columns: METRICS_COLUMNS,
  rows: rows.map(({ agent, sample }) => [
    agentHandle(agent),
    percentText(sample?.cpu_usage ?? null),
    percentText(sample === null ? null : percentOf(sample.memory_used, sample.memory_total)),
    percentText(sample === null ? null : percentOf(sample.disk_used, sample.disk_total)),
    sample?.uptime == null ? '-' : { text: formatDuration(sample.uptime), order: sample.uptime },
    timeOf(sample?.collected_at ?? null),
  ]),
  empty: 'No agent is selected.',
});

const percentText = (value: number | null): string => (value === null ? '-' : percent(value));

interface HistoryOptions {
  readonly agent: Agent;
  readonly since: string | undefined;
}

async function showHistory(context: Context, api: ApiClient, { agent, since }: HistoryOptions): Promise<Outcome> {
  const now = context.clock.now();
  const from = since === undefined ? null : Math.floor(Date.parse(parseWhen(since, '--since', now)) / 1000);
  const read = (query: { readonly limit: number | null; readonly cursor: number | null }) =>
    api.callWithHeaders('getMetrics', {
      params: { node_id: agent.node_id },
      query: { since: from, ...query },
      signal: context.signal,
    });
  // With --since all measurements, else one page.
  const limit = from === null ? null : METRICS_LIMIT.maximum;
  let page = await read({ limit, cursor: null });
  const history = page.body;
  if (history === undefined) return nothing(agent);
  let samples = history.samples;
  for (let next = nextCursor(page.headers); next !== null; next = nextCursor(page.headers)) {
    if (limit === null) {
      context.note('Older measurements exist: --since TIME shows them.');
      break;
    }
    page = await read({ limit, cursor: Number(next) });
    samples = [...(page.body?.samples ?? []), ...samples];
  }
  return { body: { ...history, samples }, view: historyView(agentHandle(agent), samples) };
}

const nothing = (agent: Agent): Outcome => ({
  body: null,
  view: lines(`No measurements of ${agentHandle(agent)}: there is none yet, or its agent is set not to measure.`),
});

/** Yields one line for each new measurement. */
async function* follow({ signal }: Context, api: ApiClient, agent: Agent): AsyncIterable<Outcome> {
  let last: number | null = null;
  yield { view: linesOf([watchHead()]) };
  while (!signal.aborted) {
    const sample = await api.call('getLatestMetrics', { params: { node_id: agent.node_id }, signal });
    if (sample !== undefined && sample.collected_at !== last) {
      last = sample.collected_at;
      yield { body: sample, view: linesOf([sampleLine(sample)]) };
    }
    await sleep(WATCH_EVERY, undefined, { signal }).catch(() => undefined);
  }
}

/** Columns of a sparkline. */
const WIDTH = 60;

export function sampleView(name: string, sample: MetricsSample, now: number): View {
  const { cpu_usage: cpu, collected_at: at, uptime } = sample;
  return headed(
    `${name}, ${formatAge(at, now)}`,
    fields(
      ['Processors', cpu === null ? '-' : [bar(cpu / 100), ` ${percent(cpu)}`]],
      ['Memory', shareOf(sample.memory_used, sample.memory_total)],
      ['Disk', shareOf(sample.disk_used, sample.disk_total)],
      ['Uptime', uptime === null ? '-' : formatDuration(uptime)],
    ),
  );
}

/** Shows each measure as a sparkline, oldest on the left, with its last value. */
export function historyView(name: string, samples: readonly MetricsSample[]): View {
  const [first] = samples;
  const last = samples.at(-1);
  const span = `${formatTime(first?.collected_at ?? null)} to ${formatTime(last?.collected_at ?? null)}`;
  const row = (share: (sample: MetricsSample) => number | null): Line => {
    const values = samples.map(share);
    const newest = values.at(-1) ?? null;
    return [sparkline(values, 100, WIDTH), newest === null ? '' : ` ${percent(newest)}`];
  };
  return headed(
    `${name}, ${span}`,
    fields(
      ['Processors', row(({ cpu_usage: cpu }) => cpu)],
      ['Memory', row(({ memory_used: used, memory_total: total }) => percentOf(used, total))],
      ['Disk', row(({ disk_used: used, disk_total: total }) => percentOf(used, total))],
    ),
  );
}

const watchHead = (): Line => styled('strong', 'TIME                  CPU     MEMORY  DISK');

function sampleLine(sample: MetricsSample): Line {
  const memory = percentOf(sample.memory_used, sample.memory_total);
  const disk = percentOf(sample.disk_used, sample.disk_total);
  const cells = [sample.cpu_usage, memory, disk].map((value) => percentText(value).padEnd(6));
  return `${formatTime(sample.collected_at)}  ${cells.join('  ')}`.trimEnd();
}

function shareOf(used: number | null, total: number | null): Line {
  const share = percentOf(used, total);
  if (share === null || used === null || total === null) return '-';
  return [bar(share / 100), ` ${percent(share)} of ${formatBytes(total)}`];
}

/** `orch top`: the fleet at a glance, live or once. */
export const showFleet = defineCommand({
  examples: ['orch top', 'orch top --sort memory', 'orch top --once', 'orch top -o json'],
  detail: [
    'Shows agents with their latest measurements, and rollouts, operations, open terminals and the newest events. On',
    'a terminal it is live until q or Ctrl-C; elsewhere, and with --once or -o json, it is shown once.',
    '? shows all keys. Enter opens an agent, o its operations, D its newest drift check, p a plan of its modules, t a',
    'terminal. a applies its modules and A approves a waiting agent: both show the plan or the key, and ask; keys',
    'typed before the question do not answer it.',
    '/ filters, r lists the rollouts, Esc goes back. c, m, d, u, s, x and n sort by processors, memory, disk, uptime,',
    'status, standing and name, the same key again reverses.',
  ],
  access: 'viewer',
  options: {
    once: flag('show the fleet once and end'),
    sort: choice('ORDER', SORTS, 'sort order of the agents [cpu]'),
  },
  run: async (context, { once, sort = 'cpu' }) => {
    const { signal, streams, globals, clock } = context;
    const api = await context.api();
    const isLive = !once && globals.output === 'table' && streams.stdout.isTTY === true && streams.stdin.isTTY === true;
    if (isLive) {
      const [{ runTop }, { openShell }, { sessionSettings }] = await Promise.all([
        import('../top/run-top.js'),
        import('./term.js'),
        import('../terminal/session-options.js'),
      ]);
      const settings = sessionSettings({
        escapeChar: undefined,
        queueInput: false,
        clipboard: undefined,
        predict: undefined,
      });
      await runTop(context, api, { sort, openTerminal: (own, nodeId) => openShell(own, nodeId, { settings }) });
      return {};
    }
    const fleet = await readFleet(api, signal);
    const history = addMeasurements(new Map(), fleet);
    const agents = sortFleet(fleet.agents, sort);
    return {
      body: fleetBody(fleet),
      names: agents.map(({ agent }) => agentHandle(agent)),
      view: snapshotView({ fleet, history, agents, columns: columnsOf(context), order: null }, clock.now()),
    };
  },
});

const columnsOf = ({ streams: { stdout }, globals }: Context): number | null =>
  stdout.isTTY === true && globals.output === 'table' ? (stdout.columns ?? null) : null;
