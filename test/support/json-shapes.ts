/** What each command prints with `-o json`: an answer of the API, JSON of its own, or none. */

import type { TSchema } from 'typebox';
import * as Type from 'typebox';
import { findCommand } from '../../src/cli/find-command.js';
import { FleetSummarySchema } from '../../src/contract/agents.js';
import { CONTRACT, type RouteId } from '../../src/contract/contract.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { StatusSchema } from '../../src/contract/status.js';
import { closed } from '../../src/kernel/schema.js';
import { validator } from '../../src/kernel/validator.js';
import { HOST_JSON } from './host-json.js';
import { OWN_JSON } from './own-json.js';

/** Schemas of the JSON that commands make themselves. */
export const JSON_OF_COMMANDS = { ...OWN_JSON, ...HOST_JSON };

export interface JsonShape {
  /** Markdown for the page. */
  readonly words: string;
  readonly schemas: readonly TSchema[];
}

const answersOf = (id: RouteId): readonly TSchema[] =>
  Object.values((CONTRACT[id] as RouteSpec).answers).flatMap((schema) => (schema === null ? [] : [schema]));

/** The answer of an operation as it is. */
const answer = (id: RouteId): JsonShape => ({ words: `the answer of \`${id}\``, schemas: answersOf(id) });
/** A list of answers of an operation. */
const answers = (id: RouteId): JsonShape => ({
  words: `a list of answers of \`${id}\``,
  schemas: answersOf(id).map((schema) => Type.Array(schema)),
});
/** The items of lists that an operation gives, each on a line. */
const event = (id: RouteId): JsonShape => {
  const { events } = CONTRACT[id] as RouteSpec;
  return { words: `events of \`${id}\`, one on a line`, schemas: events === undefined ? [] : [events] };
};
const own = (name: keyof typeof JSON_OF_COMMANDS): JsonShape => ({
  words: `[\`${name}\`](#${name.toLowerCase()})`,
  schemas: [JSON_OF_COMMANDS[name]],
});
const listOf = (name: keyof typeof JSON_OF_COMMANDS): JsonShape => ({
  words: `a list of [\`${name}\`](#${name.toLowerCase()})`,
  schemas: [Type.Array(JSON_OF_COMMANDS[name])],
});
const nothing: JsonShape = { words: '`null` when there is none', schemas: [Type.Null()] };
const schemaDocument: JsonShape = {
  words: 'a JSON Schema',
  schemas: [Type.Object({}, { additionalProperties: true })],
};
/** Several shapes: one for each kind of call. */
const either = (...shapes: readonly JsonShape[]): JsonShape => ({
  words: shapes.map(({ words }) => words).join('; or '),
  schemas: shapes.flatMap(({ schemas }) => schemas),
});
const oneOrSeveral = (id: RouteId): JsonShape => either(answer(id), answers(id));

/** Null for commands without JSON: programs that run, interactive ones, and those that print text for another program. */
export const COMMAND_JSON: Readonly<Record<string, JsonShape | null>> = {
  quickstart: null,
  status: {
    words: 'the answer of `getStatus`, with that of `getFleet` for an operator',
    schemas: [...answer('getStatus').schemas, closed({ ...StatusSchema.properties, ...FleetSummarySchema.properties })],
  },
  doctor: own('Checks'),
  discover: answer('discover'),
  'operator init': own('OwnKey'),
  'operator whoami': answer('getSession'),
  'operator add': answer('addOperator'),
  'operator list': answer('listOperators'),
  'operator show': answer('getOperator'),
  'operator grant': answer('setOperatorGrants'),
  'operator rights': answer('getOperatorRights'),
  'operator remove': null,
  'operator rotate': own('RotatedKey'),
  login: answer('getSession'),
  logout: null,
  'config show': own('Settings'),
  'profile create': own('Profile'),
  'profile update': own('Profile'),
  'profile list': listOf('Profile'),
  'profile use': own('Profile'),
  'profile remove': null,
  'agents list': answer('listAgents'),
  'agents show': answer('getAgent'),
  'agents approve': oneOrSeveral('setAgentStatus'),
  'agents reject': oneOrSeveral('setAgentStatus'),
  'agents rename': answer('renameAgent'),
  'agents keep': answer('keepMachine'),
  'agents remove': null,
  'agents tag': oneOrSeveral('getAgent'),
  'agents untag': oneOrSeveral('getAgent'),
  'agents upgrade': own('UpgradedAgents'),
  'enroll create': own('EnrolmentLines'),
  'enroll list': answer('listEnrolmentTokens'),
  'enroll revoke': null,
  tags: answer('listTags'),
  'module new': own('NewModule'),
  'module validate': own('CheckedFiles'),
  'module check': own('CheckedAgents'),
  'module deps': own('Dependencies'),
  'module publish': either(own('PublishedModule'), listOf('PublishedModule')),
  'module list': answer('listModules'),
  'module show': answer('getModule'),
  'module diff': either(own('ComparedFile'), listOf('ComparedFile')),
  'module revisions': answer('listModuleRevisions'),
  'module pull': listOf('PulledModule'),
  'module edit': own('PublishedModule'),
  'module remove': null,
  'module schema': schemaDocument,
  'values list': answer('listValueSets'),
  'values show': answer('getValueSet'),
  'values revisions': answer('listValueSetRevisions'),
  'values diff': either(own('ComparedFile'), listOf('ComparedFile')),
  'values check': own('CheckedFiles'),
  'values push': either(own('PushedValueSet'), listOf('PushedValueSet')),
  'values edit': own('PushedValueSet'),
  'values remove': null,
  'assignments list': answer('listAssignments'),
  'assignments show': answer('getAssignment'),
  'assignments create': answer('createAssignment'),
  'assignments edit': answer('updateAssignment'),
  'assignments resume': answer('resumeAssignment'),
  'assignments remove': null,
  sync: own('Sync'),
  plan: either(answer('planAgent'), own('AgentRuns'), own('RolloutRuns')),
  apply: either(answer('applyAgent'), own('AgentRuns'), own('RolloutRuns'), answer('applyRollout')),
  verify: either(answer('verifyAgent'), own('Verifications')),
  drift: either(answer('checkDrift'), own('AgentRuns')),
  'drift list': own('DriftRecords'),
  'drift show': answer('getDrift'),
  'drift latest': either(answer('getLatestDrift'), nothing),
  'drift snooze': answer('snoozeDrift'),
  'drift snoozes': answer('listDriftExcuses'),
  'drift unsnooze': own('EndedSnooze'),
  'drift accept': answer('acceptDrift'),
  'drift adopt': own('Adoption'),
  state: oneOrSeveral('getState'),
  impact: own('Impact'),
  facts: answer('getAgentFacts'),
  metrics: either(answer('getLatestMetrics'), answer('getMetrics'), own('Measurements'), nothing),
  top: own('Fleet'),
  explain: either(own('Explanation'), listOf('Explanation')),
  'rollouts list': answer('listRollouts'),
  'rollouts show': answer('getRollout'),
  'rollouts watch': answer('getRollout'),
  'rollouts pause': answer('pauseRollout'),
  'rollouts resume': answer('resumeRollout'),
  'rollouts retry': either(answer('retryRollout'), answer('getRollout')),
  'rollouts cancel': answer('cancelRollout'),
  'ops list': answer('listOperations'),
  'ops show': answer('getOperation'),
  'ops watch': answer('applyAgent'),
  'ops cancel': either(answer('cancelOperation'), answer('cancelRollout')),
  'ops output': answer('getOperationOutput'),
  exec: own('Execution'),
  cp: either(own('Copied'), listOf('Copied')),
  forward: own('Forward'),
  'ssh-proxy': null,
  'ssh-config': own('SshHosts'),
  'term open': null,
  'term attach': null,
  'term list': answer('listTerminals'),
  'term show': answer('getTerminal'),
  'term close': null,
  'term transcript': null,
  'term replay': null,
  'term grep': answer('searchTerminals'),
  'secrets set': either(answer('createSecret'), answer('updateSecret')),
  'secrets list': answer('listSecrets'),
  'secrets show': own('SecretWithUsage'),
  'secrets remove': null,
  'maintenance start': answer('createMaintenanceWindow'),
  'maintenance schedule': answer('createMaintenanceWindow'),
  'maintenance list': answer('listMaintenanceWindows'),
  'maintenance show': answer('getMaintenanceWindow'),
  'maintenance end': answer('updateMaintenanceWindow'),
  'maintenance remove': null,
  'channels list': answer('listChannels'),
  'channels show': own('ChannelWithDeliveries'),
  'channels add': answer('createChannel'),
  'channels update': answer('updateChannel'),
  'channels test': answer('testChannel'),
  'channels remove': null,
  'notifications list': answer('listNotifications'),
  'notifications read': null,
  'notifications read-all': null,
  'audit list': answer('listAuditEvents'),
  'audit tail': event('streamEvents'),
  'audit verify': answer('verifyAudit'),
  'audit prune': answer('pruneAuditEvents'),
  'audit retention show': answer('getAuditRetention'),
  'audit retention set': answer('setAuditRetention'),
  'audit retention disable': answer('setAuditRetention'),
  serve: null,
  'serve install': own('InstalledServe'),
  'serve uninstall': own('UninstalledService'),
  'serve rotate-secrets-key': own('RotatedSecretsKey'),
  'serve accept-clock': own('Clock'),
  'serve backup': own('Backup'),
  'serve restore': own('RestoredStore'),
  'serve recover-admin': own('RecoveredAdmin'),
  'store copy': own('CopiedStore'),
  agent: null,
  'agent connect': null,
  'agent install': own('InstalledAgent'),
  'agent uninstall': own('UninstalledService'),
  'agent status': own('AgentStatus'),
  'agent repin': null,
  'agent leave': own('LeftFleet'),
  'agent config-schema': schemaDocument,
  'package verify': own('Package'),
  api: { words: 'the answer to the request', schemas: [Type.Unknown()] },
  completion: null,
  help: null,
};

/** The values in a text of JSON documents, each of which begins in the first column. */
function valuesIn(text: string): readonly unknown[] {
  return text.split(/\n(?=[[{])/).map((document) => JSON.parse(document) as unknown);
}

/** The parts of the output of a command that are not as the page says; empty for good output, and for what is no JSON. */
export function jsonProblems(argv: readonly string[], stdout: string): readonly string[] {
  const isJson = argv.includes('--json') || /(?:^| )(?:-o|--output)[ =]json(?: |$)/.test(argv.join(' '));
  if (!isJson || stdout.trim() === '') return [];
  const found = findCommand(argv);
  if (found.kind === 'group') return [];
  const { path } = found.entry;
  const shape = COMMAND_JSON[path];
  if (shape === undefined) return [];
  if (shape === null) return [`orch ${path} prints JSON, and the page says that it does not`];
  return valuesIn(stdout).flatMap((value) => {
    const each = shape.schemas.map((schema) => validator(schema).problems(value));
    if (each.some((problems) => problems.length === 0)) return [];
    return each.map((problems) => `orch ${path}: ${problems.map((one) => `${one.path} ${one.message}`).join('; ')}`);
  });
}
