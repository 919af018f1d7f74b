/** `orch exec`. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Agent } from '../../contract/agents.js';
import { EXEC_TIMEOUT_MAX } from '../../contract/terminal.js';
import { Fault, shellWord } from '../../kernel/fault.js';
import { sentEnvironment } from '../../kernel/schema.js';
import { terminalApi } from '../connect-api.js';
import type { Context } from '../context.js';
import { dashedList, defineCommand, flag, integer, text } from '../define-command.js';
import { execOutcome } from '../exec/exec-outcome.js';
import { EXIT } from '../exit-status.js';
import { agentName, count } from '../format.js';
import { chooseAgents, fleetOptions } from '../nodes/choose-agents.js';
import { optionalNodesArgument, resolveNodes } from '../nodes/resolve-node.js';
import { type Line, lines, linesOf, type Outcome, styled } from '../outcome.js';
import { parseDuration } from '../parse-time.js';
import { openableTerm, sessionOptions, sessionSettings, sizeOf } from '../terminal/session-options.js';

/** Maximum number of agents in parallel. */
const BATCH = 32;

export const command = defineCommand({
  examples: [
    'orch exec web-01 -- systemctl status nginx',
    'orch exec web-01 web-02 -- df -h /',
    'orch exec -l role=web --group -- uname -r',
    'orch exec db-01 -- sh -c "pg_dump app | gzip" > app.sql.gz',
    'orch exec web-01 -- tar -xf - -C /srv < site.tar',
    'orch exec web-01 web-02 -- sh -s < script.sh',
    'orch exec -t web-01 -- htop',
  ],
  detail: [
    'No shell reads the command: for pipes and variables run one, such as sh -c "…". It gets no terminal, and its standard',
    'output and standard error stay apart. With --tty and one NODE it runs on a terminal, with yours in front of it: all is',
    'as with orch term then, escapes such as ~. included.',
    'Standard input goes to the command when it is not a terminal; with several agents each command gets all of it.',
    'In a loop that reads its own standard input, add </dev/null. With one NODE every byte goes through. It ends as the',
    'command does: with its status, 128 and the number of the signal that ended it, 124 when its time was over, 127 when the',
    'agent has no such program, 126 when it cannot execute it, 254 when it was closed, and 255 when orch exec itself failed,',
    'so that nothing is known of the command. Your LANG, LC_* and COLORTERM are sent; the agent takes those that it accepts.',
    'With several agents each line stands behind the name of its agent, or with --group the agents of equal output together',
    'at the end. It ends with 0 when all succeeded, with 5 when the only failures are agents that are offline, else with 3.',
    'With --selector it shows the agents and asks when they are several; where nobody can answer, it needs --yes.',
    'Ctrl-C interrupts the commands, Ctrl-C again kills them, and once more leaves them. SIGTERM and SIGHUP end them, and so',
    'does a reader of the output that leaves (then the exit status is 141).',
    'On a terminal the output keeps its colours, but what else would steer the terminal is taken out; pipes and files get',
    'it as it is.',
    'With -o json one NODE gives one object, several give one line each as they end, with the first MiB of each stream.',
  ],
  access: 'operator',
  consent: true,
  failureStatus: EXIT.lost,
  args: {
    nodes: optionalNodesArgument,
    command: dashedList('COMMAND', 'the program and its arguments'),
  },
  options: {
    selector: fleetOptions.selector,
    allowEmpty: fleetOptions.allowEmpty,
    batch: integer('N', `agents at a time; ${BATCH} when left out`, 1),
    timeout: text('TIME', 'end the command when it takes longer, such as 30s or 5m'),
    stdin: flag('send standard input even when it is a terminal'),
    tty: flag('run it on a terminal, with this one in front of it', { short: 't' }),
    escapeChar: sessionOptions.escapeChar,
    group: flag('show agents with equal output together, at the end'),
  },
  run: async (context, { nodes, command: words, tty, escapeChar, ...given }) => {
    const { selector, allowEmpty, batch, timeout, stdin, group } = given;
    if (words.length === 0) throw noCommand(nodes);
    if (tty) return execOnTerminal(context, { nodes, command: words, escapeChar, unfit: unfitForTerminal(given) });
    if (escapeChar !== undefined)
      throw new Fault('usage', '--escape-char is for --tty: without it there are no escapes');
    if (nodes.length > 0 === (selector !== undefined)) throw whichAgents(nodes);
    const timeoutSecs = timeout === undefined ? null : secondsOf(timeout);
    const fleet = selector !== undefined;
    if (fleet) requireExecConsent(context);
    const api = await context.api();
    const agents = await chooseAgents(api, { nodes, assignment: undefined, selector, allowEmpty }, context);
    if (agents.length === 0) return { body: [], view: lines('No agent matches, so nothing is run.') };
    if (fleet && agents.length > 1) await confirmExec(context, { agents, command: words });
    const { stdin: input } = context.streams;
    return execOutcome(context, api, {
      agents,
      fleet: fleet || agents.length > 1,
      order: { command: words, timeoutSecs, env: sentEnvironment(context.env) },
      batch: batch ?? BATCH,
      group,
      input: stdin || input.isTTY !== true ? input : null,
    });
  },
});

interface Given {
  readonly selector: string | undefined;
  readonly batch: number | undefined;
  readonly timeout: string | undefined;
  readonly stdin: boolean;
  readonly group: boolean;
}

function unfitForTerminal({ selector, batch, timeout, stdin, group }: Given): readonly string[] {
  const given = { '--selector': selector, '--batch': batch, '--timeout': timeout, '--stdin': stdin, '--group': group };
  return Object.entries(given).flatMap(([name, value]) => (value === undefined || value === false ? [] : [name]));
}

function secondsOf(timeout: string): number {
  const seconds = parseDuration(timeout, '--timeout');
  if (seconds <= EXEC_TIMEOUT_MAX) return seconds;
  throw new Fault('usage', `--timeout ${timeout} is too long`, { hint: `at most ${EXEC_TIMEOUT_MAX / 3600}h` });
}

function noCommand([node = 'NODE', ...others]: readonly string[]): Fault {
  const guess = others.length > 0 ? others.join(' ') : 'COMMAND';
  return new Fault('usage', 'there is no command: it stands behind "--"', { hint: `orch exec ${node} -- ${guess}` });
}

const whichAgents = (nodes: readonly string[]): Fault =>
  nodes.length > 0
    ? new Fault('usage', 'name agents, or --selector: one of them')
    : new Fault('usage', '"orch exec" needs an agent', {
        hint: 'name it, or choose several: orch exec --selector role=web -- COMMAND',
      });

/** Throws `confirmation_required` before any request if consent is needed and there is no terminal. */
export function requireExecConsent({ prompt, globals }: Context): void {
  if (globals.yes || prompt.possible) return;
  throw new Fault(
    'confirmation_required',
    'a command on all agents of a selector needs consent, and there is no terminal to ask on',
    { hint: 'add --yes to run it without being asked, or name the agents' },
  );
}

/** Shows the agents and asks for consent. Throws `cancelled`. */
export async function confirmExec(
  context: Context,
  { agents, command }: { readonly agents: readonly Agent[]; readonly command: readonly string[] },
): Promise<void> {
  if (context.globals.yes) return;
  await context.present(
    linesOf(
      agents.map((agent): Line => [`  ${agentName(agent)}`, agent.connected ? '' : styled('warn', '  not connected')]),
    ),
  );
  await context.prompt.consent(`Run this on ${count(agents.length, 'agent')}: ${command.map(shellWord).join(' ')}?`);
}

export interface TerminalExec {
  readonly nodes: readonly string[];
  readonly command: readonly string[];
  readonly escapeChar: string | undefined;
  /** Given options that only fit commands without a terminal. */
  readonly unfit: readonly string[];
}

/** Runs a command on a terminal of the agent. Ends with its status. Throws `usage` for several agents, or without a terminal. */
export async function execOnTerminal(
  context: Context,
  { nodes, command, escapeChar, unfit }: TerminalExec,
): Promise<Outcome> {
  const { env, signal, streams, globals } = context;
  const [first] = globals.output === 'table' || globals.output === 'wide' ? unfit : ['--output', ...unfit];
  if (first !== undefined) throw new Fault('usage', `--tty and ${first} exclude each other`);
  if (streams.stdin.isTTY !== true) {
    throw new Fault('usage', '--tty needs a terminal on standard input', { hint: 'leave --tty out' });
  }
  const settings = sessionSettings({ escapeChar, queueInput: false, clipboard: undefined, predict: undefined });
  const connection = await terminalApi(context);
  const { api } = connection;
  const [agent, another] = await resolveNodes(api, nodes, { signal });
  if (agent === undefined || another !== undefined) {
    throw new Fault('usage', '--tty takes a single agent', { hint: 'for several, leave --tty out' });
  }
  const tty = { ...sizeOf([streams.stdout, streams.stderr]), term: openableTerm(env.TERM) };
  const body = { command: [...command], tty, env: sentEnvironment(env) };
  // Loaded after the request is sent, which loading would delay.
  const [opened, { runTerminal }] = await Promise.all([
    api.call('execOnAgent', { params: { node_id: agent.node_id }, body, signal }),
    nextTurn().then(() => import('../terminal/run-terminal.js')),
  ]);
  return runTerminal(context, {
    connection,
    sessionId: opened.session_id,
    wsUrl: opened.ws_url,
    mode: 'write',
    isNew: true,
    ...settings,
  });
}
