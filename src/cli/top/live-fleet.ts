/** `orch top` on a terminal: redraws the fleet every two seconds and on keys. */
import { setMaxListeners } from 'node:events';
import type { ApiClient } from '../../client/api-client.js';
import { messageOf } from '../../kernel/fault.js';
import type { Context, Streams } from '../context.js';
import { formatTime } from '../format.js';
import { type Line, linesOf, stackOf, styled, type View } from '../outcome.js';
import { loadPaint } from '../render/paint.js';
import { renderView } from '../render/render-view.js';
import { type FleetSnapshot, ProcessorHistory, readFleet, SORT_KEYS, type Sort, sortFleet } from './fleet.js';
import { agentTable, sections, totalsLine } from './fleet-view.js';

/** Refresh interval in milliseconds. */
const REFRESH = 2_000;
/** Timeout of a refresh in milliseconds. */
const PATIENCE = 10_000;
/** Maximum lines of each section below the agents. */
const PART = 4;
/** Lines above the agents: title, totals, an empty line, and the table head. */
const ABOVE = 4;

/** Runs until the operator quits. Throws the fault of the first read before it draws. */
export async function watchFleet(context: Context, api: ApiClient, first: Sort): Promise<void> {
  const history = new ProcessorHistory();
  const paint = await loadPaint(context.color);
  let fleet = await readFleet(api, context.signal);
  history.add(fleet);
  let problem: string | null = null;
  let sort = first;
  let skipped = 0;
  const ending = new AbortController();
  setMaxListeners(0, ending.signal);
  const end = () => ending.abort();
  const signal = AbortSignal.any([context.signal, ending.signal]);
  const draw = (screen: LiveScreen) => {
    const view = screenView({ fleet, history, problem, sort, skipped }, screen, context);
    const drawn = renderView(view, { paint, wide: false, columns: screen.columns });
    if (!signal.aborted) screen.draw(drawn);
  };
  const screen = openScreen(context.streams, {
    onResize: () => draw(screen),
    onClosed: end,
    onKey: (key) => {
      const page = Math.max(1, screen.rows - ABOVE - 2);
      const step = { up: -1, down: 1, 'page-up': -page, 'page-down': page }[key];
      if (key === 'q') return end();
      if (key === 'ctrl-c') return context.interrupt('SIGINT');
      sort = SORT_KEYS[key] ?? sort;
      skipped = Math.max(0, Math.min(skipped + (step ?? 0), fleet.agents.length - 1));
      draw(screen);
    },
  });
  try {
    while (!signal.aborted) {
      draw(screen);
      await pause(REFRESH, signal);
      if (signal.aborted) break;
      try {
        const reading = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]);
        setMaxListeners(0, reading);
        fleet = await readFleet(api, reading);
        history.add(fleet);
        problem = null;
      } catch (error) {
        problem = messageOf(error);
      }
    }
  } finally {
    screen.close();
  }
}

interface Shown {
  readonly fleet: FleetSnapshot;
  readonly history: ProcessorHistory;
  readonly problem: string | null;
  readonly sort: Sort;
  /** Number of agents scrolled away at the top. */
  readonly skipped: number;
}

function screenView(shown: Shown, { rows, columns }: LiveScreen, { clock }: Context): View {
  const { fleet, history, problem, sort, skipped } = shown;
  const below = sections(fleet, clock.now(), PART);
  const lengths = [fleet.rollouts, fleet.operations, fleet.terminals ?? [], fleet.events].map(({ length }) => length);
  // Each section has an empty line above it and a heading.
  const heights = lengths.filter((length) => length > 0).map((length) => 2 + Math.min(length, PART));
  let left = rows - ABOVE;
  let fitting = 0;
  for (const height of heights) {
    if (left - height < PART) break;
    left -= height;
    fitting += 1;
  }
  const most = Math.max(1, left);
  const sorted = sortFleet(fleet.agents, sort);
  return stackOf([
    linesOf([titleLine(shown, clock.now()), totalsLine(fleet), ...(problem === null ? [] : [styled('bad', problem)])]),
    agentTable({ fleet, history, agents: sorted.slice(skipped, skipped + most), columns }),
    ...below.slice(0, fitting),
  ]);
}

const titleLine = ({ sort, fleet, skipped }: Shown, now: number): Line => [
  styled('strong', 'orch top'),
  `  ${formatTime(Math.floor(now / 1000))}  by ${sort}`,
  skipped === 0 ? '' : `  from ${skipped + 1} of ${fleet.agents.length}`,
  styled('dim', '  sort: c m d u s n, scroll: arrows, quit: q'),
];

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });

/** Alternate screen without cursor and wrapping, so that the terminal cuts long lines. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[0m\u001b[?1049l';
const HOME = '\u001b[H';
const ERASE_LINE = '\u001b[K';
const ERASE_BELOW = '\u001b[J';

export interface LiveScreen {
  readonly columns: number;
  readonly rows: number;
  /** Draws sanitised lines, as many as fit. */
  draw(lines: readonly string[]): void;
  close(): void;
}

export interface ScreenEvents {
  onKey(key: string): void;
  onResize(): void;
  /** Called when the terminal is lost. */
  onClosed(): void;
}

export function openScreen({ stdin, stdout }: Streams, { onKey, onResize, onClosed }: ScreenEvents): LiveScreen {
  let isOpen = true;
  const onData = (chunk: Buffer | string) => {
    for (const key of keysOf(chunk.toString())) onKey(key);
  };
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    process.off('exit', close);
    stdin.off('data', onData);
    stdin.off('end', onClosed);
    stdout.off('resize', onResize);
    stdin.setRawMode?.(false);
    stdin.pause();
    stdout.write(LEAVE);
  };
  // Covers exits that skip `finally`.
  process.once('exit', close);
  stdin.setRawMode?.(true);
  stdin.on('data', onData);
  stdin.on('end', onClosed);
  stdin.on('error', onClosed);
  stdout.on('error', onClosed);
  stdout.on('resize', onResize);
  stdout.write(ENTER);
  return {
    get columns() {
      return stdout.columns ?? 80;
    },
    get rows() {
      return stdout.rows ?? 24;
    },
    draw: (lines) => {
      if (!isOpen) return;
      const shown = lines.slice(0, stdout.rows ?? 24).map((line) => line + ERASE_LINE);
      stdout.write(`${HOME}${shown.join('\r\n')}${ERASE_BELOW}`);
    },
    close,
  };
}

const NAMED: Readonly<Record<string, string>> = {
  '\u001b[A': 'up',
  '\u001bOA': 'up',
  '\u001b[B': 'down',
  '\u001bOB': 'down',
  '\u001b[5~': 'page-up',
  '\u001b[6~': 'page-down',
  '\u0003': 'ctrl-c',
};

/** Splits input into keys; sequences of special keys stay whole. */
const keysOf = (text: string): readonly string[] =>
  (text.match(/\u001b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|[\s\S]/g) ?? []).map((key) => NAMED[key] ?? key);
