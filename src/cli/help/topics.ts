/** The topics of `orch help`. Each returns its page for a number of columns. */
import { API_PORT } from '../../kernel/ports.js';
import { EXIT_MEANINGS, EXIT_PRECEDENCE } from '../exit-status.js';
import { CONNECTION_OPTIONS, CONSENT_OPTIONS, OUTPUT_OPTIONS } from '../global-options.js';
import { headed, stack, type View } from '../outcome.js';
import { optionRows } from './syntax.js';
import { paragraphs, terms } from './wrap.js';

export interface Topic {
  readonly name: string;
  readonly summary: string;
  readonly view: (width: number) => View;
}

export const TOPICS: readonly Topic[] = [
  {
    name: 'options',
    summary: 'the options that all commands have in common',
    view: (width) =>
      stack(
        headed('Every command', terms(optionRows(OUTPUT_OPTIONS), width)),
        headed('Commands that talk to the orchestrator', terms(optionRows(CONNECTION_OPTIONS), width)),
        headed('Commands that ask for consent', terms(optionRows(CONSENT_OPTIONS), width)),
        paragraphs(optionText, width),
      ),
  },
  {
    name: 'exit-codes',
    summary: 'the exit statuses of commands',
    view: (width) =>
      stack(
        headed(
          'How orch ends',
          terms(
            EXIT_MEANINGS.map(([status, meaning]) => [String(status).padStart(3), meaning] as const),
            width,
          ),
        ),
        headed('If several apply', paragraphs(EXIT_PRECEDENCE, width)),
      ),
  },
  {
    name: 'environment',
    summary: 'the environment variables that orch reads',
    view: (width) =>
      stack(
        paragraphs(['A flag overrides its variable, and both override the profile.'], width),
        headed('Variables', terms(environment, width)),
      ),
  },
  {
    name: 'selectors',
    summary: 'how to select agents by attributes and tags',
    view: (width) => stack(paragraphs(selectorText, width), headed('Terms', terms(selectorTerms, width))),
  },
  {
    name: 'output',
    summary: 'what goes to standard output and what to standard error',
    view: (width) => stack(headed('Formats', terms(formats, width)), paragraphs(outputText, width)),
  },
];

const optionText: readonly string[] = [
  'These options may stand anywhere on the command line.',
  'A flag overrides its environment variable, and a variable overrides the profile: see orch help environment.',
  'Without a terminal no command asks: a command that needs consent fails with exit status 64 unless --yes is given.',
];

const environment: readonly (readonly [string, string])[] = [
  ['ORCH_URL', `URL of the orchestrator, such as https://host:${API_PORT} (--url)`],
  ['ORCH_PROFILE', 'profile of the orchestrator (--profile)'],
  ['ORCH_TLS_FINGERPRINT', 'the certificate to accept (--tls-fingerprint)'],
  ['ORCH_CA', 'file of the certificate authority to accept (--ca)'],
  ['ORCH_KEY_FILE', "file of your operator's private key (--key-file)"],
  ['ORCH_KEY', 'the private key itself, as PEM; the session token then stays off the disk'],
  ['ORCH_TOKEN', 'a session token, used instead of a login'],
  ['ORCH_ALLOW_UNBOUND_LOGIN', 'true: log in to servers that do not bind the login to their certificate'],
  ['ORCH_ALLOW_PLAIN_HTTP', 'true: speak plain HTTP to hosts beyond loopback'],
  ['ORCH_SSH_AGENT', 'the public key whose private half an ssh-agent keeps (--ssh-agent)'],
  ['ORCH_NO_STATE', '1: write no session tokens and no profiles'],
  ['ORCH_PAGER, PAGER', 'the pager of long output on a terminal; empty or "cat": none [less -FRX] (--no-pager)'],
  ['HTTPS_PROXY, NO_PROXY', 'the proxy, and the hosts that need none'],
  ['NO_COLOR', 'not empty: no colours, whatever the next three say (--color and --no-color override it)'],
  ['CLICOLOR_FORCE, FORCE_COLOR', 'not 0: colours even without a terminal; FORCE_COLOR=0: none'],
  ['CLICOLOR', '0: no colours'],
  ['XDG_CONFIG_HOME', 'directory of orch/config.yaml and orch/operator.key [~/.config]'],
  ['XDG_STATE_HOME', 'directory of session tokens [~/.local/state]'],
];

const selectorText: readonly string[] = [
  'A selector is a list of terms, joined by commas or spaces, that must all hold.',
  'arch, distro, init_system, platform and version test what the agent reports about its machine;',
  'every other key tests the tag of that name. "tag." in front always means the tag.',
];

const selectorTerms: readonly (readonly [string, string])[] = [
  ['role=web', 'the tag role is web (also: role==web)'],
  ['role!=web', 'the tag role is something else, or missing'],
  ['role', 'there is a tag role'],
  ['!role', 'there is none'],
  ['env in (prod,stage)', 'one of these'],
  ['env notin (prod)', 'none of these'],
  ['platform=linux,role=web', 'both'],
  ['*', 'every approved agent'],
];

const formats: readonly (readonly [string, string])[] = [
  ['-o table', 'for people, cut to fit the terminal [default]'],
  ['-o wide', 'the same with more columns, never cut'],
  ['-o json', "the API's own answer; --json for short"],
  ['-o yaml', 'the same as YAML'],
  ['-o name', 'the names or ids alone, one a line; -q for short, which also leaves out notes and warnings'],
  ['-o jsonpath=EXPR', "parts of the API's answer, one a line: -o jsonpath='$[?@.connected==false].name'"],
];

const outputText: readonly string[] = [
  'Standard output carries the answer alone, standard error everything else.',
  'With -o json an error is the problem document of the API (RFC 9457) on the last line of standard error.',
  'Its "code" is stable; what failed on this machine has the same shape and a code of its own.',
  'plan, apply and drift with one NODE print the answer of the API. With several agents, --selector, --status or',
  '--assignment they print one object {has_changes, results: [{node_id, name, status, operation_id, summary, result, error}],',
  'summary}, to which plan and apply add assignment, selector and rollout_id, and apply also state and reason.',
  'exec prints the output of the remote command; with -o json one object per agent, with several agents one per line.',
  'EXPR is a JSONPath (RFC 9535), or as in kubectl {.items[*].name}. A text is printed as it is, anything else as JSON on',
  'one line. The expression is checked before the command does anything.',
  'On a terminal, output that does not fit goes through the pager (orch help environment), unless --no-pager is given.',
  '--watch redraws a list on a terminal. Elsewhere it prints each new or changed row again; with -o json as one line each.',
  'Tables show times as ages (3 min ago, in 2 h), -o wide shows the times themselves. --sort COLUMN and --columns LIST',
  'arrange the table of a list; a narrow terminal gives up the columns that say least.',
  'Long lists with --all print one API answer per page, one after another.',
  'Control characters in text of agents and servers are shown as \\x1b or \\u202e. JSON and YAML escape them.',
];
