/** Lays out the screen of `orch top`: a state and a size give the lines. Everything here is pure. */
import { driftDetails } from '../commands/drift.js';
import { operationDetails, operationTable } from '../commands/ops.js';
import { agentName, count, formatTime, timeCells } from '../format.js';
import {
  headed,
  type Line,
  lines,
  linesOf,
  type Span,
  stackOf,
  styled,
  type TableView,
  type View,
} from '../outcome.js';
import type { NameOfOperator } from '../record-names.js';
import { bar } from '../render/chart.js';
import { cutLine, wrapLine } from '../render/fit-lines.js';
import { plainText, spansOf } from '../render/paint.js';
import { viewLines } from '../render/render-view.js';
import { cutToWidth, sanitizeLine, widthOf } from '../render/terminal-text.js';
import type { RolloutDetail } from '../runs/follow-rollout.js';
import { isSettled, rolloutStage } from '../runs/rollout-record.js';
import { rolloutDetails, rolloutTable } from '../runs/rollout-view.js';
import { runsView } from '../runs/run-view.js';
import { agentView } from './agent-detail.js';
import type { FleetAgent } from './fleet.js';
import { agentTable, type Section, sections, totalsLine } from './fleet-view.js';
import type { Size } from './screen.js';
import {
  type Heights,
  listOf,
  type Page,
  type Place,
  selectedIndex,
  shownAgents,
  shownOperations,
  shownRollouts,
  type TopState,
  windowTop,
} from './state.js';

/** Returns exactly as many lines as the screen has, none wider than it. Texts are sanitised. `now` is Unix milliseconds. */
export function screenLines(state: TopState, { columns, rows }: Size, now: number): readonly (readonly Span[])[] {
  const above = [titleLine(state, columns, now), ...bodyLines(state, { columns, rows }, now)];
  // A long message covers the end of the body.
  const status =
    rows < 2 ? [] : wrapLine(statusLine(state, columns), columns, 2).slice(0, Math.min(STATUS_LINES, rows - 1));
  const filled = Array.from({ length: rows - status.length }, (_, row) => cutLine(above[row] ?? '', columns));
  return [...filled, ...status];
}

/** Maximum lines of a message. */
const STATUS_LINES = 4;

/** Returns the heights by which keys move. */
export function heightsOf(state: TopState, size: Size, now: number): Heights {
  const body = Math.max(0, size.rows - CHROME);
  if (state.hasHelp) return { list: body, body, content: helpLines(size.columns).length };
  const { page } = state;
  if (page.kind === 'agents') return { list: layout(state, size, now).height, body, content: 0 };
  if (listOf(page) !== null) return { list: Math.max(1, body - 2), body, content: 0 };
  return { list: body, body, content: pageLines(state, size, now).length };
}

/** Lines around the body: the title and the status line. */
const CHROME = 2;

function bodyLines(state: TopState, size: Size, now: number): readonly Line[] {
  const body = Math.max(0, size.rows - CHROME);
  if (state.hasHelp) return scrolledLines(helpLines(size.columns), state.scroll, body);
  if (state.page.kind === 'agents') return agentsLines(state, size, now);
  if (state.page.kind === 'rollouts') return rolloutsLines(state, size, now);
  if (state.page.kind === 'operations') return operationsLines(state, size, now);
  return scrolledLines(pageLines(state, size, now), state.scroll, body);
}

const scrolledLines = (all: readonly Line[], scroll: number, height: number): readonly Line[] => {
  const top = Math.max(0, Math.min(scroll, all.length - height));
  return all.slice(top, top + height);
};

function titleLine(state: TopState, columns: number, now: number): Line {
  const { page, places, hasHelp } = state;
  const head = styled('strong', 'orch top');
  const time = formatTime(Math.floor(now / 1000)).slice(11);
  const words: readonly Span[] = hasHelp ? ['  help'] : titleWords(state);
  const list = hasHelp ? null : listOf(page);
  const filter = list === null ? '' : places[list].filter;
  const [found, total] = foundOf(state);
  const filtered = filter === '' ? [] : [styled('accent', `  /${filter}`), `  ${found} of ${total}`];
  const line = [head, ...words, ...filtered];
  const width = widthOf(sanitizeLine(plainText(line)));
  const gap = columns - width - time.length;
  return gap < 2 ? line : [...line, ' '.repeat(gap), styled('dim', time)];
}

/** Returns how many rows of the list the filter lets through, and of how many. */
function foundOf(state: TopState): readonly [found: number, total: number] {
  const { page, fleet } = state;
  if (page.kind === 'rollouts') return [shownRollouts(state).length, page.rollouts?.length ?? 0];
  if (page.kind === 'operations') return [shownOperations(state).length, page.operations?.length ?? 0];
  return [shownAgents(state).length, fleet.agents.length];
}

function titleWords({ page, fleet }: TopState): readonly Span[] {
  if (page.kind === 'agents') return ['  agents'];
  if (page.kind === 'rollouts') return ['  rollouts'];
  if (page.kind === 'rollout') return [`  rollout ${page.rolloutId}`];
  const agent = fleet.agents.find((one) => one.agent.node_id === page.nodeId)?.agent;
  return [TITLES[page.kind], styled('accent', agent === undefined ? page.nodeId : agentName(agent))];
}

const TITLES: Readonly<Record<Exclude<Page['kind'], 'agents' | 'rollouts' | 'rollout'>, string>> = {
  agent: '  agent ',
  operations: '  operations of ',
  operation: '  operation on ',
  drift: '  drift of ',
  plan: '  plan for ',
};

const HINTS: Readonly<Record<Page['kind'], string>> = {
  agents: '? help  q quit  Enter open  / filter  p plan  a apply  t terminal  r rollouts',
  agent: '? help  q quit  Esc back  o operations  D drift  p plan  a apply  t terminal',
  operations: '? help  q quit  Enter open  / filter  Esc back',
  operation: '? help  q quit  Esc back',
  drift: '? help  q quit  Esc back  p plan  a apply',
  plan: '? help  q quit  Esc back  p plan again  a apply, after a question',
  rollouts: '? help  q quit  Enter follow  / filter  Esc back',
  rollout: '? help  q quit  Esc back',
};

/** Returns the message below the body: the filter that is typed, a notice, a problem, or the keys. */
function statusLine({ page, places, isTyping, hasHelp, notice, problems }: TopState, columns: number): Line {
  const list = listOf(page);
  if (isTyping && list !== null) {
    return [
      styled('strong', '/'),
      places[list].filter,
      styled('selected', ' '),
      styled('dim', '  Enter keep  Esc clear'),
    ];
  }
  if (notice !== null) return notice.isProblem ? styled('bad', notice.text) : styled('warn', notice.text);
  const problem = problems.fleet ?? problems.page ?? problems.events;
  if (problem !== null) return styled('bad', problem);
  return cutLine(styled('dim', hasHelp ? 'Esc back  arrows scroll' : HINTS[page.kind]), columns);
}

/** Lines of a screen that has no room for an empty line below the totals, nor for a second line of them. */
const LOW = 16;
/** Maximum lines of each section below the agents. */
const PART = 4;

/** Minimum columns for whole events. */
const ROOM_FOR_EVENTS = 120;

interface Layout {
  readonly totals: readonly Line[];
  readonly hasGap: boolean;
  /** Rows of the table. */
  readonly height: number;
  /** Sections that fit, with an empty line before each. */
  readonly below: readonly Section[];
}

/** Divides the lines between the agents and the sections: the agents get at least three fifths if they need them. */
function layout(state: TopState, { rows, columns }: Size, now: number): Layout {
  const hasGap = rows >= LOW;
  const totals = wrapLine(totalsLine(state.fleet), columns, 2).slice(0, hasGap ? 2 : 1);
  const left = Math.max(1, rows - CHROME - totals.length - 1 - (hasGap ? 1 : 0));
  const wanted = Math.max(1, shownAgents(state).length);
  let room = left - Math.min(wanted, Math.max(PART, Math.ceil(left * 0.6)));
  const below = sections(state.fleet, now, columns < ROOM_FOR_EVENTS).flatMap(
    ({ title, lines }): readonly Section[] => {
      const shown = Math.min(lines.length, PART, room - 2);
      if (shown < 1) return [];
      room -= shown + 2;
      return [{ title, lines: lines.slice(0, shown) }];
    },
  );
  const taken = below.reduce((sum, { lines }) => sum + lines.length + 2, 0);
  return { totals, hasGap, height: Math.max(1, left - taken), below };
}

function agentsLines(state: TopState, size: Size, now: number): readonly Line[] {
  const { fleet, history, places, order } = state;
  const { totals, hasGap, height, below } = layout(state, size, now);
  const agents = shownAgents(state);
  const ids = agents.map(({ agent }) => agent.node_id);
  const columns = size.columns - MARK.length;
  const ruler = rulerOf(agents);
  const table = (rows: typeof agents): TableView => {
    const view = agentTable({ fleet, history, agents: rows, columns, order });
    return fleet.agents.length === 0 ? view : { ...view, empty: 'No agent matches the filter. Esc removes it.' };
  };
  const list = listLines({ place: places.agents, ids, height, columns: size.columns }, (from, to) => {
    const shown = agents.slice(from, to);
    const all = viewLines(table([...shown, ...ruler]), { wide: false, columns });
    return all.slice(0, shown.length === 0 ? 1 : shown.length + 1);
  });
  const padded = [...list, ...Array.from({ length: Math.max(0, height + 1 - list.length) }, () => '')];
  return [
    ...totals,
    ...(hasGap ? [''] : []),
    // Without sections the rest of the screen is empty anyway.
    ...(below.length === 0 ? list : padded.slice(0, height + 1)),
    ...below.flatMap(({ title, lines }): readonly Line[] => ['', styled('strong', title), ...lines]),
  ];
}

/** Returns a row as wide as any, which keeps the columns in their places while the rows scroll; none without agents. */
function rulerOf(agents: readonly FleetAgent[]): readonly FleetAgent[] {
  const [first] = agents;
  if (first === undefined) return [];
  const width = ({ agent }: FleetAgent) => widthOf(agentName(agent));
  const { agent } = agents.reduce((most, one) => (width(one) > width(most) ? one : most), first);
  return [{ agent: { ...agent, status: 'approved', connected: false, standing: 'never_applied' }, sample: null }];
}

const MARK = '> ';

interface ListOptions {
  readonly place: Place;
  readonly ids: readonly string[];
  readonly height: number;
  readonly columns: number;
}

/** Returns the head of a table and the rows of its window, with a mark at the selected one. */
function listLines(
  { place, ids, height, columns }: ListOptions,
  tableOf: (from: number, to: number) => readonly Line[],
): readonly Line[] {
  const index = selectedIndex(place, ids);
  const top = windowTop(place, { index, total: ids.length, height });
  const [head = '', ...rows] = tableOf(top, Math.min(ids.length, top + height));
  const blank = ' '.repeat(MARK.length);
  if (ids.length === 0) return [head];
  return [
    [blank, ...spansOf(head)],
    ...rows.map((row, offset): Line => {
      if (top + offset !== index) return [blank, ...spansOf(row)];
      const text = cutToWidth(sanitizeLine(`${MARK}${plainText(row)}`), columns);
      return styled('selected', text + ' '.repeat(Math.max(0, columns - widthOf(text))));
    }),
  ];
}

/** Columns below which the state and the progress of a rollout are worth more than its ID. */
const NARROW = 60;

function withoutColumns(view: TableView, titles: readonly string[]): TableView {
  const isKept = (index: number) => !titles.includes(view.columns[index]?.title ?? '');
  return {
    ...view,
    columns: view.columns.filter((_, index) => isKept(index)),
    rows: view.rows.map((row) => row.filter((_, index) => isKept(index))),
  };
}

function rolloutsLines(state: TopState, size: Size, now: number): readonly Line[] {
  const { page, places, nameOf } = state;
  if (page.kind !== 'rollouts') return [];
  if (page.rollouts === null) return ['', styled('dim', 'reading the rollouts')];
  const rollouts = shownRollouts(state);
  const height = Math.max(1, size.rows - CHROME - 2);
  const ids = rollouts.map(({ rollout_id: id }) => id);
  const options = { nameOf, timeOf: timeCells(now, { output: 'table' }), filtered: false };
  const list = listLines({ place: places.rollouts, ids, height, columns: size.columns }, (from, to) => {
    const view = rolloutTable(rollouts.slice(from, to), options);
    const empty = page.rollouts?.length === 0 ? view.empty : 'No rollout matches the filter. Esc removes it.';
    const chosen =
      size.columns < NARROW ? withoutColumns({ ...view, empty }, ['ROLLOUT ID', 'STARTED']) : { ...view, empty };
    return viewLines(chosen, { wide: false, columns: size.columns - MARK.length });
  });
  return ['', ...list];
}

function operationsLines(state: TopState, size: Size, now: number): readonly Line[] {
  const { page, places, nameOf } = state;
  if (page.kind !== 'operations') return [];
  if (page.operations === null) return ['', styled('dim', 'reading the operations')];
  const operations = shownOperations(state);
  const height = Math.max(1, size.rows - CHROME - 2);
  const ids = operations.map(({ operation_id: id }) => id);
  const options = { nameOf, timeOf: timeCells(now, { output: 'table' }), filtered: false };
  const list = listLines({ place: places.operations, ids, height, columns: size.columns }, (from, to) => {
    const view = operationTable(operations.slice(from, to), options);
    const empty = page.operations?.length === 0 ? 'No operations.' : 'No operation matches the filter. Esc removes it.';
    const extra = size.columns < NARROW ? ['AGENT', 'OPERATION ID'] : ['AGENT'];
    const columns = size.columns - MARK.length;
    return viewLines(withoutColumns({ ...view, empty }, extra), { wide: false, columns });
  });
  return ['', ...list];
}

/** Returns all lines of a page that scrolls. */
function pageLines(state: TopState, { columns }: Size, now: number): readonly Line[] {
  const view = pageView(state, columns, now);
  if (view === null) return ['', styled('dim', state.page.kind === 'plan' ? 'planning' : 'reading')];
  return ['', ...wrapped(viewLines(view, { wide: false, columns }), columns)];
}

/** Returns a page that scrolls; null while it is being read. */
function pageView({ page, fleet, nameOf }: TopState, columns: number, now: number): View | null {
  switch (page.kind) {
    case 'agents':
    case 'rollouts':
    case 'operations':
      return null;
    case 'agent':
      return page.detail && agentView({ detail: page.detail, fleet, now, columns });
    case 'operation':
      return page.detail && operationDetails(page.detail, nameOf, false);
    case 'drift': {
      if (page.detail === null) return null;
      const { record } = page.detail;
      if (record === null) return lines('This agent has never been checked.');
      const agent = fleet.agents.find((one) => one.agent.node_id === page.nodeId)?.agent;
      const name = agent === undefined ? page.nodeId : agentName(agent);
      return driftDetails(record, { name, nameOf, verbose: false });
    }
    case 'plan':
      return page.run && runsView([page.run], { kind: 'plan', verbose: false });
    case 'rollout':
      return page.detail && rolloutPage(page.detail, nameOf, columns);
  }
}

const wrapped = (lines: readonly Line[], columns: number): readonly Line[] =>
  lines.flatMap((line) => wrapLine(line, columns));

/** Maximum columns of the bar of a rollout. */
const LONGEST_BAR = 60;

function rolloutPage(rollout: RolloutDetail, nameOf: NameOfOperator, columns: number): View {
  const { counts } = rollout;
  const done = counts.succeeded + counts.failed + counts.unreachable + counts.skipped + counts.reverted;
  const width = Math.max(8, Math.min(LONGEST_BAR, columns - 20));
  const stage = isSettled(rollout) ? [] : [styled('dim', rolloutStage(rollout) || 'under way')];
  const doing = rollout.agents.filter(({ state }) => state === 'running').map(({ name, node_id }) => name ?? node_id);
  return stackOf([
    linesOf([
      [styled('accent', bar(counts.agents === 0 ? 1 : done / counts.agents, width)), ` ${done} of ${counts.agents}`],
      ...stage,
    ]),
    headed(`Applying now: ${count(doing.length, 'agent')}`, linesOf(doing.slice(0, PART).map((name) => `  ${name}`))),
    rolloutDetails(rollout, { nameOf, verbose: false }),
  ]);
}

/** Keys by subject. */
const HELP: readonly (readonly [title: string, keys: readonly (readonly [key: string, meaning: string])[]])[] = [
  [
    'Move',
    [
      ['j k, arrows', 'down, up'],
      ['PgDn PgUp', 'a page; also Space, Ctrl-F and Ctrl-B'],
      ['g G', 'first, last; also Home and End'],
      ['Enter, right', 'open the selected agent or operation, or follow the selected rollout'],
      ['Esc, left', 'back; removes the filter first'],
    ],
  ],
  [
    'The agent',
    [
      ['o', 'its operations'],
      ['D', 'its newest drift check, with what differs'],
      ['p', 'plan its modules, like orch plan; changes nothing'],
      ['a', 'apply its modules, like orch apply: shows the plan and asks'],
      ['A', 'approve it, like orch agents approve: shows its key and asks'],
      ['t', 'open a terminal on it, like orch term; ~. returns here'],
    ],
  ],
  [
    'Do',
    [
      ['r', 'rollouts'],
      ['/', 'filter: every word must occur, as in /web !offline role=db'],
      ['Ctrl-L', 'redraw the screen'],
      ['Ctrl-Z', 'suspend; fg returns here'],
      ['?', 'this help'],
      ['q, Ctrl-C', 'quit'],
    ],
  ],
  [
    'Sort the agents',
    [
      ['c m d', 'by processors, memory, disk'],
      ['u s x n', 'by uptime, status, standing, name'],
      ['< >', 'by the column to the left, to the right'],
      ['R', 'reverse; so does the same key again'],
    ],
  ],
];

function helpLines(columns: number): readonly Line[] {
  const width = Math.max(...HELP.flatMap(([, keys]) => keys.map(([key]) => key.length)));
  return HELP.flatMap(([title, keys]): readonly Line[] => [
    '',
    styled('strong', title),
    ...keys.flatMap(([key, meaning]) =>
      wrapLine(['  ', styled('accent', key.padEnd(width)), `  ${meaning}`], columns, width + 4),
    ),
  ]);
}
