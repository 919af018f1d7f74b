/** The commands of `orch audit`, including its retention. */

import type { ApiClient } from '../../client/api-client.js';
import { followEvents } from '../../client/follow-events.js';
import { type AuditEvent, type AuditVerification, MAX_RETENTION_DAYS } from '../../contract/audit.js';
import type { Contract } from '../../contract/contract.js';
import type { QueryOf } from '../../contract/route.js';
import { Fault, messageOf } from '../../kernel/fault.js';
import { argument, defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { count, type TimeCell, timeCells } from '../format.js';
import { flag, integer, requiredText, text } from '../options.js';
import { type Column, type Line, lines, type Outcome, proseOf, type Span, styled, type TableView } from '../outcome.js';
import { parseWhen } from '../parse-time.js';

export const auditOptions = {
  agent: text('NODE', 'only events about this agent: node ID or name', { completes: 'node' }),
  operator: text('OPERATOR', 'only events by this operator: operator ID or username', { completes: 'operator' }),
  type: text('EVENT', 'only events of this type, such as agent.approved'),
  category: text('PREFIX', 'only types with this prefix, such as agent'),
  after: text('TIME', 'only events from this time on: RFC 3339, a date, or "2h ago"'),
} as const;

const EVENT_COLUMNS: readonly Column[] = [
  { title: 'TIME', whole: true },
  { title: 'EVENT', whole: true },
  { title: 'BY', spare: 1 },
  { title: 'SUMMARY' },
  { title: 'SEVERITY', wide: true },
  { title: 'ABOUT', wide: true },
  { title: 'ID', wide: true },
];

/** `orch audit list`. */
export const listEvents = defineCommand({
  examples: ['orch audit', 'orch audit --category agent --after "2h ago"', 'orch audit --operator ada --all -o json'],
  access: 'viewer',
  columns: EVENT_COLUMNS,
  options: {
    ...auditOptions,
    before: text('TIME', 'only events before this time'),
    limit: integer('N', 'maximum number, newest first, up to 500 [50]', 1),
    cursor: text('ID', 'continue after this event: next_cursor of the previous page'),
    all: flag('all events, page by page'),
  },
  run: async (context, input) => {
    if (input.all && input.limit !== undefined) throw new Fault('usage', '--limit and --all do not go together');
    const now = context.clock.now();
    const query: Query = {
      ...auditQuery(input, now),
      before: input.before === undefined ? null : parseWhen(input.before, '--before', now),
      limit: input.limit ?? (input.all ? PAGE : null),
    };
    const api = await context.api();
    const pages = auditPages(api, {
      query: { ...query, cursor: input.cursor ?? null },
      timeOf: timeCells(now, context.globals),
      signal: context.signal,
    });
    if (input.all) return pages;
    const first = await pages.next();
    if (first.done) return {};
    if (input.limit === undefined && isMore(first.value)) {
      context.note('More events exist: --limit N or --all shows them.');
    }
    return first.value;
  },
});

/** `orch audit tail`. */
export const tailEvents = defineCommand({
  examples: ['orch audit tail', 'orch audit tail --category agent', 'orch audit tail --after "10m ago" -o json'],
  detail: [
    'Prints events until Ctrl-C; with -o json each is one line. After a lost connection or a restart of the',
    'orchestrator it continues, prints no event twice, and says so if events were deleted from the log meanwhile.',
  ],
  access: 'viewer',
  options: auditOptions,
  run: async (context, input) => {
    const api = await context.api();
    const query = auditQuery(input, context.clock.now());
    const events = followEvents(
      api,
      'streamEvents',
      { query, signal: context.signal },
      {
        onLost: (error) => context.note(`The connection was lost, reconnecting: ${messageOf(error)}`),
        onResumed: () => context.note('Connected again.'),
        onGap: ({ detail }) => context.warn(`events are missing here: ${detail}`),
      },
    );
    return (async function* () {
      for await (const event of events) {
        yield { body: event, oneLine: true as const, names: [event.id], view: lines(auditLine(event)) };
      }
    })();
  },
});

/** `orch audit verify`. */
export const verifyLog = defineCommand({
  examples: ['orch audit verify', 'orch audit verify --since orch-checkpoint-v1.1.4096.…'],
  detail: [
    "Prints a checkpoint of the last event. Keep the checkpoint off the orchestrator's host: verifying against it",
    'with --since detects a log that was truncated or rewritten. Ends with 1 if the log is broken.',
  ],
  access: 'viewer',
  options: { since: text('CHECKPOINT', 'a checkpoint of an earlier verification') },
  run: async (context, { since }) => {
    const api = await context.api();
    const body = await api.call('verifyAudit', { query: { since: since ?? null }, signal: context.signal });
    const names = body.intact && body.checkpoint ? [body.checkpoint.text] : [];
    return { body, names, view: proseOf(report(body)), exitStatus: body.intact ? EXIT.done : EXIT.error };
  },
});

/** `orch audit prune`. */
export const pruneEvents = defineCommand({
  examples: ['orch audit prune --before 2025-01-01', 'orch audit prune --before "180d ago" --yes'],
  detail: [
    'Verify first: errors in deleted events cannot be detected afterwards. The rest of the log can still be verified.',
    'Pruning is itself an event.',
  ],
  access: 'admin',
  consent: true,
  options: { before: requiredText('TIME', 'delete older events: RFC 3339, a date, or "180d ago"') },
  run: async (context, input) => {
    const before = parseWhen(input.before, '--before', context.clock.now());
    await context.prompt.consent(`Delete every audit event from before ${before}?`);
    const api = await context.api();
    const body = await api.call('pruneAuditEvents', { query: { before }, signal: context.signal });
    return { body, view: lines(`Deleted ${count(body.deleted, 'event')} from before ${before}.`) };
  },
});

/** `orch audit retention show`. */
export const showRetention = defineCommand({
  examples: ['orch audit retention show'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    return retentionOutcome(await api.call('getAuditRetention', { signal: context.signal }));
  },
});

/** `orch audit retention set`. */
export const setRetention = defineCommand({
  examples: ['orch audit retention set 365'],
  detail: [
    'Older events are deleted within minutes, and then daily. This overrides the setting audit.retention_days of orch',
    'serve.',
  ],
  access: 'admin',
  args: { days: argument('DAYS', 'retention in days') },
  run: async (context, { days }) => {
    const retention_days = daysOf(days);
    const api = await context.api();
    return retentionOutcome(await api.call('setAuditRetention', { body: { retention_days }, signal: context.signal }));
  },
});

/** `orch audit retention disable`. */
export const disableRetention = defineCommand({
  examples: ['orch audit retention disable'],
  detail: ['orch audit prune can still delete them.'],
  access: 'admin',
  run: async (context) => {
    const api = await context.api();
    const body = { retention_days: null };
    return retentionOutcome(await api.call('setAuditRetention', { body, signal: context.signal }));
  },
});

type Input = { readonly [K in keyof typeof auditOptions]: string | undefined };

/** @param now Unix milliseconds */
export const auditQuery = (
  { agent, operator, type, category, after }: Input,
  now: number,
): QueryOf<Contract['streamEvents']> => ({
  agent: agent ?? null,
  operator: operator ?? null,
  event_type: type ?? null,
  category: category ?? null,
  after: after === undefined ? null : parseWhen(after, '--after', now),
});

/** `orch audit list`. */
type Query = QueryOf<Contract['listAuditEvents']>;

/** Maximum page size of the API. */
const PAGE = 500;

const isMore = ({ body }: Outcome): boolean =>
  typeof body === 'object' && body !== null && 'has_more' in body && body.has_more === true;

interface AuditPages {
  readonly query: Query;
  readonly timeOf: TimeCell;
  readonly signal: AbortSignal;
}

async function* auditPages(api: ApiClient, { query, timeOf, signal }: AuditPages): AsyncGenerator<Outcome, void> {
  let cursor = query.cursor ?? null;
  let titles = true;
  do {
    const body: {
      readonly events: readonly AuditEvent[];
      readonly has_more: boolean;
      readonly next_cursor: string | null;
    } = await api.call('listAuditEvents', { query: { ...query, cursor }, signal });
    yield { body, names: body.events.map(({ id }) => id), view: auditTable(body.events, { titles, timeOf }) };
    cursor = body.has_more ? body.next_cursor : null;
    titles = false;
  } while (cursor !== null);
}

function report(body: AuditVerification): readonly Line[] {
  const { problem, pruned } = body;
  const all: Line[] = [verdict(body)];
  if (pruned !== null) all.push(`Events up to ${pruned.seq} were pruned on ${pruned.pruned_at}.`);
  if (problem === null) all.push(...sinceLines(body), ...checkpointLines(body));
  return all;
}

function verdict({ problem, events, checkpoints, first_seq, last_seq }: AuditVerification): Line {
  const range = first_seq === null ? '' : ` (${first_seq} to ${last_seq})`;
  if (problem === null) {
    return `${count(events, 'event')}${range} and ${count(checkpoints, 'checkpoint')}: the log is intact.`;
  }
  const isBefore = last_seq !== null && last_seq < problem.seq;
  const before = isBefore ? ` Before it, ${count(events, 'event')}${range} are as they were written.` : '';
  return [styled('bad', 'The audit log is broken: '), `${problem.detail}.${before}`];
}

function sinceLines({ since }: AuditVerification): readonly Line[] {
  if (since === null) return [];
  if (since.found === 'confirmed') return [`The given checkpoint is of this log: event ${since.seq} is as it was.`];
  return [`The given checkpoint could not be compared: event ${since.seq} has been pruned since.`];
}

const checkpointLines = ({ checkpoint }: AuditVerification): readonly Line[] =>
  checkpoint === null ? [] : [`Checkpoint of event ${checkpoint.seq}, to be kept elsewhere:`, checkpoint.text];

function daysOf(text: string): number {
  const days = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (days >= 1 && days <= MAX_RETENTION_DAYS) return days;
  throw new Fault('usage', `"${text}" is no number of days between 1 and ${MAX_RETENTION_DAYS}`, {
    hint: 'to keep events forever: orch audit retention disable',
  });
}

/** The outcome of the retention commands. */
export const retentionOutcome = (body: { readonly retention_days: number | null }): Outcome => ({
  body,
  view: lines(
    body.retention_days === null
      ? 'Audit events are kept forever.'
      : `Audit events are kept for ${count(body.retention_days, 'day')}.`,
  ),
});

/** The table of audit events. */
export const auditTable = (
  events: readonly AuditEvent[],
  { titles, timeOf }: { readonly titles: boolean; readonly timeOf: TimeCell },
): TableView => ({
  kind: 'table',
  titles,
  columns: EVENT_COLUMNS,
  rows: events.map((event) => [
    timeOf(Math.floor(Date.parse(event.timestamp) / 1000)),
    eventType(event),
    nameOf(event.actor),
    event.summary,
    event.severity,
    `${event.target.type} ${event.target.name || event.target.id}`,
    event.id,
  ]),
  empty: 'No events.',
});

/** One line of a followed log. Its columns have fixed widths, because later events are unknown. */
export const auditLine = (event: AuditEvent): Line => [
  styled('dim', timestampOf(event)),
  '  ',
  eventType(event, 24),
  `  ${nameOf(event.actor).padEnd(12)}  `,
  event.summary,
];

const timestampOf = ({ timestamp }: AuditEvent): string => timestamp.replace(/\.\d+Z$/, 'Z');

const nameOf = ({ name, type }: AuditEvent['actor']): string => name || type;

function eventType({ event_type, severity }: AuditEvent, width = 0): Span {
  const text = event_type.padEnd(width);
  if (severity === 'critical') return styled('bad', text);
  return severity === 'warning' ? styled('warn', text) : text;
}
