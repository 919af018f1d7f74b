/** Words by which other tools name what orch names otherwise. Loaded only for an unknown command. */
import { entryOf, groupOf, wordsBelow } from './find-command.js';

/** Lists words with one hint: what is meant, and the command for it. */
type Meaning = readonly [words: string, hint: string];

const SHELL = 'a shell on an agent: orch term NODE; one command: orch exec NODE -- COMMAND';
const COMMAND = 'a command on agents: orch exec NODE -- COMMAND';
const MACHINES = 'the machines of the fleet: orch agents list';
const NEW_MACHINE = 'a new machine joins with a token: orch enroll create';
const APPLY = 'machines get their modules with: orch apply NODE, and you see it before with: orch plan NODE';
const EARLIER = 'an earlier state of an agent comes back with: orch apply NODE --to OPERATION (see: orch ops list)';
const JOBS = 'plans and applies: orch ops list; those of many agents: orch rollouts list';
const LOGS = 'output of scripts: orch ops output ID; what happened: orch audit list';
const CHECK_FILE = 'module files are checked with: orch module validate FILE';
const VERBS = 'the noun comes first: orch agents list, orch module show NAME, orch secrets set NAME';
const SERVICE = 'services are started and stopped with systemctl: orch-serve is the orchestrator, orch-agent the agent';

const MEANINGS: readonly Meaning[] = [
  ['terminal, console, shell, ssh, tty, attach', SHELL],
  ['run, cmd, command, ad-hoc, adhoc, shell-command, execute', COMMAND],
  ['nodes, node, hosts, host, machines, machine, minions, minion, devices, inventory, fleet, clients', MACHINES],
  ['deploy, push, converge, up, install-module, reconcile, playbook', APPLY],
  ['rollback, undo, revert, reset', EARLIER],
  ['logs, log, output', LOGS],
  ['events, event, history, journal, activity', 'what happened in the fleet: orch audit list'],
  ['alerts, alert, alarms', 'alerts of the fleet: orch notifications list'],
  ['webhooks, webhook, notify', 'where notifications go: orch channels list'],
  ['jobs, job, tasks, task, operations, operation, runs, ps, queue', JOBS],
  ['deployments, deployment, releases, waves', 'applies on many agents: orch rollouts list'],
  ['cancel, abort, kill', 'an apply is cancelled with: orch ops cancel ID, a terminal closed with: orch term close ID'],
  ['backup, dump', 'a backup of the orchestrator: orch serve backup FILE'],
  ['restore', 'a backup is restored with: orch serve restore FILE'],
  ['upgrade, update, self-update', 'agents get a new release with: orch agents upgrade NODE'],
  ['whoami, id', 'who you are logged in as: orch operator whoami'],
  ['users, user, accounts, account, roles, rbac, admins', 'people and their roles: orch operator list'],
  [
    'keys, key, approve, accept, sign',
    'waiting machines: orch agents list --status pending, then: orch agents approve NODE',
  ],
  ['join, register, bootstrap, enrol, add, token, tokens, provision, onboard', NEW_MACHINE],
  ['connect', 'the agent of this machine: orch agent connect HOST'],
  ['lint, validate, fmt, check, test, parse', CHECK_FILE],
  [
    'diff, preview, dry-run, dryrun, noop',
    'what an apply would change: orch plan NODE; of files: orch module diff FILE',
  ],
  ['tag, label, labels, untag', 'tags of an agent are changed with: orch agents tag NODE KEY=VALUE'],
  ['vars, vars-files, variables, pillar, hiera', 'values of inputs: orch values list'],
  ['vault, secret-store, credentials', 'write-only values: orch secrets list'],
  ['gather, setup, grains, attributes', 'facts of a machine: orch facts NODE'],
  [
    'scp, copy, rsync, put, fetch, download',
    'copy files with: orch cp FILE NODE:PATH; files that a machine should keep having come by a module',
  ],
  ['ping, health', 'whether machines are connected: orch agents list; the orchestrator: orch status'],
  ['init', 'to try orch: orch quickstart; your key: orch operator init; a module file: orch module new NAME'],
  [
    'server, daemon, orchestrator, controller',
    'the orchestrator is run with: orch serve, or as a service: orch serve install',
  ],
  ['start, stop, restart, reload', SERVICE],
  ['install', 'on a machine: orch agent install HOST; the orchestrator: orch serve install'],
  ['uninstall, purge', 'on a machine: orch agent uninstall; the orchestrator: orch serve uninstall'],
  ['settings, configure, set', 'settings of this client: orch config show; an orchestrator: orch profile create NAME'],
  ['contexts, context, targets, target, use', 'saved orchestrators: orch profile list'],
  [
    'roles-list, recipes, recipe, cookbook, formula, manifest, manifests, policy, policies',
    'modules: orch module list',
  ],
  ['groups, group, bindings', 'which agents get which modules: orch assignments list; tags: orch tags'],
  ['dashboard, ui, monitor, watch', 'the fleet live: orch top'],
  ['stats, usage', 'measurements of an agent: orch metrics NODE'],
  ['recordings, recording, sessions, session', 'terminal sessions: orch term list --all'],
  ['windows, window, schedule, silence, mute, downtime', 'maintenance windows: orch maintenance list'],
  ['get, list, ls, show, describe, inspect, create, new, delete, remove, rm, edit', VERBS],
  ['docs, man, manual', 'a command is explained by: orch help'],

  ['assignments apply, assignments deploy, assignments run', 'apply an assignment with: orch apply --assignment NAME'],
  ['assignments plan, assignments diff', 'preview an assignment with: orch plan --assignment NAME'],
  ['assignments pause, assignments stop', 'change the mode with: orch assignments edit NAME --mode manual'],
  ['module apply, module deploy, module run, module install', 'apply a module with: orch apply NODE -m MODULE'],
  ['module plan', 'preview a module with: orch plan NODE -m MODULE'],
  ['module upload, module push, module add, module put, module set', 'store it with: orch module publish FILE'],
  ['module download, module cat, module export', 'its files: orch module pull NAME'],
  ['module lint, module test, module fmt', CHECK_FILE],
  ['module rollback, module revert, module history', 'earlier texts: orch module revisions NAME'],
  ['agents add, agents create, agents new, agents join, agents enroll, agents register', NEW_MACHINE],
  ['agents exec, agents run', COMMAND],
  ['agents ssh, agents shell, agents term, agents terminal, agents console', SHELL],
  ['agents accept, agents sign', 'approve a machine with: orch agents approve NODE'],
  ['agents label, agents set, agents edit', 'change its tags with: orch agents tag NODE KEY=VALUE'],
  ['agents apply, agents deploy, agents converge, agents plan', APPLY],
  ['agents facts, agents setup, agents attributes', 'facts of a machine: orch facts NODE'],
  ['agents metrics, agents stats', 'measurements of an agent: orch metrics NODE'],
  ['agents drift, agents diff', 'differences of a machine: orch drift NODE'],
  ['agents logs, agents log, agents events, agents history', 'what happened to it: orch audit list --agent NODE'],
  ['agents update', 'a new release: orch agents upgrade NODE; tags: orch agents tag NODE KEY=VALUE'],
  ['agents revoke, agents disable', 'an agent is revoked with: orch agents reject NODE'],
  ['agent logs, agent log, serve logs, serve log', 'the log of a service: journalctl -u orch-agent, or -u orch-serve'],
  ['agent start, agent stop, agent restart, serve start, serve stop, serve restart, serve reload', SERVICE],
  ['agent join, agent register, agent enroll', 'connect this machine with: orch agent connect HOST'],
  ['serve status', 'the health of the orchestrator: orch status'],
  ['rollouts rollback, rollouts undo, rollouts revert, ops rollback, ops undo, ops revert', EARLIER],
  ['rollouts start, rollouts create, rollouts new, ops create, ops new, ops run', APPLY],
  ['rollouts abort', 'end a rollout with: orch rollouts cancel ID'],
  ['ops retry', 'apply again with: orch apply NODE; the rest of a rollout: orch rollouts retry ID'],
  ['ops log, ops logs', 'output of scripts: orch ops output ID'],
  ['operator login', 'log in with: orch login'],
  ['config set, config edit', 'change an orchestrator of this client with: orch profile update NAME'],
  ['enroll token', NEW_MACHINE],
];

const HINTS: ReadonlyMap<string, string> = new Map(
  MEANINGS.flatMap(([words, hint]) => words.split(', ').map((word) => [word, hint] as const)),
);

/** All words of other tools. */
export const FOREIGN_WORDS: readonly string[] = [...HINTS.keys()];

/**
 * Returns a hint about words that name no command: the command that another tool has under them, or the one that differs by a
 * plural; null if neither is known.
 *
 * @param words the words of a group, and the unknown word behind it
 */
export function foreignHint(words: readonly string[]): string | null {
  return HINTS.get(words.join(' ')) ?? pluralHint(words);
}

/** Returns the command that `agent list` or `secret` means: `orch agents list`, `orch secrets`. */
function pluralHint([first = '', ...rest]: readonly string[]): string | null {
  const other = first.endsWith('s') ? first.slice(0, -1) : `${first}s`;
  const path = [other, ...rest].join(' ');
  if (entryOf(path) !== undefined) return `did you mean "orch ${path}"?`;
  if (groupOf(path) === undefined) return null;
  return `did you mean "orch ${path}"? Its commands: ${wordsBelow(path).join(', ')}`;
}
