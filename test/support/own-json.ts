/** Schemas of the JSON that commands make themselves, for `docs/reference/json.md` and the tests of their output. */
import * as Type from 'typebox';
import { AgentSchema } from '../../src/contract/agents.js';
import { CONTRACT } from '../../src/contract/contract.js';
import { OperationSchema } from '../../src/contract/operations.js';
import { ROLLOUT_STATES, RolloutRecordSchema } from '../../src/contract/rollouts.js';
import { DriftDetailSchema, RunResultSchema } from '../../src/contract/runs.js';
import { closed, MetricsSampleSchema, nullable } from '../../src/kernel/schema.js';
import { CHECK_STATES } from '../../src/programs/doctor-check.js';
import { CheckResultSchema } from '../../src/resources/checks/check.js';
import { SummarySchema } from '../../src/resources/result.js';

const text = (description: string) => Type.String({ description });
const textOrNull = (description: string) => nullable(Type.String({ description }));
const whole = (description: string) => Type.Integer({ description });
const yes = (description: string) => Type.Boolean({ description });
const texts = (description: string) => Type.Array(Type.String(), { description });
const anything = (description: string) => Type.Unknown({ description });

const nodeId = text('ID of the agent');
const agentName = textOrNull('Name of the agent; null before it is approved');
const reason = (description: string) =>
  nullable(closed({ code: text('Code of the error'), message: text('The error and the next step') }, { description }));

const resource = { kind: text('Kind of the resource'), identity: text('Path or name of the resource') };

const AgentRunsSchema = {
  has_changes: yes('True when something is to change, or has changed, on an agent'),
  results: Type.Array(
    closed({
      node_id: nodeId,
      name: agentName,
      status: Type.Enum(['succeeded', 'failed', 'unreachable', 'skipped'], { description: 'How it ended there' }),
      operation_id: textOrNull('Its operation; null for a plan or a drift check, and without one'),
      summary: nullable(SummarySchema),
      result: nullable(
        Type.Union([RunResultSchema, DriftDetailSchema], {
          description: 'The answer of one agent: a run, or a drift record; null without one',
        }),
      ),
      error: reason('Why it failed there'),
    }),
    { description: 'Result of each agent' },
  ),
  summary: closed(
    {
      agents: whole('Agents in all'),
      succeeded: whole('Agents that succeeded'),
      failed: whole('Agents that failed'),
      unreachable: whole('Agents that were offline'),
      skipped: whole('Agents that never began'),
    },
    { description: 'Number of agents by their result' },
  ),
};

const diagnostics = Type.Array(
  closed({
    severity: Type.Enum(['error', 'warning'], { description: 'Errors keep the file from being stored' }),
    code: text('Stable name of the message'),
    message: text('The mistake, and how to correct it'),
    path: text('JSON pointer to the value; empty for the whole file'),
    line: whole('Line, from 1'),
    column: whole('Column, from 1'),
    endColumn: Type.Optional(whole('Column after the marked part')),
  }),
  { description: 'Errors and warnings of the file' },
);

const pushed = CONTRACT.uploadValueSet.answers[201];

const conflict = closed({
  code: text('Stable name of the message'),
  path: text('File of the module'),
  module: text('Name of the module'),
  line: whole('Line, from 1'),
  column: whole('Column, from 1'),
  message: text('What does not go together'),
});

export const OWN_JSON = {
  AgentRuns: closed(AgentRunsSchema),
  RolloutRuns: closed({
    ...AgentRunsSchema,
    assignment: textOrNull('The assignment; null for a selector or named agents'),
    selector: textOrNull('The selector; null for named agents'),
    rollout_id: textOrNull('ID of the rollout; null for a plan'),
    state: Type.Optional(Type.Enum(ROLLOUT_STATES, { description: 'State of the rollout; absent for a plan' })),
    reason: Type.Optional(textOrNull('Why it was halted or cancelled')),
  }),
  Checks: Type.Array(
    closed({
      name: text('Subject of the check, such as `agent journal`'),
      state: Type.Enum(CHECK_STATES, { description: 'A problem ends the command with 1' }),
      found: text('What was found'),
      fix: textOrNull('A command or a sentence; null when there is nothing to do'),
    }),
  ),
  Settings: Type.Array(
    closed({
      name: text('Name of the setting'),
      value: Type.Union([Type.String(), Type.Boolean(), Type.Null()], { description: 'Null when it is not set' }),
      origin: text('Flag, variable or profile that gives it, or `default`'),
    }),
  ),
  Profile: closed({
    name: text('Name of the profile'),
    default: yes('True for the profile that is used without --profile'),
    url: text('Address of the orchestrator'),
    tls_fingerprint: Type.Optional(text('Pinned fingerprint')),
    ca: Type.Optional(text('File of the authority')),
    key_file: Type.Optional(text('File of the key')),
    allow_unbound_login: Type.Optional(yes('True permits logins that are not bound to the certificate')),
    allow_plain_http: Type.Optional(yes('True permits HTTP')),
  }),
  RemovedProfile: closed({ name: text('Name of the profile that was removed') }),
  OwnKey: closed({
    operator_id: text('ID of the operator with this key'),
    public_key: text('Public key in hex'),
    key_file: text('File of the private key'),
  }),
  RotatedKey: closed({
    public_key: text('The new public key in hex'),
    key_file: text('File of the new key'),
    former_key_file: textOrNull('File of the key before; null when it is nowhere else'),
  }),
  UpgradedAgents: Type.Array(
    closed({
      node_id: nodeId,
      name: agentName,
      status: Type.Enum(['succeeded', 'failed', 'skipped', 'unreachable'], { description: 'How it ended there' }),
      from_version: text('Release before'),
      version: text('Release that was asked for'),
      reason: textOrNull('Why it did not succeed'),
    }),
  ),
  EnrolmentLines: closed({
    ...CONTRACT.createEnrolmentToken.answers[201].properties,
    command: text('Line for a machine that has orch'),
    curl: textOrNull('Line that installs with curl; null if the orchestrator has no package'),
    wget: textOrNull('The same with wget'),
  }),
  CheckedFiles: Type.Array(
    closed({
      path: text('Path of the file'),
      name: textOrNull('Name of the module or value set; null if unreadable'),
      valid: yes('False with an error'),
      diagnostics,
    }),
  ),
  CheckedAgents: Type.Array(
    closed({
      node_id: nodeId,
      name: text('Name of the agent'),
      modules: texts('Modules that support it'),
      errors: Type.Array(conflict, { description: 'What fails there' }),
      warnings: Type.Array(conflict, { description: 'What may be meant otherwise' }),
    }),
  ),
  Dependencies: closed({ name: text('Name of the module'), resources: anything('Resources with what each needs') }),
  PublishedModule: closed({
    ...CONTRACT.uploadModule.answers[201].properties,
  }),
  ComparedFile: closed({
    name: text('Name of the module or value set'),
    path: text('Path of the file'),
    revision: nullable(whole('Compared revision; null if nothing of the name is stored')),
    has_changes: yes('True when they differ'),
    diff: text('Unified diff; empty if nothing differs'),
    files: Type.Optional(
      Type.Array(
        closed({
          path: text('Path of the file'),
          before: textOrNull('SHA-256 in the stored revision; null for a new file'),
          after: textOrNull('SHA-256 here; null for a removed file'),
        }),
        { description: 'Files beside the module that differ' },
      ),
    ),
  }),
  PulledModule: closed({
    name: text('Name of the module'),
    revision: whole('The revision that was written'),
    path: text('The file of the module'),
    changed: yes('False when everything was there already'),
  }),
  NewModule: closed({
    name: text('Name of the module'),
    path: text('The file that was made'),
    schema: textOrNull('The schema that the file names; null for none'),
  }),
  Sync: closed({
    has_changes: yes('True when something is to change, or has changed'),
    actions: Type.Array(
      closed({
        kind: Type.Enum(['module', 'values', 'assignment'], { description: 'What it is' }),
        action: Type.Enum(['create', 'update', 'delete'], { description: 'What happens to it' }),
        name: text('Its name'),
        path: textOrNull('File that declares it; null for a deletion'),
        status: Type.Enum(['planned', 'done', 'failed', 'not_done'], { description: 'planned: with --plan' }),
      }),
      { description: 'Changes in the order in which they are made' },
    ),
    extra: Type.Array(closed({ kind: text('What it is'), name: text('Its name') }), {
      description: 'Stored, and not in the directory; --prune deletes them',
    }),
  }),
  Impact: closed({
    has_changes: yes('True when something changes on an agent'),
    agents: Type.Array(
      closed({
        node_id: nodeId,
        name: text('Name of the agent'),
        modules: texts('Changed modules that it has'),
        on_trial: yes('True for an agent on trial, which is compared with the texts of its trial'),
        changes: Type.Array(anything('One change of a resource'), { description: 'Changes of its desired state' }),
        error: reason('Why the changed files cannot be resolved for it'),
      }),
      { description: 'Each agent that has one of the modules' },
    ),
  }),
  Verifications: closed({
    ok: yes('True when every check is healthy everywhere'),
    results: Type.Array(
      closed({
        node_id: nodeId,
        name: agentName,
        ok: yes('True when every check is healthy'),
        checks: Type.Array(CheckResultSchema, { description: 'Result of each check' }),
        error: reason('Why there is no result'),
      }),
      { description: 'Result of each agent' },
    ),
  }),
  DriftRecords: closed({
    records: Type.Array(CONTRACT.listDrift.answers[200].properties.records.items, { description: 'Newest first' }),
  }),
  EndedSnooze: closed({ snooze_id: text('ID of the snooze that ended') }),
  Adoption: closed({
    patches: Type.Array(
      closed({ module: text('Name of the module'), path: text('File of the module'), patch: text('Unified diff') }),
      {
        description: 'A patch for each file',
      },
    ),
    by_hand: Type.Array(
      closed({ module: text('Name of the module'), ...resource, why: text('Why no patch can be made') }),
      { description: 'Drift that no patch declares' },
    ),
  }),
  Explanation: closed({
    node_id: nodeId,
    name: agentName,
    resources: Type.Array(
      closed({
        ...resource,
        declared: Type.Array(anything('Module, file and line that declare it'), { description: 'Declarations' }),
        assignments: texts('Assignments that bring a declaring module'),
        applied: anything('The resource in the believed state; null if it was never applied'),
      }),
      { description: 'Resources with that name' },
    ),
    inputs: Type.Array(anything('Value of an input, and what it beat'), { description: 'Inputs with that name' }),
  }),
  Measurements: Type.Array(closed({ node_id: nodeId, name: agentName, sample: nullable(MetricsSampleSchema) })),
  Fleet: closed({
    agents: Type.Array(
      closed({
        node_id: nodeId,
        name: agentName,
        status: AgentSchema.properties.status,
        connected: yes('True while it is connected'),
        sample: nullable(MetricsSampleSchema),
      }),
      { description: 'All agents' },
    ),
    rollouts: Type.Array(RolloutRecordSchema, { description: 'Rollouts in flight' }),
    operations: Type.Array(OperationSchema, { description: 'Operations in flight' }),
    terminals: anything('Open terminals'),
    events: anything('Newest audit events'),
  }),
  Execution: closed({
    node_id: nodeId,
    name: agentName,
    exit_status: whole('The status with which orch ends for it'),
    exit_code: nullable(whole('Exit code of the command; null without one')),
    signal: textOrNull('Signal that ended it'),
    reason: textOrNull('Why it was ended'),
    complete: yes('False when output may be missing'),
    stdout: text('Its standard output'),
    stderr: text('Its standard error'),
    truncated: yes('True when only the first part is kept'),
    error: reason('Why its end is not known'),
  }),
  Copied: closed({
    node_id: nodeId,
    node: text('Name of the agent'),
    direction: text('From the machine or to it'),
    paths: texts('Paths on the machine'),
    files: whole('Copied files'),
    bytes: whole('Their bytes'),
    failed: whole('Files that were not copied'),
    sha256: textOrNull('SHA-256 of a single file; null for several'),
    error: reason('Why it ended early'),
  }),
  Forward: closed({
    listen: text('The place on this machine'),
    node: text('Name of the agent'),
    target: text('The target behind it'),
  }),
  SshHosts: Type.Array(closed({ host: text('Name of the agent'), proxy_command: text('Its ProxyCommand') })),
  SecretWithUsage: closed({
    ...CONTRACT.getSecret.answers[200].properties,
    usage: anything('Modules, values and agents that name it'),
  }),
  ChannelWithDeliveries: closed({
    ...CONTRACT.getChannel.answers[200].properties,
    deliveries: CONTRACT.listDeliveries.answers[200],
  }),
  PushedValueSet: pushed,
  Package: closed({
    file: text('Path of the package'),
    sha256: text('SHA-256 of it'),
    public_key: textOrNull('Key that signed it'),
  }),
} as const;
