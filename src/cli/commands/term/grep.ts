/** `orch term grep`. */
import type { TerminalMatch } from '../../../contract/terminal.js';
import { TERMINAL_SEARCH_LIMIT } from '../../../contract/terminal.js';
import { Fault } from '../../../kernel/fault.js';
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { EXIT } from '../../exit-status.js';
import { count, formatTime } from '../../format.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { flag, integer, text } from '../../option.js';
import { formatTimeInRecording } from '../../terminal/replay-time.js';
import { type Line, type LinesView, lines, linesOf, styled } from '../../view.js';
import { parseWhen } from '../../when.js';

export const command = defineCommand({
  examples: ['orch term grep "permission denied" -i', 'orch term grep "rm -rf" --node web-01 --since "30d ago"'],
  detail: [
    'Lines of recordings that a regular expression matches, of the newest sessions first. The time behind each session is the',
    'place in its recording, which "orch term replay ID --at TIME" begins with. The search ends after 15 seconds. That you',
    'search, and for what, goes into the audit log. Each recording that was searched is compared with its SHA-256 in the',
    'audit log when its session is over; those that do not fit, or cannot be read, are named, and the exit status is 1.',
  ],
  access: 'operator',
  args: { pattern: argument('PATTERN', 'a regular expression') },
  options: {
    ignoreCase: flag('take capital and small letters for the same', { short: 'i' }),
    since: text('TIME', 'only sessions opened from then on: RFC 3339, a date, or "2h ago"'),
    node: text('NODE', 'only on this agent', { completes: 'node' }),
    operator: text('OPERATOR', 'only those that this operator has opened', { completes: 'operator' }),
    limit: integer('N', `at most that many lines; ${TERMINAL_SEARCH_LIMIT.standard} when left out`, 1),
  },
  run: async (context, { pattern, ignoreCase, since, node, operator, limit }) => {
    const { signal, clock } = context;
    requireExpression(pattern);
    const from = since === undefined ? null : Date.parse(parseWhen(since, '--since', clock.now()));
    const api = await context.api();
    const agent = node === undefined ? null : await resolveNode(api, node, { signal });
    const body = await api.call('searchTerminals', {
      query: {
        pattern,
        ignore_case: ignoreCase,
        since: from === null ? null : Math.floor(from / 1000),
        node: agent?.node_id ?? null,
        operator: operator ?? null,
        limit: limit ?? null,
      },
      signal,
    });
    if (body.truncated) context.note('There may be more: narrow it down, or give --limit N.');
    const { matches, searched, altered } = body;
    if (altered.length > 0) context.note(alteredLine(altered));
    const names = [...new Set(matches.map(({ session_id }) => session_id))];
    const view = matches.length === 0 ? lines(`No matches in ${count(searched, 'recording')}.`) : matchLines(matches);
    return { body, names, view, exitStatus: altered.length === 0 ? EXIT.done : EXIT.error };
  },
});

/** What the orchestrator would refuse, in the words of whoever typed it. */
function requireExpression(pattern: string): void {
  try {
    new RegExp(pattern, 'u');
  } catch (cause) {
    throw new Fault('usage', `${JSON.stringify(pattern)} is no regular expression`, {
      hint: 'a character that means something in one takes a backslash: \\. \\( \\[',
      cause,
    });
  }
}

/** Told of the first ones by name. */
const NAMED = 10;

function alteredLine(ids: readonly string[]): Line {
  const more = ids.length > NAMED ? ` and ${ids.length - NAMED} more` : '';
  const those = ids.slice(0, NAMED).join(', ') + more;
  const what = ids.length === 1 ? 'The recording of this session is' : 'The recordings of these sessions are';
  return [styled('bad', `${what} not what the audit log says, or damaged: ${those}.`)];
}

/** Under a line for each session. */
function matchLines(matches: readonly TerminalMatch[]): LinesView {
  const all: Line[] = [];
  let session = '';
  for (const match of matches) {
    if (match.session_id !== session) all.push(headOf(match));
    session = match.session_id;
    all.push([styled('dim', `${formatTimeInRecording(match.at).padStart(8)}  `), match.line]);
  }
  return linesOf(all);
}

const headOf = ({ session_id, operator, node_name, node_id, opened_at }: TerminalMatch): Line => [
  styled('strong', session_id),
  `  ${operator} on ${node_name ?? node_id}, ${formatTime(opened_at)}`,
];
