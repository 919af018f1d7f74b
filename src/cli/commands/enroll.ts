/** The commands of `orch enroll`: enrolment tokens. */
import {
  type CreatedEnrolmentToken,
  type EnrolmentTokenRecord,
  TOKEN_TTL,
  TOKEN_USES,
} from '../../contract/enrolment-tokens.js';
import { Fault } from '../../kernel/fault.js';
import { argument, defineCommand, flag, integer, list, text } from '../define-command.js';
import { count, formatAge, formatTags, formatTime, textOrNone } from '../format.js';
import { lines, type Span, stack, styled, type TableView } from '../outcome.js';
import { parseDuration } from '../parse-time.js';
import { type NameOfOperator, operatorNames } from '../record-names.js';
import { parseTag } from '../tag-arguments.js';

/** `orch enroll create`. */
export const createToken = defineCommand({
  examples: ['orch enroll create', 'orch enroll create --ttl 1d --uses 20 --tag role=web --auto-approve'],
  detail: [
    'Prints the line to run on the new machine. Its token contains the key of the orchestrator. The machine waits for',
    'approval outside of the queue; with --auto-approve it is approved at once, under its hostname. Any holder of the token',
    'can enrol until it expires or is used up; "orch enroll revoke" ends it earlier. The token is shown only once.',
  ],
  access: 'admin',
  options: {
    ttl: text('TIME', 'validity, at most 7d [1h]'),
    uses: integer('N', 'number of machines that can use it, at most 1000 [1]', 1),
    tag: list('KEY[=VALUE]', 'a tag for these machines'),
    auto_approve: flag('approve the machines at once'),
  },
  run: async (context, input) => {
    const ttl = input.ttl === undefined ? TOKEN_TTL.standard : parseDuration(input.ttl, '--ttl');
    const uses = input.uses ?? TOKEN_USES.standard;
    requireAtMost('--ttl', '7d', ttl <= TOKEN_TTL.maximum);
    requireAtMost('--uses', String(TOKEN_USES.maximum), uses <= TOKEN_USES.maximum);
    const tags = Object.fromEntries(input.tag.map(parseTag));
    const { signal } = context;
    const api = await context.api();
    const body = { ttl_secs: ttl, uses, tags, auto_approve: input.auto_approve };
    const created = await api.call('createEnrolmentToken', { body, signal });
    const place = placeOfAgents(created, api.url);
    const command = connectLine(created.token, place);
    if (created.agent_host === null && isLoopback(place)) {
      context.warn(
        `${place} is this machine alone: on another one, write the name of the orchestrator's host instead.`,
      );
    }
    return {
      body: { ...created, command },
      names: [created.id],
      view: stack(
        lines(styled('strong', 'Run this as root on the new machine:')),
        // The leading space keeps the line out of the history of most shells.
        lines(` ${command}`),
        lines(`Token ${created.id} ${promiseOf(created)}. It is not shown again.`),
      ),
    };
  },
});

function requireAtMost(option: string, most: string, holds: boolean): void {
  if (!holds) throw new Fault('usage', `${option} is at most ${most}`);
}

/** `orch enroll list`. */
export const listTokens = defineCommand({
  examples: ['orch enroll list'],
  detail: ['The tokens themselves are not stored. Expired tokens stay in the list for a week.'],
  access: 'admin',
  run: async (context) => {
    const api = await context.api();
    const tokens = await api.call('listEnrolmentTokens', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return { body: tokens, names: tokens.map(({ id }) => id), view: tokenTable(tokens, nameOf, context.clock.now()) };
  },
});

/** `orch enroll revoke`. */
export const revokeToken = defineCommand({
  examples: ['orch enroll revoke 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['The token becomes useless. Machines that it has enrolled stay.'],
  access: 'admin',
  args: { id: argument('TOKEN', 'ID of the token, as "orch enroll list" shows it') },
  run: async (context, { id }) => {
    const api = await context.api();
    await api.call('revokeEnrolmentToken', { params: { id }, signal: context.signal });
    return { names: [id], view: lines(`Revoked ${id}.`) };
  },
});

/** Returns `HOST:PORT` for agents: the address the orchestrator announces, else the host of its API. */
export function placeOfAgents(
  { agent_host: host, agent_port: port }: Pick<CreatedEnrolmentToken, 'agent_host' | 'agent_port'>,
  api: URL,
): string {
  const name = host ?? api.hostname;
  return `${name.includes(':') && !name.startsWith('[') ? `[${name}]` : name}:${port}`;
}

export const isLoopback = (place: string): boolean => /^(127\.|localhost:|\[::1\])/.test(place);

/**
 * Returns the command line that enrols a machine. It pipes the token, because `echo` is a shell builtin: neither the process list nor
 * the log of sudo shows it. It needs no quoting in any shell.
 */
export const connectLine = (token: string, place: string): string =>
  `echo ${token} | orch agent connect ${place} --token -`;

/** The table of enrolment tokens, without the tokens themselves. */
export const tokenTable = (
  tokens: readonly EnrolmentTokenRecord[],
  nameOf: NameOfOperator,
  now: number,
): TableView => ({
  kind: 'table',
  columns: [
    { title: 'TOKEN', whole: true },
    { title: 'STATE' },
    { title: 'EXPIRES' },
    { title: 'USES LEFT', right: true },
    { title: 'APPROVES' },
    { title: 'TAGS' },
    { title: 'BY' },
    { title: 'LAST USED' },
  ],
  rows: tokens.map((token) => [
    token.id,
    stateOf(token, now),
    formatTime(token.expires_at),
    `${token.uses_left} of ${token.uses}`,
    token.auto_approve ? styled('warn', 'yes') : 'no',
    textOrNone(formatTags(token.tags)),
    nameOf(token.created_by),
    textOrNone(formatAge(token.last_used_at, now)),
  ]),
  empty: 'No enrolment tokens. Make one with: orch enroll create',
});

/** Describes a token: `lets one machine wait for approval, until …`. */
export function promiseOf({ uses, auto_approve, tags, expires_at }: EnrolmentTokenRecord): string {
  const who = uses === 1 ? 'one machine' : `up to ${count(uses, 'machine')}`;
  const what = auto_approve ? `approves ${who} at once` : `lets ${who} wait for approval`;
  const tagged = Object.keys(tags).length === 0 ? '' : `, with the tags ${formatTags(tags)}`;
  return `${what}${tagged}, until ${formatTime(expires_at)}`;
}

function stateOf({ uses_left, expires_at }: EnrolmentTokenRecord, now: number): Span {
  if (uses_left === 0) return styled('dim', 'used up');
  return expires_at * 1000 <= now ? styled('dim', 'expired') : styled('good', 'open');
}
