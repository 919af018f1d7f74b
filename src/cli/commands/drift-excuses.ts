/** The commands of `orch drift` for drift that does not count: snooze, snoozes, unsnooze and accept. */
import type { DriftAccept, DriftedAddress, DriftSnooze } from '../../contract/drift-excuses.js';
import { toSeconds } from '../../kernel/clock.js';
import { Fault } from '../../kernel/fault.js';
import { argument, argumentList, defineCommand, optionalArgument, optionalList } from '../define-command.js';
import { agentHandle, count, formatTime, type TimeCell, timeCells } from '../format.js';
import { allAgents } from '../list-pages.js';
import { chooseResources } from '../nodes/choose-resources.js';
import { nodeArgument, resolveNode } from '../nodes/resolve-node.js';
import { requiredText, text } from '../options.js';
import { type Column, lines, linesOf, type TableView } from '../outcome.js';
import { parseAhead, parseDuration } from '../parse-time.js';
import { type NameOfOperator, operatorNames } from '../record-names.js';
import { planLines, resourceName } from '../render/plan-lines.js';

const RESOURCE = 'identity, ID, or "KIND IDENTITY" of a resource';

/** `orch drift snooze`. */
export const snoozeDrift = defineCommand({
  examples: [
    'orch drift snooze web-01 --for 7d --reason "until the new balancer"',
    'orch drift snooze web-01 /etc/nginx/nginx.conf --for 12h --reason "trying a setting"',
  ],
  detail: [
    'Until then drift of these resources, or of the whole agent, raises no notification, and the agent does not count',
    'as drifted. Drift checks still show it, and an apply by an operator repairs it.',
  ],
  access: 'operator',
  args: { node: nodeArgument, resources: optionalList('RESOURCE', RESOURCE) },
  options: {
    for: text('TIME', 'duration, such as 12h or 7d'),
    until: text('TIME', 'end, in place of --for: a date, RFC 3339, or a duration'),
    reason: requiredText('TEXT', 'reason of the snooze'),
  },
  run: async (context, { node, resources: words, for: span, until, reason }) => {
    if ((span === undefined) === (until === undefined)) throw new Fault('usage', 'give one of --for and --until');
    const now = context.clock.now();
    const ends_at =
      until === undefined
        ? toSeconds(now) + parseDuration(span ?? '', '--for')
        : toSeconds(Date.parse(parseAhead(until, '--until', now)));
    const { signal } = context;
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal });
    const params = { node_id: agent.node_id };
    const chosen: DriftedAddress[] = [];
    if (words.length > 0) {
      const { applied } = await api.call('getState', { params, signal });
      const hint = `see what is managed there: orch state ${agentHandle(agent)}`;
      for (const { module, kind, identity } of chooseResources(words, applied, { agent, what: 'managed', hint })) {
        chosen.push({ module, kind, identity });
      }
    }
    const body = { ends_at, reason, ...(words.length === 0 ? {} : { resources: chosen }) };
    const snooze = await api.call('snoozeDrift', { params, body, signal });
    const what = snooze.resources === null ? 'All drift' : `Drift of ${snooze.resources.map(resourceName).join(', ')}`;
    return {
      body: snooze,
      names: [snooze.snooze_id],
      view: lines(
        `${what} on ${agentHandle(agent)} is snoozed until ${formatTime(snooze.ends_at)}. End it with: orch drift unsnooze ${snooze.snooze_id}`,
      ),
    };
  },
});

const EXCUSE_COLUMNS: readonly Column[] = [
  { title: 'SNOOZE ID', whole: true },
  { title: 'AGENT' },
  { title: 'RESOURCES' },
  { title: 'UNTIL', whole: true },
  { title: 'REASON' },
  { title: 'BY', wide: true },
];

/** `orch drift snoozes`. */
export const listSnoozes = defineCommand({
  examples: ['orch drift snoozes', 'orch drift snoozes web-01'],
  detail: ['Snoozes that have ended are left out.'],
  access: 'viewer',
  columns: EXCUSE_COLUMNS,
  args: { node: optionalArgument('NODE', 'name, ID or beginning of the ID of an agent', 'node') },
  run: async (context, { node }) => {
    const { signal } = context;
    const api = await context.api();
    const one = node === undefined ? null : await resolveNode(api, node, { signal });
    const body = await api.call('listDriftExcuses', { query: { node: one?.node_id ?? null }, signal });
    const names = new Map((await allAgents(api, { signal })).map((agent) => [agent.node_id, agentHandle(agent)]));
    return {
      body,
      names: body.snoozes.map(({ snooze_id }) => snooze_id),
      view: excuseTable(body, {
        nameOf: (id) => names.get(id) ?? id,
        operator: await operatorNames(context, api),
        timeOf: timeCells(context.clock.now(), context.globals),
      }),
    };
  },
});

interface Excuses {
  readonly snoozes: readonly DriftSnooze[];
  readonly accepts: readonly DriftAccept[];
}

interface TableOptions {
  /** Returns an agent's name, or its ID if unknown. */
  nameOf(nodeId: string): string;
  readonly operator: NameOfOperator;
  readonly timeOf: TimeCell;
}

const excuseTable = ({ snoozes, accepts }: Excuses, { nameOf, operator, timeOf }: TableOptions): TableView => ({
  kind: 'table',
  columns: EXCUSE_COLUMNS,
  rows: [
    ...snoozes.map(({ snooze_id, node_id, resources, ends_at, reason, created_by }) => [
      snooze_id,
      nameOf(node_id),
      resources === null ? 'all' : resources.map(resourceName).join(', '),
      timeOf(ends_at),
      reason,
      operator(created_by),
    ]),
    ...accepts.map(({ node_id, kind, identity, reason, accepted_by }) => [
      'accepted',
      nameOf(node_id),
      resourceName({ kind, identity }),
      'the next apply',
      reason ?? '',
      operator(accepted_by),
    ]),
  ],
  empty: 'No drift is snoozed or accepted.',
});

/** `orch drift unsnooze`. */
export const endSnooze = defineCommand({
  examples: ['orch drift unsnooze 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  access: 'operator',
  args: { id: argument('ID', 'snooze ID, as "orch drift snoozes" shows it', 'snooze') },
  run: async (context, { id }) => {
    const api = await context.api();
    await api.call('endDriftSnooze', { params: { snooze_id: id }, signal: context.signal });
    return { body: { snooze_id: id }, names: [id], view: lines(`The snooze ${id} has ended.`) };
  },
});

/** `orch drift accept`. */
export const acceptDrift = defineCommand({
  examples: ['orch drift accept web-01 /etc/motd --reason "changed by the vendor, ticket 4711"'],
  detail: ['Any further change is drift again. The next apply brings back what is declared: see orch drift adopt.'],
  access: 'operator',
  consent: true,
  args: { node: nodeArgument, resources: argumentList('RESOURCE', RESOURCE) },
  options: { reason: text('TEXT', 'reason why it is right so') },
  run: async (context, { node, resources: words, reason }) => {
    const { signal, globals } = context;
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal });
    const params = { node_id: agent.node_id };
    const record = await api.call('checkDrift', { params, signal });
    const different = record.resources.filter(({ status }) => status === 'pending');
    const name = agentHandle(agent);
    const hint = `see what has drifted: orch drift latest ${name}`;
    const chosen = chooseResources(words, different, { agent, what: 'drifted', hint });
    if (!globals.yes) {
      await context.present(linesOf(planLines(chosen, { verbose: false, details: true })));
      await context.prompt.consent(`Take this as the expected state of ${name} until the next apply?`);
    }
    const resources = chosen.map(({ module, kind, identity }) => ({ module, kind, identity }));
    const body = { drift_id: record.drift_id, resources, ...(reason === undefined ? {} : { reason }) };
    const accepted = await api.call('acceptDrift', { params, body, signal });
    return {
      body: accepted,
      names: accepted.map(resourceName),
      view: lines(
        `Accepted the drift of ${count(accepted.length, 'resource')} on ${name} until the next apply, which repairs it. To declare it: orch drift adopt ${name} ${words.join(' ')}`,
      ),
    };
  },
});
