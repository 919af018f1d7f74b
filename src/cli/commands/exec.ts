/** `orch exec`: checks its options, asks for consent, and runs the command with or without a terminal. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Agent } from '../../contract/agents.js';
import { EXEC_TIMEOUT_MAX } from '../../contract/terminal.js';
import { Fault, shellWord } from '../../kernel/fault.js';
import { sentEnvironment } from '../../kernel/schema.js';
import { terminalApi } from '../connect-api.js';
import type { Context } from '../context.js';
import { dashedList, defineCommand } from '../define-command.js';
import { execOutcome } from '../exec/exec-outcome.js';
import { EXIT } from '../exit-status.js';
import { agentName, count } from '../format.js';
import { isSelection, requireSelection, selectAgents, selectionOptions } from '../nodes/choose-agents.js';
import { optionalNodesArgument, resolveNodes } from '../nodes/resolve-node.js';
import { flag, integer, text } from '../options.js';
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
    'The command runs without a shell and without a terminal: for pipes and variables use sh -c "…". Standard output',
    'and standard error stay separate. With --tty and one NODE it behaves like orch term, including escapes such as',
    '~. .',
    'Standard input goes to the command unless it is a terminal; with several agents each gets all of it. In a loop',
    'that reads standard input, add </dev/null. With one NODE all bytes pass unchanged. It ends with the status of',
    'the command, 128 plus the number of the signal that ended it, 124 after the timeout, 127 if the agent has no',
    'such program, 126 if it cannot execute it, 254 if an operator closed it, and 255 if orch itself failed and the',
    'result is unknown. Your LANG, LC_* and COLORTERM are sent; the agent uses those that it accepts.',
    'If the command leaves a process behind that has its output open, the output ends after a second without any, or',
    'five seconds after the command, and orch says so (complete: false in JSON). --wait waits for the process, at',
    'most for --timeout.',
    'With several agents each line starts with the name of its agent. It ends with 0 if all succeeded, with 5 if the',
    'only failures are offline agents, else with 3.',
    'With --selector it asks if there are several agents; without a terminal it needs --yes.',
    'Ctrl-C interrupts the commands, a second one kills them, a third one leaves them. SIGTERM and SIGHUP end them,',
    'and so does a closed reader of the output (exit status 141).',
    'A terminal gets the colours of the output and no other control sequences; pipes and files get all bytes.',
    'With -o json one NODE gives one object, several give one line each as they end, with the first MiB of each',
    'stream.',
  ],
  access: 'operator',
  consent: true,
  failureStatus: EXIT.lost,
  rewrite: asRemoteShell,
  args: {
    nodes: optionalNodesArgument,
    command: dashedList('COMMAND', 'the program and its arguments'),
  },
  options: {
    ...selectionOptions,
    batch: integer('N', `number of agents in parallel [${BATCH}]`, 1),
    timeout: text('TIME', 'end the command after this time, such as 30s or 5m'),
    wait: flag('wait until no process has the output open, as ssh does'),
    stdin: flag('send standard input even when it is a terminal'),
    tty: flag('run it on a terminal connected to this one', { short: 't' }),
    escapeChar: sessionOptions.escapeChar,
    group: flag('group agents with equal output, at the end'),
  },
  run: async (context, { nodes, command: words, tty, escapeChar, ...given }) => {
    const { selector, status, allowEmpty, batch, timeout, wait, stdin, group } = given;
    if (words.length === 0) throw noCommand(nodes);
    if (tty)
      return execOnTerminal(context, { nodes, command: words, escapeChar, conflicting: unfitForTerminal(given) });
    if (escapeChar !== undefined)
      throw new Fault('usage', '--escape-char is for --tty: without it there are no escapes');
    requireSelection({ nodes, selector, status }, 'exec', '--selector role=web -- COMMAND');
    const timeoutSecs = timeout === undefined ? null : secondsOf(timeout);
    const fleet = isSelection(given);
    if (fleet) requireExecConsent(context);
    const api = await context.api();
    const agents = await selectAgents(api, { nodes, selector, status, allowEmpty }, context);
    if (agents.length === 0) return { body: [], view: lines('No agent matches, so nothing is run.') };
    if (fleet && agents.length > 1) await confirmExec(context, { agents, command: words });
    const { stdin: input } = context.streams;
    return execOutcome(context, api, {
      agents,
      fleet: fleet || agents.length > 1,
      order: { command: words, timeoutSecs, wait, env: sentEnvironment(context.env) },
      batch: batch ?? BATCH,
      group,
      input: stdin || input.isTTY !== true ? input : null,
    });
  },
});

interface Given {
  readonly selector: string | undefined;
  readonly status: readonly string[];
  readonly batch: number | undefined;
  readonly timeout: string | undefined;
  readonly wait: boolean;
  readonly stdin: boolean;
  readonly group: boolean;
}

function unfitForTerminal({ selector, status, batch, timeout, wait, stdin, group }: Given): readonly string[] {
  const isNarrowed = status.length > 0;
  const given = {
    '--selector': selector,
    '--status': isNarrowed,
    '--batch': batch,
    '--timeout': timeout,
    '--wait': wait,
    '--stdin': stdin,
    '--group': group,
  };
  return Object.entries(given).flatMap(([name, value]) => (value === undefined || value === false ? [] : [name]));
}

function secondsOf(timeout: string): number {
  const seconds = parseDuration(timeout, '--timeout');
  if (seconds <= EXEC_TIMEOUT_MAX) return seconds;
  throw new Fault('usage', `--timeout ${timeout} is too long`, { hint: `at most ${EXEC_TIMEOUT_MAX / 3600}h` });
}

function noCommand([node = 'NODE', ...others]: readonly string[]): Fault {
  const guess = others.length > 0 ? others.join(' ') : 'COMMAND';
  return new Fault('usage', 'there is no command: it goes after "--"', { hint: `orch exec ${node} -- ${guess}` });
}

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
  readonly conflicting: readonly string[];
}

/** Runs a command on a terminal of the agent. Ends with its status. Throws `usage` for several agents, or without a terminal. */
export async function execOnTerminal(
  context: Context,
  { nodes, command, escapeChar, conflicting }: TerminalExec,
): Promise<Outcome> {
  const { env, signal, streams, globals } = context;
  const [first] = globals.output === 'table' || globals.output === 'wide' ? conflicting : ['--output', ...conflicting];
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

const RSYNC = /(?:^|[\s/])rsync$/;

/**
 * Returns the words of `orch exec` with the command behind `--`. rsync calls a remote shell as `NODE rsync --server …`, and escapes
 * its arguments for a shell on the machine. All other command lines are returned as they are. Throws `usage` for a user of the machine.
 */
function asRemoteShell(words: readonly string[]): readonly string[] {
  const at = words.findIndex((word, index) => RSYNC.test(word) && words[index + 1] === '--server');
  if (at < 1 || words.slice(0, at).includes('--')) return words;
  if (words[at - 3] === '-l') {
    throw new Fault('usage', `orch exec does not choose a user, so "${words[at - 2]}@" is not for it`, {
      hint: 'name the agent alone; its setting remote_terminal.user says which user commands run as',
    });
  }
  return [...words.slice(0, at), '--', 'sh', '-c', words.slice(at).join(' ')];
}
