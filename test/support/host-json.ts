/** Schemas of the JSON of commands about this host: services, the agent, the store. */
import * as Type from 'typebox';
import { closed, nullable } from '../../src/kernel/schema.js';

const text = (description: string) => Type.String({ description });
const textOrNull = (description: string) => nullable(Type.String({ description }));
const whole = (description: string) => Type.Integer({ description });
const texts = (description: string) => Type.Array(Type.String(), { description });

const unit = text('Name of the service');

const epochReset = {
  epoch: whole('Number that rises with each restore and copy'),
  sessions: whole('Ended sessions'),
  tokens: whole('Revoked enrolment tokens'),
  operations: whole('Unfinished applies, whose agents are asked for their outcome'),
  deliveries: whole('Pending deliveries of notifications'),
  rollouts: texts('IDs of rollouts that are halted until they are resumed'),
  assignments: texts('Assignments whose automatic applies wait until they are resumed'),
};

export const HOST_JSON = {
  InstalledServe: closed({
    unit,
    unit_file: text('File of the service'),
    api_url: text('URL of the API for others'),
    local_url: text('URL of the API on this host'),
    agent_address: text('Address that agents connect to'),
    tls_fingerprint: textOrNull('Fingerprint of the certificate; null without TLS'),
    public_key: text('Public key of the orchestrator'),
    operator_key_file: textOrNull('File of the key that was made for you; null when you had one'),
    profile: textOrNull('Profile that was made; null for none'),
  }),
  InstalledAgent: closed({
    unit,
    unit_file: text('File of the service'),
    node_id: text('ID of the agent'),
    orchestrator: textOrNull('Address of its orchestrator; null while it waits for discovery'),
    link: text('State of the connection'),
    last_error: textOrNull('Why it is not connected'),
    hint: textOrNull('What helps'),
  }),
  UninstalledService: closed({
    unit,
    unit_file: textOrNull('File of the stopped service; null if there was none'),
    kept: texts('Directories and files that stay'),
  }),
  AgentStatus: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]), {
    description: 'State of the agent of this machine: `node_id`, `link`, `orchestrator` and others',
  }),
  LeftFleet: closed({
    data_dir: text('Deleted directory'),
    service: textOrNull('Deleted service; null if there was none'),
    service_kept: textOrNull('Why a service of that name is left alone; null if none is'),
  }),
  RotatedSecretsKey: closed({
    key_id: text('ID of the new key'),
    kept: textOrNull('File with the key before'),
    secrets: whole('Secrets that were encrypted anew'),
    outputs: whole('Outputs of scripts that were encrypted anew'),
    channels: whole('Channels that were encrypted anew'),
  }),
  Clock: closed({
    now: text('Time of the clock (RFC 3339)'),
    doubt_ms: whole('Milliseconds that the clock jumped beyond the elapsed time'),
    waits: Type.Boolean({ description: 'True while nothing old is deleted' }),
    ahead_ms: whole('Milliseconds that the newest audit event lies ahead of the clock'),
    accepted: Type.Boolean({ description: 'False when there was nothing to confirm' }),
  }),
  Backup: closed({
    file: text('Path of the backup'),
    bytes: whole('Size of it'),
    sha256: text('SHA-256 of it'),
    schema: whole('Revision of the tables'),
    last_seq: whole('Number of its last audit event'),
    last_hash: text('Hash of that event'),
    keys: texts('Key files that the backup does not contain'),
  }),
  RestoredStore: closed({
    file: text('Path of the backup'),
    sha256: text('SHA-256 of it'),
    data_dir: text('Data directory of the orchestrator'),
    store: text('Data directory or URL of the store'),
    made_at: textOrNull('When it was made (RFC 3339); null for a copied file'),
    schema: whole('Revision of its tables'),
    last_seq: whole('Number of its last audit event'),
    last_hash: text('Hash of that event'),
    last_at: textOrNull('Time of that event'),
    present: Type.Enum(['store', 'unreadable', 'none'], { description: 'The store that was replaced' }),
    present_seq: nullable(whole('Number of the last audit event of the replaced store')),
    present_at: textOrNull('Time of that event'),
    operators_back: texts('Operators that are active again'),
    agents_back: texts('Agents that are active again'),
    ...epochReset,
    kept: textOrNull('Where the replaced store is; null if there was none'),
    recordings: whole('Recordings that the restored store does not know'),
    secrets_key: textOrNull('File of an earlier key that opens the store; null if secrets.key does'),
  }),
  RecoveredAdmin: closed({
    operator_id: text('ID of the operator'),
    username: text('Its name'),
    public_key: text('Its public key'),
    change: Type.Enum(['added', 'role_changed', 'none'], { description: 'What was done' }),
    former_role: textOrNull('Its role before; null for a new one'),
  }),
  CopiedStore: closed({
    from: text('Place that was copied'),
    to: text('Place of the copy'),
    schema: whole('Revision of the tables'),
    last_seq: whole('Number of the last audit event'),
    last_hash: text('Hash of that event'),
    rows: Type.Record(Type.String(), Type.Integer(), { description: 'Copied rows of each table' }),
    next: texts('The next steps'),
    ...epochReset,
  }),
} as const;
