/** Every setting of the agent's YAML file. All take effect as soon as the file changes. */
import { defaultsOf, flag, integer, path, text, type ValuesOf, words } from './setting.js';

const TARGET = '^(?:/[^\\u0000-\\u001f]+|(?:\\[[0-9A-Fa-f:.%]+\\]|[A-Za-z0-9._-]+|\\*):(?:[0-9]{1,5}|\\*))$';
const PATH = '^/[^\\u0000-\\u001f\\u007f]*$';

export const AGENT_SETTINGS = {
  'metrics.enabled': flag({ summary: 'measure processor, memory and disk for the orchestrator', default: true }),
  'metrics.collection_interval': integer({
    summary: 'interval between two measurements',
    default: 30,
    unit: 'seconds',
    minimum: 1,
    maximum: 3600,
  }),
  'facts.directory': path({
    summary: "directory of JSON files and programs of root that give facts of one's own",
    placeholder: 'DIRECTORY',
    default: '/etc/orch/facts.d',
    pattern: '^/.*$',
    maxLength: 4096,
  }),
  'remote_terminal.enabled': flag({
    summary: 'let operators open shells and run commands on this machine; turning it off ends open ones',
    default: false,
  }),
  'remote_terminal.shell': path({
    summary: "path of the shell, one of /etc/shells; empty for the user's login shell",
    pattern: '^(/.*)?$',
    maxLength: 4096,
  }),
  'remote_terminal.allow_operator_shell_override': flag({
    summary: 'let operators choose another shell of /etc/shells',
    default: false,
  }),
  'remote_terminal.max_sessions': integer({
    summary: 'maximum shells open at the same time',
    default: 100,
    minimum: 1,
    maximum: 1000,
  }),
  'remote_terminal.user': text({
    summary:
      'user that shells and commands run as; empty for the user of the agent; another one needs an agent of root',
    maxLength: 256,
  }),
  'remote_terminal.accept_env': words({
    summary: 'variables of the operator that shells and commands accept',
    detail: 'names, or prefixes with *; variables that decide which code runs are never accepted',
    default: ['LANG', 'LC_*', 'COLORTERM'],
    placeholder: 'NAME,…',
    pattern: '^[A-Za-z_][A-Za-z0-9_]*\\*?$',
    maxLength: 64,
    maxItems: 64,
  }),
  'forward.targets': words({
    summary: 'targets that operators may forward connections to; none by default',
    detail: 'HOST:PORT with * for any host or port, or the path of a Unix socket; a name permits that name only',
    placeholder: 'TARGET,…',
    pattern: TARGET,
    maxLength: 300,
    maxItems: 256,
  }),
  'ssh_proxy.targets': words({
    summary: 'targets of orch ssh-proxy, such as localhost:22 for the sshd of the machine; none by default',
    detail: 'in the form of forward.targets',
    placeholder: 'TARGET,…',
    pattern: TARGET,
    maxLength: 300,
    maxItems: 256,
  }),
  'copy.read': words({
    summary: 'paths that operators may copy from this machine (orch cp); none by default',
    detail: 'files, or directories with everything below them; real paths: links in an entry are not followed',
    placeholder: 'PATH,…',
    pattern: PATH,
    maxLength: 4096,
    maxItems: 256,
  }),
  'copy.write': words({
    summary: 'paths that operators may copy to on this machine (orch cp); none by default',
    detail: 'in the form of copy.read',
    placeholder: 'PATH,…',
    pattern: PATH,
    maxLength: 4096,
    maxItems: 256,
  }),
  script_timeout: integer({
    summary: 'maximum time of a script that declares no timeout',
    default: 600,
    unit: 'seconds',
    minimum: 1,
    maximum: 3600,
  }),
} as const;

export type AgentSettings = ValuesOf<typeof AGENT_SETTINGS>;

/** Settings without a file. */
export const AGENT_DEFAULTS: AgentSettings = defaultsOf(AGENT_SETTINGS);
