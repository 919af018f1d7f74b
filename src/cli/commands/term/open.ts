/** `orch term NODE`, and `orch term open NODE`. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { sentEnvironment } from '../../../kernel/environment.js';
import { defineCommand } from '../../define-command.js';
import { EXIT } from '../../exit-status.js';
import { nodeArgument } from '../../nodes/node-argument.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { integer, text } from '../../option.js';
import { openableTerm } from '../../terminal/openable-term.js';
import { sessionOptions, sessionSettings } from '../../terminal/session-options.js';
import { terminalApi } from '../../terminal/terminal-api.js';
import { sizeOf } from '../../terminal/terminal-size.js';

export const command = defineCommand({
  examples: ['orch term web-01', 'orch term web-01 --shell /bin/zsh', 'orch term open list'],
  detail: [
    '"orch term NODE" is "orch term open NODE"; a node that is named like a subcommand needs the latter.',
    'The shell runs as the user that the agent is set to. What it shows is recorded, unless the orchestrator says otherwise.',
    'At the beginning of a line, ~. detaches (the session goes on), ~K ends the session, ~r draws the screen anew, ~s tells',
    'the latency, ~w asks for the pen, ~^Z suspends orch, ~? lists these, and ~~ is a tilde.',
    'After a lost connection it goes on by itself where it was. What is typed meanwhile is dropped after 10 s, unless',
    '--queue-input is given.',
    'Where the agent is 30 ms or more away, keys are shown before it has echoed them; passwords never are.',
    'It ends as the shell does: with its status, or 128 and the number of the signal that ended it; with 254 when an operator',
    'closed the session, and with 255 after everything else, detaching included.',
    'Without a terminal on standard input, all of the input is typed and then Ctrl-D until the shell ends. For commands,',
    'rather use orch exec.',
  ],
  access: 'operator',
  failureStatus: EXIT.lost,
  args: { node: nodeArgument },
  options: {
    shell: text('PATH', 'the shell, as in /etc/shells of the machine'),
    cols: integer('N', 'width, in place of that of this terminal', 1),
    rows: integer('N', 'height, in place of that of this terminal', 1),
    ...sessionOptions,
  },
  run: async (context, { node, shell, cols, rows, ...given }) => {
    const { env, signal, streams } = context;
    const settings = sessionSettings(given);
    const connection = await terminalApi(context);
    const { api } = connection;
    const { node_id } = await resolveNode(api, node, { signal });
    const own = sizeOf([streams.stdout, streams.stderr]);
    const size = { cols: cols ?? own.cols, rows: rows ?? own.rows };
    const query = { ...size, shell: shell ?? null, term: openableTerm(env.TERM) };
    // Loaded while the agent starts the shell, behind the request: what is loaded first would hold that up.
    const [opened, { runTerminal }] = await Promise.all([
      api.call('openTerminal', { params: { node_id }, query, body: { env: sentEnvironment(env) }, signal }),
      nextTurn().then(() => import('../../terminal/run-terminal.js')),
    ]);
    return runTerminal(context, {
      connection,
      sessionId: opened.session_id,
      wsUrl: opened.ws_url,
      mode: 'write',
      isNew: true,
      ...(cols === undefined && rows === undefined ? {} : { size }),
      ...settings,
    });
  },
});
