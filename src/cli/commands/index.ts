/** The index of all commands: words, summary and lazy loader. It must not load any command itself. */
import type { Command } from '../define-command.js';

export interface CommandEntry {
  /** Words of the command, such as `agents show`. */
  readonly path: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
  /** True for commands that only programs call; neither listed nor suggested. */
  readonly hidden?: boolean;
}

export interface Group {
  readonly path: string;
  readonly summary: string;
  /** Command that the bare group name runs. */
  readonly standard?: string;
  /** Command that runs if the next word is not one of the group's; the word is its first argument. */
  readonly fallback?: string;
  /** Verbs that operators expect but that cannot exist, each with a hint. */
  readonly absent?: ReadonlyMap<string, string>;
}

type Loader = CommandEntry['load'];
const entry = (path: string, summary: string, load: Loader): CommandEntry => ({ path, summary, load });

// Loaders of the nouns.
const agent = () => import('./agent.js');
const agents = () => import('./agents.js');
const apply = () => import('./apply.js');
const assignments = () => import('./assignments.js');
const audit = () => import('./audit.js');
const channels = () => import('./channels.js');
const completion = () => import('./completion.js');
const config = () => import('./config.js');
const doctor = () => import('./doctor.js');
const driftExcuses = () => import('./drift-excuses.js');
const drift = () => import('./drift.js');
const enroll = () => import('./enroll.js');
const maintenance = () => import('./maintenance.js');
const metrics = () => import('./metrics.js');
const modules = () => import('./module.js');
const moduleFiles = () => import('./module-files.js');
const moduleNew = () => import('./module-new.js');
const notifications = () => import('./notifications.js');
const operator = () => import('./operator.js');
const ops = () => import('./ops.js');
const packages = () => import('./package.js');
const profile = () => import('./profile.js');
const rollouts = () => import('./rollouts.js');
const secrets = () => import('./secrets.js');
const serve = () => import('./serve.js');
const service = () => import('./service.js');
const state = () => import('./state.js');
const status = () => import('./status.js');
const store = () => import('./store.js');
const term = () => import('./term.js');
const recordings = () => import('./term-recordings.js');
const values = () => import('./values.js');

/** All commands in the order of the help. */
export const COMMANDS: readonly CommandEntry[] = [
  entry('quickstart', 'try a complete system on this machine with one command', async () => (await serve()).quickstart),
  entry('status', 'show the health of the orchestrator', async () => (await status()).showStatus),
  entry(
    'doctor',
    'check this machine and your set-up, and name the fix of each problem',
    async () => (await doctor()).examineSetup,
  ),
  entry(
    'discover',
    'send the address of the orchestrator to waiting agents',
    async () => (await status()).discoverAgents,
  ),

  entry('operator init', 'create or import your key', async () => (await operator()).initOperator),
  entry(
    'operator whoami',
    'show your key and the operator you are logged in as',
    async () => (await operator()).whoAmI,
  ),
  entry('operator add', 'add an operator', async () => (await operator()).addOperator),
  entry('operator list', 'list operators', async () => (await operator()).listOperators),
  entry('operator show', 'show one operator', async () => (await operator()).showOperator),
  entry('operator remove', 'remove an operator and end its sessions', async () => (await operator()).removeOperator),
  entry(
    'operator grant',
    'change what an operator may do, and on which machines',
    async () => (await import('./operator-rights.js')).grantRights,
  ),
  entry(
    'operator rights',
    'show what an operator may do',
    async () => (await import('./operator-rights.js')).showRights,
  ),
  entry(
    'operator rotate',
    'replace your key by a new one',
    async () => (await import('./operator-rotate.js')).rotateKey,
  ),
  entry('login', 'log in now instead of with the next command', async () => (await operator()).logIn),
  entry('logout', 'end the session', async () => (await operator()).logOut),
  entry(
    'config show',
    'show the settings of this client, and where they come from',
    async () => (await config()).showConfig,
  ),
  entry('profile create', 'save an orchestrator under a name', async () => (await profile()).createProfile),
  entry('profile update', 'change a profile', async () => (await profile()).updateProfile),
  entry('profile list', 'list profiles', async () => (await profile()).listProfiles),
  entry('profile use', 'make a profile the default', async () => (await profile()).useProfile),
  entry('profile remove', 'remove a profile', async () => (await profile()).removeProfile),

  entry('agents list', 'list agents', async () => (await agents()).listAgents),
  entry('agents show', 'show one agent with its attributes and tags', async () => (await agents()).showAgent),
  entry('agents approve', 'approve a pending agent', async () => (await agents()).approveAgents),
  entry('agents reject', 'reject a pending agent, or revoke an approved one', async () => (await agents()).rejectAgent),
  entry('agents rename', 'give an agent another name', async () => (await import('./agent-identity.js')).renameAgent),
  entry(
    'agents keep',
    'decide which machine is an agent when several have its key',
    async () => (await import('./agent-identity.js')).keepMachine,
  ),
  entry('agents remove', 'remove the record of a rejected agent', async () => (await agents()).removeAgent),
  entry('agents tag', 'add tags to an agent', async () => (await agents()).tagAgent),
  entry('agents untag', 'remove tags from an agent', async () => (await agents()).untagAgent),
  entry(
    'agents upgrade',
    'upgrade agents, with canaries and roll-back',
    async () => (await import('./agents-upgrade.js')).upgradeAgents,
  ),
  entry('enroll create', 'create a token that enrols new machines', async () => (await enroll()).createToken),
  entry('enroll list', 'list enrolment tokens', async () => (await enroll()).listTokens),
  entry('enroll revoke', 'revoke an enrolment token', async () => (await enroll()).revokeToken),
  entry('tags', 'list the tags of the fleet', async () => (await agents()).listTags),

  entry('module new', 'create a module file', async () => (await moduleNew()).newModule),
  entry('module validate', 'validate module files on this machine', async () => (await moduleFiles()).validateModules),
  entry('module check', 'check modules for conflicts on agents', async () => (await moduleFiles()).checkModules),
  entry('module deps', 'show the dependencies in a module', async () => (await moduleFiles()).showDependencies),
  entry(
    'module publish',
    'publish module files, or what a machine has on trial',
    async () => (await moduleFiles()).publishModuleFiles,
  ),
  entry('module list', 'list modules', async () => (await modules()).listModules),
  entry('module show', 'show a module', async () => (await modules()).showModule),
  entry('module pull', 'write modules to files', async () => (await modules()).pullModuleFiles),
  entry('module edit', 'edit a module in your editor, and publish it', async () => (await moduleFiles()).editModule),
  entry('module diff', 'compare module files with the uploaded modules', async () => (await moduleFiles()).diffModules),
  entry('module revisions', 'list the revisions of a module', async () => (await modules()).listRevisions),
  entry('module remove', 'delete a module', async () => (await modules()).removeModule),
  entry(
    'module schema',
    'print the JSON Schema of a module, for editors',
    async () => (await modules()).printModuleSchema,
  ),
  entry('values list', 'list value sets', async () => (await values()).listValueSets),
  entry('values show', 'show a value set', async () => (await values()).showValueSet),
  entry('values revisions', 'list the revisions of a value set', async () => (await values()).listValueRevisions),
  entry('values diff', 'compare files with stored value sets', async () => (await values()).diffValueFiles),
  entry('values check', 'check files of value sets on this machine', async () => (await values()).checkValueFiles),
  entry('values push', 'store value sets', async () => (await values()).pushValueFiles),
  entry('values edit', 'change a value set in your editor', async () => (await values()).editValueSet),
  entry('values remove', 'delete a value set', async () => (await values()).removeValueSet),
  entry('assignments list', 'list assignments', async () => (await assignments()).listAssignments),
  entry('assignments show', 'show an assignment and its agents', async () => (await assignments()).showAssignment),
  entry(
    'assignments create',
    'assign modules to the agents of a selector',
    async () => (await assignments()).createAssignment,
  ),
  entry('assignments edit', 'change an assignment', async () => (await assignments()).editAssignment),
  entry(
    'assignments resume',
    'let stopped automatic applies go on',
    async () => (await assignments()).resumeAssignment,
  ),
  entry('assignments remove', 'delete an assignment', async () => (await assignments()).removeAssignment),
  entry('sync', 'update modules and assignments from a directory', async () => (await import('./sync.js')).command),
  entry('plan', 'show what an apply would change', async () => (await apply()).planModules),
  entry('apply', 'apply modules to agents', async () => (await apply()).applyModules),
  entry('verify', 'run the health checks of agents again', async () => (await import('./verify.js')).verifyAgents),
  entry('drift', 'compare agents with their last successful apply', async () => (await drift()).checkDrift),
  entry('drift list', 'list drift records', async () => (await drift()).listDrift),
  entry('drift show', 'show one drift record', async () => (await drift()).showDrift),
  entry('drift latest', 'show the newest drift record of an agent', async () => (await drift()).showLatestDrift),
  entry('drift snooze', 'let drift not count until a time', async () => (await driftExcuses()).snoozeDrift),
  entry('drift snoozes', 'list snoozed and accepted drift', async () => (await driftExcuses()).listSnoozes),
  entry('drift unsnooze', 'end a snooze now', async () => (await driftExcuses()).endSnooze),
  entry('drift accept', 'take drift as expected until the next apply', async () => (await driftExcuses()).acceptDrift),
  entry(
    'drift adopt',
    'print a patch of the modules that makes drift declared',
    async () => (await import('./drift-adopt.js')).adoptDrift,
  ),
  entry('state', 'show the believed state of an agent', async () => (await state()).showState),
  entry(
    'impact',
    'show the effect of changed module files on the fleet',
    async () => (await import('./impact.js')).command,
  ),
  entry(
    'facts',
    'show the facts of an agent, which modules can use',
    async () => (await import('./facts.js')).showFacts,
  ),
  entry('metrics', 'show the measurements of an agent', async () => (await metrics()).showMetrics),
  entry('top', 'watch the whole fleet live', async () => (await metrics()).showFleet),
  entry('explain', 'show the origin of a resource on an agent', async () => (await state()).explainResource),
  entry('rollouts list', 'list rollouts', async () => (await rollouts()).listRollouts),
  entry('rollouts show', 'show one rollout with its agents', async () => (await rollouts()).showRollout),
  entry('rollouts watch', 'follow a rollout to its end', async () => (await rollouts()).watchRollouts),
  entry('rollouts pause', 'start no further agent for now', async () => (await rollouts()).pauseRollout),
  entry('rollouts resume', 'continue a paused or halted rollout', async () => (await rollouts()).resumeRollout),
  entry(
    'rollouts retry',
    'apply again to the agents of a rollout that did not succeed',
    async () => (await rollouts()).retryRollout,
  ),
  entry('rollouts cancel', 'end a rollout at the next resource', async () => (await rollouts()).cancelRollout),
  entry('ops list', 'list operations', async () => (await ops()).listOperations),
  entry('ops show', 'show one operation with its resources', async () => (await ops()).showOperation),
  entry('ops watch', 'follow an operation to its end', async () => (await ops()).watchOperation),
  entry(
    'ops cancel',
    'cancel an operation or a rollout at the next resource',
    async () => (await ops()).cancelOperation,
  ),
  entry('ops output', 'show the output of the scripts of an operation', async () => (await ops()).showOutput),
  entry('exec', 'run a command on agents', async () => (await import('./exec.js')).command),
  entry('cp', 'copy files to and from machines', async () => (await import('./cp.js')).command),
  entry(
    'forward',
    'forward ports and sockets of this machine through an agent',
    async () => (await import('./forward.js')).openForward,
  ),
  entry(
    'ssh-proxy',
    'connect OpenSSH to the sshd of a machine, as its ProxyCommand',
    async () => (await import('./forward.js')).sshProxy,
  ),
  entry(
    'ssh-config',
    'print lines for ~/.ssh/config, so that ssh reaches machines through their agents',
    async () => (await import('./ssh-config.js')).printSshConfig,
  ),
  entry('term open', 'open a shell on an agent', async () => (await term()).openTerminal),
  entry('term attach', 'attach to a terminal session, or watch it', async () => (await term()).attachTerminal),
  entry('term list', 'list terminal sessions', async () => (await term()).listTerminals),
  entry('term show', 'show one terminal session', async () => (await term()).showTerminal),
  entry('term close', 'close a terminal session and end its program', async () => (await term()).closeTerminals),
  entry('term transcript', 'print or save the recording of a session', async () => (await recordings()).getTranscript),
  entry('term replay', 'play the recording of a session', async () => (await recordings()).replayRecording),
  entry('term grep', 'search the recordings of sessions', async () => (await recordings()).searchRecordings),
  entry('secrets set', 'create or change a secret', async () => (await secrets()).setSecret),
  entry('secrets list', 'list secrets without their values', async () => (await secrets()).listSecrets),
  entry('secrets show', 'show a secret and its uses, without the value', async () => (await secrets()).showSecret),
  entry('secrets remove', 'delete a secret', async () => (await secrets()).removeSecret),
  entry('maintenance start', 'start a maintenance window now', async () => (await maintenance()).startMaintenance),
  entry('maintenance schedule', 'schedule a maintenance window', async () => (await maintenance()).scheduleMaintenance),
  entry('maintenance list', 'list maintenance windows', async () => (await maintenance()).listWindows),
  entry('maintenance show', 'show one maintenance window', async () => (await maintenance()).showWindow),
  entry('maintenance end', 'end a maintenance window now', async () => (await maintenance()).endMaintenance),
  entry('maintenance remove', 'delete a maintenance window', async () => (await maintenance()).removeWindow),
  entry('channels list', 'list notification channels', async () => (await channels()).listChannels),
  entry('channels show', 'show a channel and its deliveries', async () => (await channels()).showChannel),
  entry('channels add', 'add a notification channel', async () => (await channels()).addChannel),
  entry('channels update', 'change a channel', async () => (await channels()).updateChannel),
  entry('channels test', 'send a test notification through a channel', async () => (await channels()).testChannel),
  entry('channels remove', 'delete a channel', async () => (await channels()).removeChannel),
  entry('notifications list', 'list notifications', async () => (await notifications()).listNotifications),
  entry('notifications read', 'mark notifications as read', async () => (await notifications()).readNotifications),
  entry(
    'notifications read-all',
    'mark all notifications as read',
    async () => (await notifications()).readAllNotifications,
  ),
  entry('audit list', 'query the audit log', async () => (await audit()).listEvents),
  entry('audit tail', 'follow the audit log', async () => (await audit()).tailEvents),
  entry('audit verify', 'verify that no audit event was altered or removed', async () => (await audit()).verifyLog),
  entry('audit prune', 'delete old audit events', async () => (await audit()).pruneEvents),
  entry('audit retention show', 'show how long audit events are kept', async () => (await audit()).showRetention),
  entry('audit retention set', 'set how long audit events are kept', async () => (await audit()).setRetention),
  entry('audit retention disable', 'keep audit events forever', async () => (await audit()).disableRetention),

  entry('serve', 'run the orchestrator', async () => (await serve()).serve),
  entry('serve install', 'run the orchestrator as a service of this host', async () => (await service()).installServe),
  entry('serve uninstall', 'remove the service of the orchestrator', async () => (await service()).uninstallServe),
  entry(
    'serve rotate-secrets-key',
    'replace the key that encrypts the secrets',
    async () => (await serve()).rotateSecretsKey,
  ),
  entry('serve accept-clock', 'confirm the clock after a jump', async () => (await serve()).acceptClock),
  entry(
    'serve backup',
    'back up the store to a file, also while the orchestrator runs',
    async () => (await serve()).backUpStore,
  ),
  entry('serve restore', 'replace the store by a backup', async () => (await serve()).restoreStore),
  entry('serve recover-admin', 'make a key an admin if no admin can log in', async () => (await serve()).recoverAdmin),
  entry('store copy', 'copy the store between a file and PostgreSQL', async () => (await store()).copyStore),
  entry(
    'agent',
    'run the agent of this machine, and wait for discovery',
    async () => (await agent()).listenForOrchestrator,
  ),
  entry('agent connect', 'run the agent of this machine', async () => (await agent()).connectAgent),
  entry('agent install', 'run the agent as a service of this machine', async () => (await service()).installAgent),
  entry('agent uninstall', 'remove the service of the agent', async () => (await service()).uninstallAgent),
  entry('agent status', 'show the status of the agent of this machine', async () => (await agent()).showAgentStatus),
  entry(
    'agent repin',
    'remove the pinned orchestrator key of the agent of this machine',
    async () => (await agent()).repinAgent,
  ),
  entry('agent leave', 'remove the agent of this machine', async () => (await agent()).leaveFleet),
  entry(
    'agent config-schema',
    "print the JSON Schema of the agent's configuration file",
    async () => (await agent()).printAgentSchema,
  ),
  entry('package verify', 'check a package before you install it', async () => (await packages()).verifyPackage),

  entry('api', 'send any API request with your login', async () => (await import('./api.js')).command),
  entry('completion', 'print the completion script of a shell', async () => (await completion()).printScript),
  {
    ...entry('__complete', 'list completions of a command line', async () => (await completion()).complete),
    hidden: true,
  },
  entry('help', 'explain a command or a topic', async () => (await import('./help.js')).command),
];

export const GROUPS: readonly Group[] = [
  { path: 'operator', summary: 'manage the operators and your key' },
  { path: 'config', summary: 'show the settings of this client', standard: 'show' },
  { path: 'profile', summary: 'manage saved orchestrators' },
  { path: 'agents', summary: 'manage the machines of the fleet', standard: 'list' },
  { path: 'enroll', summary: 'manage tokens that enrol new machines' },
  { path: 'module', summary: 'manage modules: declarative lists of resources' },
  { path: 'values', summary: 'manage value sets, which give inputs of modules their values', standard: 'list' },
  { path: 'assignments', summary: 'manage which agents get which modules', standard: 'list' },
  { path: 'rollouts', summary: 'follow, pause, resume and cancel applies on many agents', standard: 'list' },
  { path: 'ops', summary: 'list, follow and cancel applies', standard: 'list' },
  { path: 'term', summary: 'open terminals on agents, and read their recordings', standard: 'list', fallback: 'open' },
  {
    path: 'secrets',
    summary: 'manage write-only values for modules',
    standard: 'list',
    absent: new Map([['get', 'a stored value is never given back; the rest of a secret: orch secrets show NAME']]),
  },
  {
    path: 'maintenance',
    summary: 'schedule windows that pause drift checks and deliveries to channels',
    standard: 'list',
  },
  { path: 'channels', summary: 'manage the channels that notifications are sent to', standard: 'list' },
  { path: 'notifications', summary: 'list alerts raised by the fleet', standard: 'list' },
  { path: 'audit', summary: 'query and verify the audit log', standard: 'list' },
  { path: 'audit retention', summary: 'show how long audit events are kept', standard: 'show' },
  { path: 'store', summary: 'move the store of an orchestrator' },
  { path: 'agent', summary: 'run and manage the agent of this machine' },
  { path: 'package', summary: 'check packages of orch' },
];

/** Sections of the top-level help. */
export const SECTIONS: readonly (readonly [title: string, words: readonly string[]])[] = [
  ['Get started', ['quickstart', 'status', 'doctor', 'operator', 'login', 'logout', 'profile', 'config']],
  ['Fleet', ['agents', 'enroll', 'discover', 'tags', 'facts', 'metrics', 'top']],
  [
    'Modules',
    [
      'module',
      'values',
      'assignments',
      'sync',
      'plan',
      'apply',
      'verify',
      'drift',
      'state',
      'impact',
      'explain',
      'rollouts',
      'ops',
      'secrets',
    ],
  ],
  ['Terminals', ['term', 'exec', 'cp', 'forward', 'ssh-proxy', 'ssh-config']],
  ['Records', ['maintenance', 'notifications', 'channels', 'audit']],
  ['Programs', ['serve', 'store', 'agent', 'package']],
  ['Other', ['api', 'completion', 'help']],
];
