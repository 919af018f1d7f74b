/** What `orch help TOPIC` explains beside the commands. */
import { EXIT_MEANINGS } from '../exit-status.js';
import { fields, fieldsOf, headed, type Line, lines, linesOf, stack, type View } from '../view.js';

export interface Topic {
  readonly name: string;
  readonly summary: string;
  readonly view: () => View;
}

export const TOPICS: readonly Topic[] = [
  {
    name: 'exit-codes',
    summary: 'what the exit status of a command tells',
    view: () =>
      headed(
        'How orch ends',
        fieldsOf(EXIT_MEANINGS.map(([status, meaning]) => [String(status).padStart(3), meaning] as const)),
      ),
  },
  {
    name: 'environment',
    summary: 'the variables that orch reads',
    view: () =>
      stack(headed('Variables', lines('A flag stands above its variable, and both above the profile.')), environment),
  },
  {
    name: 'selectors',
    summary: 'how to select agents by attributes and tags',
    view: () => stack(headed('Selectors', linesOf(selectorText)), selectorTable),
  },
  {
    name: 'output',
    summary: 'what goes to standard output and what to standard error',
    view: () => stack(headed('Output', outputTable), linesOf(outputText)),
  },
];

const environment = fields(
  ['ORCH_URL', 'which orchestrator, such as https://host:4748 (--url)'],
  ['ORCH_PROFILE', 'which orchestrator, by the name of its profile (--profile)'],
  ['ORCH_TLS_FINGERPRINT', 'the certificate to accept (--tls-fingerprint)'],
  ['ORCH_CA', 'file of the certificate authority to accept (--ca)'],
  ['ORCH_KEY_FILE', "file of your operator's private key (--key-file)"],
  ['ORCH_KEY', 'the private key itself, as PEM'],
  ['ORCH_TOKEN', 'a session token; there is no login then'],
  ['ORCH_ALLOW_UNBOUND_LOGIN', 'true: log in to servers that do not bind the login to their certificate'],
  ['ORCH_ALLOW_PLAIN_HTTP', 'true: speak plain HTTP to hosts beyond loopback'],
  ['HTTPS_PROXY, NO_PROXY', 'the proxy to go through, and for which hosts not'],
  ['NO_COLOR, FORCE_COLOR', 'never, or always, print colours (--no-color); also CLICOLOR=0, CLICOLOR_FORCE=1'],
  ['XDG_CONFIG_HOME', 'where orch/config.yaml and orch/operator.key are; ~/.config'],
  ['XDG_STATE_HOME', 'where session tokens are kept; ~/.local/state'],
);

const selectorText: readonly Line[] = [
  'A selector is a list of terms, joined by commas or spaces, that must all hold.',
  'arch, distro, init_system, platform and version test what the agent reports about its machine;',
  'every other key tests the tag of that name. "tag." in front always means the tag.',
];

const selectorTable = fields(
  ['role=web', 'the tag role is web (also: role==web)'],
  ['role!=web', 'the tag role is something else, or missing'],
  ['role', 'there is a tag role'],
  ['!role', 'there is none'],
  ['env in (prod,stage)', 'one of these'],
  ['env notin (prod)', 'none of these'],
  ['platform=linux,role=web', 'both'],
  ['*', 'every approved agent'],
);

const outputTable = fields(
  ['-o table', 'for people; cut to fit the terminal (standard)'],
  ['-o wide', 'the same with more columns, never cut'],
  ['-o json', "the API's own answer; --json for short"],
  ['-o yaml', 'the same as YAML'],
  ['-o name', 'the names or ids alone, one a line'],
);

const outputText: readonly Line[] = [
  'Standard output carries the answer alone. Progress, questions, warnings and errors go to standard error.',
  'With -o json an error is the problem document of the API (RFC 9457) on standard error, on one line, the last one.',
  'There, "code" is stable; what failed on this machine has the same shape and a code of its own.',
  'plan, apply and drift of one NODE print the answer of the API; of several, one object',
  '{has_changes, results: [{node_id, name, status, result, error}], summary}; so does --selector, whatever it matches.',
  'plan and apply with --assignment print the answer of the API, which has no result in it; -v shows people everything.',
  'The output of exec is that of the remote command; with -o json it is one object of each agent, one a line of several.',
  'Long lists with --all print one answer after the other, a page each.',
  'Control characters in what agents and servers say are shown as \\x1b, \\u202e, never obeyed; JSON and YAML escape them.',
];
