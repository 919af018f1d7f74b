/** The commands of `orch maintenance`. */

import type { ApiClient } from '../../client/api-client.js';
import type { MaintenanceWindow } from '../../contract/maintenance-windows.js';
import { toSeconds } from '../../kernel/clock.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { argument, defineCommand, optionalArgument } from '../define-command.js';
import { formatDuration, formatTime, type TimeCell, timeCells } from '../format.js';
import { flag, list, requiredText, text } from '../options.js';
import {
  type Column,
  type FieldsView,
  fields,
  lines,
  type Outcome,
  type Span,
  styled,
  type TableView,
} from '../outcome.js';
import { parseAhead, parseDuration } from '../parse-time.js';
import { type NameOfOperator, operatorNames } from '../record-names.js';

export const windowArgument = argument('ID', 'ID of the window, as "orch maintenance list" shows it', 'window');

const scopeOptions = {
  selector: text('SELECTOR', 'pause only these agents (orch help selectors)', { short: 'l' }),
  permit: flag('permit applies of --assignment in this time, and only in such windows'),
  assignment: list('NAME', 'with --permit: an assignment', { completes: 'assignment' }),
} as const;

interface Scope {
  readonly selector: string | undefined;
  readonly permit: boolean;
  readonly assignment: readonly string[];
}

/** Returns the members of a request that say what the window is for. Throws `usage`. */
function scopeBody({ selector, permit, assignment }: Scope): Omit<WindowTimes, 'reason' | 'starts_at' | 'ends_at'> {
  if (!permit && assignment.length > 0) {
    throw new Fault('usage', '--assignment goes with --permit', { hint: 'a pause takes --selector' });
  }
  if (!permit) return selector === undefined ? {} : { selector };
  if (selector !== undefined) throw new Fault('usage', '--selector does not go with --permit: name its --assignment');
  if (assignment.length === 0) throw new Fault('usage', '--permit needs an --assignment');
  return { kind: 'permit', assignments: [...assignment] };
}

const PERMITS = [
  'With --selector it pauses drift checks and automatic applies of these agents, and no deliveries.',
  'With --permit, the assignments are applied only within such windows until the last of them is deleted. orch',
  'apply --outside-window overrides it.',
] as const;

/** `orch maintenance start`. */
export const startMaintenance = defineCommand({
  examples: [
    'orch maintenance start --for 2h --reason "new switch in rack 3"',
    'orch maintenance start --ends-at 2030-01-31T22:00:00+01:00 --reason "move of the rack"',
  ],
  detail: [
    'An active window pauses scheduled drift checks and deliveries to channels. Notifications are kept. Plans,',
    'applies and drift checks by operators still run.',
    ...PERMITS,
  ],
  access: 'admin',
  options: {
    for: text('TIME', 'duration, such as 30m, 2h or 1d'),
    endsAt: text('TIME', 'end, in place of --for: a date, RFC 3339, or a duration'),
    reason: requiredText('TEXT', 'reason of the maintenance'),
    ...scopeOptions,
  },
  run: async (context, { reason, for: span, endsAt, ...scope }) => {
    if ((span === undefined) === (endsAt === undefined)) {
      throw new Fault('usage', 'give one of --for and --ends-at');
    }
    const now = context.clock.now();
    const starts_at = toSeconds(now);
    const ends_at =
      endsAt === undefined
        ? starts_at + parseDuration(span ?? '', '--for')
        : toSeconds(Date.parse(parseAhead(endsAt, '--ends-at', now)));
    return setWindow(context, { reason, starts_at, ends_at, ...scopeBody(scope) });
  },
});

/** `orch maintenance schedule`. */
export const scheduleMaintenance = defineCommand({
  examples: [
    'orch maintenance schedule --from 2030-01-31T22:00:00+01:00 --for 4h --reason "new kernel"',
    'orch maintenance schedule --from 12h --until 2030-02-01 --reason "move of the rack"',
    'orch maintenance schedule --from 12h --for 2h --permit --assignment web --reason "web at night"',
  ],
  detail: ['A date alone means midnight UTC; 12h means in twelve hours.', ...PERMITS],
  access: 'admin',
  options: {
    from: requiredText('TIME', 'start: a date, RFC 3339, or a duration such as 12h'),
    until: text('TIME', 'end, in the same forms'),
    for: text('TIME', 'duration, in place of --until, such as 30m, 2h or 1d'),
    reason: requiredText('TEXT', 'reason of the maintenance'),
    ...scopeOptions,
  },
  run: async (context, { from, until, for: span, reason, ...scope }) => {
    const now = context.clock.now();
    const starts_at = secondsOf(parseAhead(from, '--from', now));
    if ((until === undefined) === (span === undefined)) {
      throw new Fault('usage', 'give one of --until and --for');
    }
    const ends_at =
      span === undefined
        ? secondsOf(parseAhead(until ?? '', '--until', now))
        : starts_at + parseDuration(span, '--for');
    if (ends_at <= starts_at) throw new Fault('usage', '--until must be after --from');
    return setWindow(context, { reason, starts_at, ends_at, ...scopeBody(scope) });
  },
});

const WINDOW_COLUMNS: readonly Column[] = [
  { title: 'ID', whole: true },
  { title: 'STATUS' },
  { title: 'FROM' },
  { title: 'UNTIL' },
  { title: 'EFFECT' },
  { title: 'BY', spare: 1 },
  { title: 'REASON' },
];

/** `orch maintenance list`. */
export const listWindows = defineCommand({
  examples: ['orch maintenance list', 'orch maintenance'],
  access: 'viewer',
  columns: WINDOW_COLUMNS,
  run: async (context) => {
    const api = await context.api();
    const windows = await api.call('listMaintenanceWindows', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return {
      body: windows,
      names: windows.map(({ id }) => id),
      view: windowTable(windows, nameOf, timeCells(context.clock.now(), context.globals)),
    };
  },
});

/** `orch maintenance show`. */
export const showWindow = defineCommand({
  examples: ['orch maintenance show 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  access: 'viewer',
  args: { id: windowArgument },
  run: async (context, { id }) => {
    const api = await context.api();
    const window = await api.call('getMaintenanceWindow', { params: { id }, signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return { body: window, names: [window.id], view: windowFields(window, nameOf) };
  },
});

/** `orch maintenance end`. */
export const endMaintenance = defineCommand({
  examples: ['orch maintenance end', 'orch maintenance end 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['Without an ID it ends the only active window.'],
  access: 'admin',
  args: { id: optionalArgument('ID', 'ID of the window, as "orch maintenance list" shows it', 'window') },
  run: async (context, input) => {
    const { signal, clock } = context;
    const api = await context.api();
    const params = { id: input.id ?? (await onlyActive(api, signal)).id };
    const { body: before, headers } = await api.callWithHeaders('getMaintenanceWindow', { params, signal });
    const { id, starts_at } = requireActive(before);
    // A window lasts at least one second.
    const body = { ends_at: Math.max(toSeconds(clock.now()), starts_at + 1) };
    const window = await api.call('updateMaintenanceWindow', { params, body, ifMatch: headers.etag, signal });
    const done = window.status === 'active' ? `ends at ${formatTime(window.ends_at)}` : 'has ended';
    return { body: window, names: [id], view: lines(`The maintenance window ${id} ${done}.`) };
  },
});

/** `orch maintenance remove`. */
export const removeWindow = defineCommand({
  examples: ['orch maintenance remove 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['Ends an active window and deletes its record; "orch maintenance end" keeps the record.'],
  access: 'admin',
  consent: true,
  args: { id: windowArgument },
  run: async (context, { id }) => {
    const api = await context.api();
    const request = { params: { id }, signal: context.signal };
    const { body: before, headers } = await api.callWithHeaders('getMaintenanceWindow', request);
    const { status, reason, starts_at, ends_at } = before;
    const times = `${status}, ${formatTime(starts_at)} until ${formatTime(ends_at)}`;
    await context.prompt.consent(`Delete the maintenance window "${reason}" (${times})?`);
    await api.call('removeMaintenanceWindow', { ...request, ifMatch: headers.etag });
    return { names: [id], view: lines(`Deleted ${id}.`) };
  },
});

const secondsOf = (timestamp: string): number => toSeconds(Date.parse(timestamp));

export interface WindowTimes {
  readonly reason: string;
  /** Unix seconds of the start. */
  readonly starts_at: number;
  readonly ends_at: number;
  readonly kind?: 'permit';
  readonly selector?: string;
  readonly assignments?: string[];
}

export async function setWindow(context: Context, body: WindowTimes): Promise<Outcome> {
  const api = await context.api();
  const window = await api.call('createMaintenanceWindow', { body, signal: context.signal });
  return { body: window, names: [window.id], view: lines(sentenceOf(window)) };
}

function sentenceOf(window: MaintenanceWindow): string {
  const { id, status, starts_at, ends_at } = window;
  const what = window.kind === 'permit' ? `Applies of ${window.assignments.join(' ')} are permitted` : 'Maintenance';
  const until = `until ${formatTime(ends_at)}`;
  switch (status) {
    case 'active':
      return `${what} ${until}. End it earlier: orch maintenance end ${id}`;
    case 'scheduled':
      return `${what} from ${formatTime(starts_at)} ${until}. Cancel it: orch maintenance remove ${id}`;
    case 'ended':
      return `The window ${id} is over by the clock of the orchestrator, which is ahead of this machine's.`;
  }
}

function requireActive(window: MaintenanceWindow): MaintenanceWindow {
  if (window.status === 'active') return window;
  const { id, starts_at, ends_at } = window;
  if (window.status === 'ended') {
    throw new Fault('maintenance_window_over', `the maintenance window ${id} is over since ${formatTime(ends_at)}`);
  }
  throw new Fault('usage', `the maintenance window ${id} has not started; it starts at ${formatTime(starts_at)}`, {
    hint: `cancel it with: orch maintenance remove ${id}`,
  });
}

async function onlyActive(api: ApiClient, signal: AbortSignal): Promise<MaintenanceWindow> {
  const windows = await api.call('listMaintenanceWindows', { signal });
  const [window, another] = windows.filter(({ status }) => status === 'active');
  if (window === undefined) {
    throw new Fault('maintenance_window_not_found', 'no maintenance window is active', {
      hint: 'list the windows with: orch maintenance list',
    });
  }
  if (another === undefined) return window;
  throw new Fault('usage', 'more than one maintenance window is active, so name the one to end', {
    hint: 'list the windows with: orch maintenance list',
  });
}

/** The table of maintenance windows. */
export const windowTable = (
  windows: readonly MaintenanceWindow[],
  nameOf: NameOfOperator,
  timeOf: TimeCell,
): TableView => ({
  kind: 'table',
  columns: WINDOW_COLUMNS,
  rows: windows.map((window) => [
    window.id,
    statusOf(window),
    timeOf(window.starts_at),
    timeOf(window.ends_at),
    effectOf(window),
    nameOf(window.created_by),
    window.reason,
  ]),
  empty: 'No maintenance windows. Begin one with: orch maintenance start --for 1h --reason WHY',
});

export const windowFields = (window: MaintenanceWindow, nameOf: NameOfOperator): FieldsView =>
  fields(
    ['Window', window.id],
    ['Status', statusOf(window)],
    ['From', formatTime(window.starts_at)],
    ['Until', `${formatTime(window.ends_at)} (${formatDuration(window.ends_at - window.starts_at)})`],
    ['Effect', effectOf(window)],
    ['Reason', window.reason],
    ['By', `${nameOf(window.created_by)} at ${formatTime(window.created_at)}`],
  );

function effectOf({ kind, selector, assignments }: MaintenanceWindow): string {
  if (kind === 'permit') return `permits ${assignments.join(' ')}`;
  return selector === null ? 'pauses all' : `pauses ${selector}`;
}

function statusOf({ status }: MaintenanceWindow): Span {
  switch (status) {
    case 'scheduled':
      return styled('accent', status);
    case 'active':
      return styled('warn', status);
    case 'ended':
      return styled('dim', status);
  }
}
