/** `orch top` on a terminal: draws the fleet anew every two seconds, and whenever a key says so. */
import { setMaxListeners } from 'node:events';
import type { ApiClient } from '../../client/api-client.js';
import { messageOf } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { formatTime } from '../format.js';
import { loadPaint } from '../render/paint.js';
import { renderView } from '../render/view.js';
import { type Line, linesOf, stackOf, styled, type View } from '../view.js';
import { type FleetSnapshot, readFleet } from './fleet-snapshot.js';
import { type LiveScreen, openScreen } from './live-screen.js';
import { ProcessorHistory } from './processor-history.js';
import { SORT_KEYS, type Sort, sortFleet } from './sort-fleet.js';
import { agentTable, sections, totalsLine } from './top-view.js';

/** In milliseconds. */
const REFRESH = 2_000;
/** A request that takes longer is given up, and the next one may do better. */
const PATIENCE = 10_000;
/** Lines of each part below the agents. */
const PART = 4;
/** Title, totals, an empty line, and the head of the table. */
const ABOVE = 4;

/** Resolves when the person leaves. Throws what the first reading fails with, before anything is drawn. */
export async function watchFleet(context: Context, api: ApiClient, first: Sort): Promise<void> {
  const history = new ProcessorHistory();
  const paint = await loadPaint(context.color);
  let fleet = await readFleet(api, context.signal);
  history.add(fleet);
  let trouble: string | null = null;
  let sort = first;
  let skipped = 0;
  const ending = new AbortController();
  setMaxListeners(0, ending.signal);
  const end = () => ending.abort();
  const signal = AbortSignal.any([context.signal, ending.signal]);
  const draw = async (screen: LiveScreen) => {
    const view = screenView({ fleet, history, trouble, sort, skipped }, screen, context);
    const drawn = await renderView(view, { paint, wide: false, columns: screen.columns });
    if (!signal.aborted) screen.draw(drawn);
  };
  const screen = openScreen(context.streams, {
    onResize: () => void draw(screen),
    onGone: end,
    onKey: (key) => {
      const page = Math.max(1, screen.rows - ABOVE - 2);
      const step = { up: -1, down: 1, 'page-up': -page, 'page-down': page }[key];
      if (key === 'q') return end();
      if (key === 'ctrl-c') return context.interrupt('SIGINT');
      sort = SORT_KEYS[key] ?? sort;
      skipped = Math.max(0, Math.min(skipped + (step ?? 0), fleet.agents.length - 1));
      void draw(screen);
    },
  });
  try {
    while (!signal.aborted) {
      await draw(screen);
      await pause(REFRESH, signal);
      if (signal.aborted) break;
      try {
        fleet = await readFleet(api, AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]));
        history.add(fleet);
        trouble = null;
      } catch (error) {
        trouble = messageOf(error);
      }
    }
  } finally {
    screen.close();
  }
}

interface Shown {
  readonly fleet: FleetSnapshot;
  readonly history: ProcessorHistory;
  readonly trouble: string | null;
  readonly sort: Sort;
  /** Agents that are scrolled away above. */
  readonly skipped: number;
}

function screenView(shown: Shown, { rows, columns }: LiveScreen, { clock }: Context): View {
  const { fleet, history, trouble, sort, skipped } = shown;
  const below = sections(fleet, clock.now(), PART);
  const parts = {
    operations: fleet.operations.length,
    terminals: fleet.terminals?.length ?? 0,
    events: fleet.events.length,
  };
  // Each part has an empty line above and a heading.
  const used = Object.values(parts).reduce((sum, length) => sum + (length === 0 ? 0 : 2 + Math.min(length, PART)), 0);
  const left = rows - ABOVE - used;
  const isTight = left < PART;
  const most = Math.max(1, isTight ? rows - ABOVE : left);
  const sorted = sortFleet(fleet.agents, sort);
  return stackOf([
    linesOf([titleLine(shown, clock.now()), totalsLine(fleet), ...(trouble === null ? [] : [styled('bad', trouble)])]),
    agentTable({ fleet, history, agents: sorted.slice(skipped, skipped + most), columns }),
    ...(isTight ? [] : below),
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
