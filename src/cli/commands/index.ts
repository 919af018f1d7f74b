/** Every command: its words, its summary, and how to load it. Nothing here loads a command. */
import type { Command } from '../define-command.js';

export interface CommandEntry {
  /** The words of the command, such as `agents show`. */
  readonly path: string;
  readonly summary: string;
  readonly load: () => Promise<{ readonly command: Command }>;
  /** For programs alone: neither listed nor suggested. */
  readonly hidden?: boolean;
}

export interface Group {
  readonly path: string;
  readonly summary: string;
  /** The command that the group's name alone stands for. */
  readonly standard?: string;
  /** The command that is meant when a word follows that is none of the group's: its first argument. */
  readonly otherwise?: string;
  /** Words that people expect here and that cannot be, each with the hint that says why. */
  readonly absent?: ReadonlyMap<string, string>;
}

type Loader = CommandEntry['load'];
const entry = (path: string, summary: string, load: Loader): CommandEntry => ({ path, summary, load });

/** In the order of the help. */
export const COMMANDS: readonly CommandEntry[] = [
  entry('quickstart', 'a whole system on this machine in one command', () => import('./quickstart.js')),
  entry('status', 'whether the orchestrator is up and healthy', () => import('./status.js')),
  entry('discover', 'let waiting agents know where the orchestrator is', () => import('./discover.js')),

  entry('operator init', 'make your key, or import one', () => import('./operator/init.js')),
  entry(
    'operator whoami',
    'show your key and who the orchestrator takes you for',
    () => import('./operator/whoami.js'),
  ),
  entry('operator add', 'let somebody else log in', () => import('./operator/add.js')),
  entry('operator list', 'list operators', () => import('./operator/list.js')),
  entry('operator show', 'show one operator', () => import('./operator/show.js')),
  entry('operator remove', 'remove an operator and end its sessions', () => import('./operator/remove.js')),
  entry('login', 'log in now instead of at the next command', () => import('./login.js')),
  entry('logout', 'end the session', () => import('./logout.js')),
  entry('profile create', 'remember an orchestrator under a name', () => import('./profile/create.js')),
  entry('profile update', 'change what a profile remembers', () => import('./profile/update.js')),
  entry('profile list', 'list profiles', () => import('./profile/list.js')),
  entry('profile use', 'make a profile the default', () => import('./profile/use.js')),
  entry('profile remove', 'forget a profile', () => import('./profile/remove.js')),

  entry('agents list', 'list agents', () => import('./agents/list.js')),
  entry('agents show', 'show one agent with its attributes and tags', () => import('./agents/show.js')),
  entry('agents approve', 'let a pending agent into the fleet', () => import('./agents/approve.js')),
  entry('agents reject', 'turn an agent away, or revoke an approved one', () => import('./agents/reject.js')),
  entry('agents remove', 'remove the record of a rejected agent', () => import('./agents/remove.js')),
  entry('agents tag', 'put tags on an agent', () => import('./agents/tag.js')),
  entry('agents untag', 'take tags off an agent', () => import('./agents/untag.js')),
  entry('enroll create', 'make a token that lets new machines in', () => import('./enroll/create.js')),
  entry('enroll list', 'list enrolment tokens', () => import('./enroll/list.js')),
  entry('enroll revoke', 'end an enrolment token', () => import('./enroll/revoke.js')),
  entry('tags', 'list every tag of the fleet', () => import('./tags.js')),

  entry('module new', 'write a new module file', () => import('./module/new.js')),
  entry('module validate', 'check module files on this machine', () => import('./module/validate.js')),
  entry('module check', 'check whether modules go together on agents', () => import('./module/check.js')),
  entry('module deps', 'show what waits for what in a module', () => import('./module/deps.js')),
  entry('module push', 'upload module files', () => import('./module/push.js')),
  entry('module list', 'list modules', () => import('./module/list.js')),
  entry('module show', 'show a module', () => import('./module/show.js')),
  entry('module diff', 'compare module files with what the orchestrator has', () => import('./module/diff.js')),
  entry('module revisions', 'list the revisions of a module', () => import('./module/revisions.js')),
  entry('module remove', 'delete a module', () => import('./module/remove.js')),
  entry('module schema', 'print the JSON Schema of a module, for editors', () => import('./module/schema.js')),
  entry('assignments list', 'list assignments', () => import('./assignments/list.js')),
  entry('assignments show', 'show one assignment and its agents', () => import('./assignments/show.js')),
  entry('assignments create', 'give modules to every agent of a selector', () => import('./assignments/create.js')),
  entry('assignments edit', 'change an assignment', () => import('./assignments/edit.js')),
  entry('assignments remove', 'delete an assignment', () => import('./assignments/remove.js')),
  entry('sync', 'bring modules and assignments from a directory of files', () => import('./sync.js')),
  entry('plan', 'show what an apply would change', () => import('./plan.js')),
  entry('apply', 'bring agents to the state that modules describe', () => import('./apply.js')),
  entry('drift', 'compare agents with their last successful apply', () => import('./drift/check.js')),
  entry('drift list', 'list drift records', () => import('./drift/list.js')),
  entry('drift show', 'show one drift record', () => import('./drift/show.js')),
  entry('drift latest', 'show the newest drift record of an agent', () => import('./drift/latest.js')),
  entry('state', 'what orch believes to have put on an agent', () => import('./state.js')),
  entry('impact', 'tell what changed module files would do to the fleet', () => import('./impact.js')),
  entry('metrics', 'show what an agent has measured of its machine', () => import('./metrics.js')),
  entry('top', 'watch the whole fleet live', () => import('./top.js')),
  entry('explain', 'tell what put a resource on an agent', () => import('./explain.js')),
  entry('ops list', 'list operations', () => import('./ops/list.js')),
  entry('ops show', 'show one operation with its resources', () => import('./ops/show.js')),
  entry('ops watch', 'follow an operation to its end', () => import('./ops/watch.js')),
  entry('ops cancel', 'cancel an operation at the next resource', () => import('./ops/cancel.js')),
  entry('ops output', 'show what the scripts of an operation printed', () => import('./ops/output.js')),
  entry('exec', 'run a command on agents', () => import('./exec.js')),
  entry('term open', 'open a shell on an agent', () => import('./term/open.js')),
  entry('term attach', 'come back to a terminal session, or watch it', () => import('./term/attach.js')),
  entry('term list', 'list terminal sessions', () => import('./term/list.js')),
  entry('term show', 'show one terminal session', () => import('./term/show.js')),
  entry('term close', 'end a terminal session and its program', () => import('./term/close.js')),
  entry('term transcript', 'get the recording of a session', () => import('./term/transcript.js')),
  entry('term replay', 'play the recording of a session', () => import('./term/replay.js')),
  entry('term grep', 'search what was shown in terminals', () => import('./term/grep.js')),
  entry('secrets set', 'make a secret, or change it', () => import('./secrets/set.js')),
  entry('secrets list', 'list secrets without their values', () => import('./secrets/list.js')),
  entry('secrets show', 'what is known about a secret, and who uses it', () => import('./secrets/show.js')),
  entry('secrets remove', 'delete a secret', () => import('./secrets/remove.js')),
  entry('maintenance start', 'begin a maintenance window now', () => import('./maintenance/start.js')),
  entry('maintenance schedule', 'set a maintenance window for later', () => import('./maintenance/schedule.js')),
  entry('maintenance list', 'list maintenance windows', () => import('./maintenance/list.js')),
  entry('maintenance show', 'show one maintenance window', () => import('./maintenance/show.js')),
  entry('maintenance end', 'end a maintenance window now', () => import('./maintenance/end.js')),
  entry('maintenance remove', 'delete a maintenance window', () => import('./maintenance/remove.js')),
  entry('channels list', 'list notification channels', () => import('./channels/list.js')),
  entry('channels show', 'show a channel and what was sent to it', () => import('./channels/show.js')),
  entry('channels add', 'send notifications somewhere', () => import('./channels/add.js')),
  entry('channels update', 'change a channel', () => import('./channels/update.js')),
  entry('channels test', 'send a test notification through a channel', () => import('./channels/test.js')),
  entry('channels remove', 'delete a channel', () => import('./channels/remove.js')),
  entry('notifications list', 'list notifications', () => import('./notifications/list.js')),
  entry('notifications read', 'mark notifications as read by you', () => import('./notifications/read.js')),
  entry('notifications read-all', 'mark all as read by you', () => import('./notifications/read-all.js')),
  entry('audit list', 'query the audit log', () => import('./audit/list.js')),
  entry('audit tail', 'show audit events as they happen', () => import('./audit/tail.js')),
  entry('audit verify', 'check that no audit event was altered or removed', () => import('./audit/verify.js')),
  entry('audit prune', 'delete old audit events', () => import('./audit/prune.js')),
  entry('audit retention show', 'how long audit events are kept', () => import('./audit/retention/show.js')),
  entry('audit retention set', 'set how long audit events are kept', () => import('./audit/retention/set.js')),
  entry('audit retention disable', 'keep audit events for ever', () => import('./audit/retention/disable.js')),

  entry('serve', 'run the orchestrator', () => import('./serve.js')),
  entry(
    'serve rotate-secrets-key',
    'change the key that the secrets are encrypted with',
    () => import('./serve/rotate-secrets-key.js'),
  ),
  entry('serve accept-clock', 'confirm a clock that has jumped', () => import('./serve/accept-clock.js')),
  entry('serve backup', 'copy the store into a file, while everything runs', () => import('./serve/backup.js')),
  entry('serve restore', 'put a backup in the place of the store', () => import('./serve/restore.js')),
  entry(
    'serve recover-admin',
    'make a key an admin when no admin can log in',
    () => import('./serve/recover-admin.js'),
  ),
  entry('agent', 'run the agent of this machine, to be found by discovery', () => import('./agent/listen.js')),
  entry('agent connect', 'run the agent of this machine', () => import('./agent/connect.js')),
  entry('agent status', 'show how the agent of this machine is doing', () => import('./agent/status.js')),
  entry('agent repin', 'make the agent of this machine forget its orchestrator', () => import('./agent/repin.js')),
  entry('agent leave', 'take this machine out of its fleet', () => import('./agent/leave.js')),
  entry(
    'agent config-schema',
    "print the JSON Schema of the agent's configuration file",
    () => import('./agent/config-schema.js'),
  ),

  entry('api', 'send any request with your login', () => import('./api.js')),
  entry('completion', 'print the completion script of a shell', () => import('./completion.js')),
  {
    ...entry('__complete', 'what may stand at the end of a command line', () => import('./complete.js')),
    hidden: true,
  },
  entry('help', 'explain a command or a topic', () => import('./help.js')),
];

export const GROUPS: readonly Group[] = [
  { path: 'operator', summary: 'people and pipelines that may log in' },
  { path: 'profile', summary: 'which orchestrators you know, and how' },
  { path: 'agents', summary: 'the machines of the fleet', standard: 'list' },
  { path: 'enroll', summary: 'tokens that let new machines in' },
  { path: 'module', summary: 'declarative lists of resources' },
  { path: 'assignments', summary: 'which modules which agents have', standard: 'list' },
  { path: 'ops', summary: 'applies, running and past', standard: 'list' },
  { path: 'term', summary: 'terminals on agents, and what ran in them', standard: 'list', otherwise: 'open' },
  {
    path: 'secrets',
    summary: 'values that modules name and nobody reads back',
    standard: 'list',
    absent: new Map([['get', 'a stored value is never given back; the rest of a secret: orch secrets show NAME']]),
  },
  { path: 'maintenance', summary: 'times in which nothing is checked or sent by itself', standard: 'list' },
  { path: 'channels', summary: 'where notifications are sent', standard: 'list' },
  { path: 'notifications', summary: 'what somebody has to know of', standard: 'list' },
  { path: 'audit', summary: 'who did what and when', standard: 'list' },
  { path: 'audit retention', summary: 'how long audit events are kept', standard: 'show' },
  { path: 'agent', summary: 'the agent of this machine' },
];

/** The top level of the help, in sections. */
export const SECTIONS: readonly (readonly [title: string, words: readonly string[]])[] = [
  ['Begin', ['quickstart', 'status', 'operator', 'login', 'logout', 'profile']],
  ['Fleet', ['agents', 'enroll', 'discover', 'tags', 'metrics', 'top']],
  [
    'Modules and what they do',
    ['module', 'assignments', 'sync', 'plan', 'apply', 'drift', 'state', 'impact', 'explain', 'ops', 'secrets'],
  ],
  ['Terminals', ['term', 'exec']],
  ['Records', ['maintenance', 'notifications', 'channels', 'audit']],
  ['Programs', ['serve', 'agent']],
  ['Else', ['api', 'completion', 'help']],
];
