/** The commands of `orch enroll`: enrolment tokens. */
import {
  type CreatedEnrolmentToken,
  type EnrolmentTokenRecord,
  TOKEN_EPHEMERAL,
  TOKEN_TTL,
  TOKEN_USES,
} from '../../contract/enrolment-tokens.js';
import { Fault, shellWord } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { argument, defineCommand } from '../define-command.js';
import { count, formatDuration, formatTags, formatTime, textOrNone, timeCells } from '../format.js';
import { flag, integer, list, text } from '../options.js';
import { type Column, lines, linesOf, type Span, stack, styled, type TableView, type View } from '../outcome.js';
import { parseDuration } from '../parse-time.js';
import { type NameOfOperator, operatorNames } from '../record-names.js';
import { parseTag } from '../tag-arguments.js';

/** `orch enroll create`. */
export const createToken = defineCommand({
  examples: [
    'orch enroll create',
    'orch enroll create --ttl 1d --uses 20 --tag role=web --auto-approve',
    'orch enroll create --auto-approve --ephemeral=30m',
  ],
  detail: [
    'Prints the lines to paste on the new machine. The first one needs no orch there: it downloads installer and',
    'package from the orchestrator, whose key it pins. The machine waits for approval outside of the queue; with',
    '--auto-approve it is approved at once, under its hostname. Any holder of the token can enrol until it expires,',
    'is used up or is revoked. The token is shown only once, and contains the key of the orchestrator.',
  ],
  access: 'enroll',
  options: {
    ttl: text('TIME', 'validity, at most 7d [1h]'),
    uses: integer('N', 'number of machines that can use it, at most 1000 [1]', 1),
    tag: list('KEY[=VALUE]', 'a tag for these machines'),
    auto_approve: flag('approve the machines at once'),
    ephemeral: {
      ...text('TIME', 'remove each machine after this time without a connection, 5m to 7d; alone 1h'),
      bare: `${TOKEN_EPHEMERAL.standard}s`,
    },
  },
  run: async (context, input) => {
    const ttl = input.ttl === undefined ? TOKEN_TTL.standard : parseDuration(input.ttl, '--ttl');
    const uses = input.uses ?? TOKEN_USES.standard;
    requireAtMost('--ttl', '7d', ttl <= TOKEN_TTL.maximum);
    requireAtMost('--uses', String(TOKEN_USES.maximum), uses <= TOKEN_USES.maximum);
    const tags = Object.fromEntries(input.tag.map(parseTag));
    const ephemeral = input.ephemeral === undefined ? undefined : parseDuration(input.ephemeral, '--ephemeral');
    if (ephemeral !== undefined && (ephemeral < TOKEN_EPHEMERAL.minimum || ephemeral > TOKEN_EPHEMERAL.maximum)) {
      throw new Fault('usage', '--ephemeral is from 5m to 7d');
    }
    const { signal } = context;
    const api = await context.api();
    const body = {
      ttl_secs: ttl,
      uses,
      tags,
      auto_approve: input.auto_approve,
      ...(ephemeral !== undefined && { ephemeral_secs: ephemeral }),
    };
    // The first time, the orchestrator packs its own release.
    context.progress.live(() => 'making a token, and at the first time the package for new machines: up to a minute');
    const created = await api.call('createEnrolmentToken', { body, signal });
    context.progress.end();
    const place = placeOfAgents(created, api.url);
    const all = linesFor(created, place);
    if (created.agent_host === null && isLoopback(place)) {
      context.warn(
        `${place} is this machine alone: on another one, write the name of the orchestrator's host instead.`,
      );
    }
    return {
      body: { ...created, ...all },
      unpaged: true,
      names: [created.id],
      view: stack(
        ...viewOf(created.install, all),
        lines(`Token ${created.id} ${promiseOf(created)}. It is not shown again.`),
      ),
    };
  },
});

function requireAtMost(option: string, most: string, holds: boolean): void {
  if (!holds) throw new Fault('usage', `${option} is at most ${most}`);
}

const TOKEN_COLUMNS: readonly Column[] = [
  { title: 'TOKEN', whole: true },
  { title: 'STATE' },
  { title: 'EXPIRES' },
  { title: 'USES LEFT', right: true },
  { title: 'APPROVES' },
  { title: 'TAGS' },
  { title: 'REMOVES AFTER', spare: 3 },
  { title: 'BY', spare: 1 },
  { title: 'LAST USED', spare: 2 },
];

/** `orch enroll list`. */
export const listTokens = defineCommand({
  examples: ['orch enroll list'],
  detail: ['Expired tokens stay in the list for a week.'],
  access: 'enroll',
  columns: TOKEN_COLUMNS,
  run: async (context) => {
    const api = await context.api();
    const tokens = await api.call('listEnrolmentTokens', { signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return { body: tokens, names: tokens.map(({ id }) => id), view: tokenTable(tokens, nameOf, context) };
  },
});

/** `orch enroll revoke`. */
export const revokeToken = defineCommand({
  examples: ['orch enroll revoke 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['Machines that it has enrolled stay.'],
  access: 'enroll',
  args: { id: argument('TOKEN', 'ID of the token, as "orch enroll list" shows it') },
  run: async (context, { id }) => {
    const api = await context.api();
    await api.call('revokeEnrolmentToken', { params: { id }, signal: context.signal });
    return { names: [id], view: lines(`Revoked ${id}.`) };
  },
});

/**
 * Returns `HOST:PORT` for agents: the address that the orchestrator announces, else the host of its API, else an address of its host that
 * other machines can reach.
 */
function placeOfAgents(
  { agent_host: host, agent_port: port, reachable_host: reachable }: CreatedEnrolmentToken,
  api: URL,
): string {
  const name = host ?? (isLoopback(`${api.hostname}:`) ? reachable : api.hostname);
  return `${name.includes(':') && !name.startsWith('[') ? `[${name}]` : name}:${port}`;
}

const isLoopback = (place: string): boolean => /^(127\.|localhost:|\[::1\])/.test(place);

/** Lines to paste on a new machine; null for those that need a package of the orchestrator when it has none. */
interface EnrolmentLines {
  /** For a machine that has orch. */
  readonly command: string;
  readonly curl: string | null;
  readonly wget: string | null;
}

/** Words for sh when nothing came: curl says only a number, and wget either nothing or the token as well. */
const UNSAID = `'echo "orch: nothing was installed, because the token has ended or another key answered" >&2; exit 1'`;

/**
 * Returns the lines that enrol a machine. They pipe the token, because `echo` is a shell builtin: neither the process list nor the log
 * of sudo shows it. The pin is checked although the certificate is not: both programs refuse another key.
 * @param place `HOST:PORT` for agents
 */
export function linesFor(
  { token, install }: Pick<CreatedEnrolmentToken, 'install' | 'token'>,
  place: string,
): EnrolmentLines {
  const command = `echo ${token} | orch agent install ${shellWord(place)} --token -`;
  if (install === null) return { command, curl: null, wget: null };
  const { pin } = install;
  const url = (user: string) => shellWord(`https://${user}${place}/install.sh`);
  return {
    command,
    curl: `echo 'header = "Authorization: Bearer ${token}"' | (curl -fsSk --config - --pinnedpubkey '${pin}' ${url('')} || echo ${UNSAID}) | sh`,
    wget: `echo ${url(`orch:${token}@`)} | (wget -qO- --auth-no-challenge --no-check-certificate --pinnedpubkey '${pin}' -i - || echo ${UNSAID}) | sh`,
  };
}

/** The leading space keeps a line out of the history of most shells. */
function viewOf(install: CreatedEnrolmentToken['install'], { command, curl, wget }: EnrolmentLines): readonly View[] {
  if (install === null || curl === null || wget === null) {
    return [
      lines(styled('strong', 'Run this as root on the new machine, where orch is installed:')),
      linesOf([` ${command}`]),
      lines(
        'A machine without orch could download it from here, but the orchestrator has no package to offer:',
        'run it from a package, or make one with "npm run package -- tar" and copy the .tar.gz, with SHA256SUMS and',
        'SHA256SUMS.sig if the orchestrator is signed, to the directory packages of its data directory.',
      ),
    ];
  }
  return [
    lines(styled('strong', `Paste this as root on a new Linux machine with systemd (${install.cpus.join(', ')}):`)),
    linesOf([` ${curl}`]),
    lines('The same without curl:'),
    linesOf([` ${wget}`]),
    lines('Where orch is installed:'),
    linesOf([` ${command}`]),
  ];
}

/** The table of enrolment tokens, without the tokens themselves. */
export const tokenTable = (
  tokens: readonly EnrolmentTokenRecord[],
  nameOf: NameOfOperator,
  { clock, globals }: Pick<Context, 'clock' | 'globals'>,
): TableView => ({
  kind: 'table',
  columns: TOKEN_COLUMNS,
  rows: tokens.map((token) => [
    token.id,
    stateOf(token, clock.now()),
    timeCells(clock.now(), globals)(token.expires_at),
    `${token.uses_left} of ${token.uses}`,
    token.auto_approve ? styled('warn', 'yes') : 'no',
    textOrNone(formatTags(token.tags)),
    textOrNone(token.ephemeral_secs === undefined ? null : formatDuration(token.ephemeral_secs)),
    nameOf(token.created_by),
    timeCells(clock.now(), globals)(token.last_used_at),
  ]),
  empty: 'No enrolment tokens. Make one with: orch enroll create',
});

/** Describes a token: `lets one machine wait for approval, until …`. */
export function promiseOf({
  uses,
  auto_approve,
  tags,
  expires_at,
  ephemeral_secs: secs,
}: EnrolmentTokenRecord): string {
  const who = uses === 1 ? 'one machine' : `up to ${count(uses, 'machine')}`;
  const what = auto_approve ? `approves ${who} at once` : `lets ${who} wait for approval`;
  const tagged = Object.keys(tags).length === 0 ? '' : `, with the tags ${formatTags(tags)}`;
  const ephemeral = secs === undefined ? '' : `, and removes it after ${formatDuration(secs)} without a connection`;
  return `${what}${tagged}, until ${formatTime(expires_at)}${ephemeral}`;
}

function stateOf({ uses_left, expires_at }: EnrolmentTokenRecord, now: number): Span {
  if (uses_left === 0) return styled('dim', 'used up');
  return expires_at * 1000 <= now ? styled('dim', 'expired') : styled('good', 'open');
}
