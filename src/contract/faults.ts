/** HTTP statuses and titles of all fault codes, and the problem document of every failure. */

import * as Type from 'typebox';
import type { FaultCode } from '../kernel/fault.js';
import { closed } from '../kernel/schema.js';

interface FaultEntry {
  readonly status: number;
  readonly title: string;
}

const entry = (status: number, title: string): FaultEntry => ({ status, title });

/** Codes that only programs on this machine use have status 500, because over HTTP they would be internal errors. */
export const FAULTS: Readonly<Record<FaultCode, FaultEntry>> = {
  bad_request: entry(400, 'Bad request'),
  invalid_body: entry(400, 'Invalid request body'),
  invalid_query: entry(400, 'Invalid query parameter'),
  invalid_path: entry(400, 'Invalid path parameter'),
  unsupported_media_type: entry(415, 'Unsupported media type'),
  body_too_large: entry(413, 'Request body too large'),
  headers_too_large: entry(431, 'Request headers too large'),
  url_too_long: entry(414, 'URL too long'),
  origin_forbidden: entry(403, 'Origin forbidden'),
  not_found: entry(404, 'Not found'),
  method_not_allowed: entry(405, 'Method not allowed'),
  unauthenticated: entry(401, 'Not logged in'),
  admin_required: entry(403, 'Admin role required'),
  role_forbidden: entry(403, 'Not allowed for this role'),
  rate_limited: entry(429, 'Too many requests'),
  request_timeout: entry(408, 'Request timed out'),
  idempotency_conflict: entry(409, 'Idempotency key reused'),
  tls_required: entry(403, 'TLS required'),
  store_unavailable: entry(503, 'Store unavailable'),
  shutting_down: entry(503, 'Shutting down'),
  internal: entry(500, 'Internal error'),
  invalid_public_key: entry(400, 'Invalid public key'),
  invalid_signature: entry(400, 'Invalid signature'),
  unknown_operator: entry(403, 'Unknown or inactive operator'),
  signature_verification_failed: entry(401, 'Signature verification failed'),
  operator_not_found: entry(404, 'Operator not found'),
  operator_exists: entry(409, 'Operator exists'),
  invalid_username: entry(400, 'Invalid username'),
  invalid_role: entry(400, 'Invalid role'),
  last_admin: entry(409, 'Last admin'),
  agent_not_found: entry(404, 'Agent not found'),
  agent_not_approved: entry(409, 'Agent not approved'),
  agent_not_connected: entry(409, 'Agent not connected'),
  agent_not_rejected: entry(409, 'Agent not rejected'),
  agent_timeout: entry(504, 'Agent timed out'),
  name_required: entry(400, 'Name required'),
  name_taken: entry(409, 'Name taken'),
  name_immutable: entry(409, 'Name immutable'),
  invalid_name: entry(400, 'Invalid name'),
  invalid_tag: entry(400, 'Invalid tag'),
  tag_not_found: entry(404, 'Tag not found'),
  enrolment_token_not_found: entry(404, 'Enrolment token not found'),
  discovery_failed: entry(500, 'Discovery failed'),
  invalid_selector: entry(400, 'Invalid selector'),
  module_not_found: entry(404, 'Module not found'),
  module_in_use: entry(409, 'Module in use'),
  unknown_module: entry(400, 'Unknown module'),
  assignment_not_found: entry(404, 'Assignment not found'),
  assignment_exists: entry(409, 'Assignment exists'),
  assignment_changed: entry(409, 'Assignment changed'),
  rollout_not_found: entry(404, 'Rollout not found'),
  rollout_stopped: entry(409, 'Rollout stopped'),
  invalid_module: entry(400, 'Invalid module'),
  module_not_supported: entry(400, 'Module not supported by the agent'),
  module_conflict: entry(400, 'Modules conflict'),
  variant_ambiguous: entry(400, 'Ambiguous variant'),
  variant_missing: entry(400, 'Missing variant'),
  secret_unavailable: entry(400, 'Secret unavailable'),
  expression_error: entry(400, 'Expression error'),
  secret_not_found: entry(404, 'Secret not found'),
  secret_exists: entry(409, 'Secret exists'),
  invalid_restriction: entry(400, 'Invalid restriction'),
  secrets_locked: entry(500, 'Secrets cannot be decrypted'),
  channel_not_found: entry(404, 'Channel not found'),
  channel_exists: entry(409, 'Channel exists'),
  delivery_failed: entry(502, 'Delivery failed'),
  notification_not_found: entry(404, 'Notification not found'),
  maintenance_window_not_found: entry(404, 'Maintenance window not found'),
  maintenance_window_over: entry(409, 'Maintenance window over'),
  terminal_not_found: entry(404, 'Terminal session not found'),
  terminal_over: entry(409, 'Terminal session over'),
  terminal_disabled: entry(409, 'Remote terminal disabled'),
  terminal_unsupported: entry(409, 'No terminals on this agent'),
  terminal_limit: entry(409, 'Too many terminals'),
  terminal_pen_taken: entry(409, 'Somebody else types in this terminal'),
  shell_not_allowed: entry(409, 'Shell not allowed'),
  recording_failed: entry(507, 'Recording not possible'),
  transcript_not_found: entry(404, 'No transcript'),
  transcript_invalid: entry(500, 'Transcript damaged'),
  operation_not_found: entry(404, 'Operation not found'),
  operation_in_progress: entry(409, 'Operation in progress'),
  operation_finished: entry(409, 'Operation finished'),
  removal_guard: entry(409, 'Removal guard'),
  plan_stale: entry(409, 'Plan is stale'),
  stale_generation: entry(500, 'Older than what the agent has seen'),
  not_delivered: entry(504, 'Not delivered'),
  interrupted: entry(409, 'Interrupted'),
  cancelled: entry(409, 'Cancelled'),
  drift_not_found: entry(404, 'Drift record not found'),
  no_snapshot: entry(409, 'Nothing applied yet'),
  not_converged: entry(500, 'Not converged'),
  apply_failed: entry(500, 'Apply failed'),
  observe_failed: entry(500, 'Cannot observe'),
  wrong_type: entry(500, 'Wrong type'),
  parent_missing: entry(500, 'Parent missing'),
  unsafe_path: entry(500, 'Unsafe path'),
  permission_denied: entry(500, 'Permission denied'),
  read_only: entry(500, 'Read-only file system'),
  disk_full: entry(500, 'Disk full'),
  busy: entry(500, 'Busy'),
  immutable: entry(500, 'Immutable'),
  unknown_owner: entry(500, 'Unknown owner'),
  unknown_group: entry(500, 'Unknown group'),
  dependency_failed: entry(500, 'Dependency failed'),
  command_failed: entry(500, 'Command failed'),
  command_missing: entry(500, 'Command missing'),
  command_not_executable: entry(500, 'Command not executable'),
  command_timed_out: entry(500, 'Command timed out'),
  package_unknown: entry(500, 'Package unknown'),
  package_version_unknown: entry(500, 'Package version unknown'),
  package_held: entry(500, 'Package held'),
  package_manager_locked: entry(500, 'Package manager locked'),
  package_manager_broken: entry(500, 'Package manager broken'),
  removal_refused: entry(500, 'Removal refused'),
  unit_missing: entry(500, 'Unit missing'),
  unit_masked: entry(500, 'Unit masked'),
  unit_unsuitable: entry(500, 'Unit unsuitable'),
  service_failed: entry(500, 'Service failed'),
  id_taken: entry(500, 'Id taken'),
  account_busy: entry(500, 'Account in use'),
  account_not_local: entry(500, 'Account not local'),
  script_failed: entry(500, 'Script failed'),
  unsupported_on_platform: entry(500, 'Unsupported on this platform'),
  invalid_filter: entry(400, 'Invalid filter'),
  invalid_cursor: entry(400, 'Invalid cursor'),
  invalid_cutoff: entry(400, 'Invalid cutoff'),
  invalid_checkpoint: entry(400, 'Invalid checkpoint'),
  usage: entry(500, 'Wrong usage'),
  invalid_config: entry(500, 'Invalid configuration'),
  key_unreadable: entry(500, 'Key file unreadable'),
  key_unwritable: entry(500, 'Key file not written'),
  key_permissions: entry(500, 'Key file permissions'),
  key_invalid: entry(500, 'Invalid key file'),
  key_exists: entry(500, 'Key file exists'),
  tls_mismatch: entry(500, 'TLS certificate changed'),
  tls_unknown: entry(500, 'TLS certificate unknown'),
  login_unbound: entry(500, 'Login not bound to the server'),
  unreachable: entry(500, 'Not reachable'),
  protocol_mismatch: entry(500, 'Protocol mismatch'),
  protocol_violation: entry(500, 'Protocol violation'),
  pin_mismatch: entry(500, 'Orchestrator key changed'),
  pin_missing: entry(500, 'Orchestrator key unknown'),
  agent_rejected: entry(500, 'Agent rejected'),
  data_dir_locked: entry(500, 'Data directory in use'),
  data_dir_invalid: entry(500, 'Data directory unusable'),
  schema_too_new: entry(500, 'Store is newer than this program'),
  bootstrap_required: entry(500, 'No operator'),
  port_in_use: entry(500, 'Port in use'),
  native_module_missing: entry(500, 'Native module missing'),
  profile_not_found: entry(500, 'Profile not found'),
  ambiguous_node: entry(500, 'Ambiguous node'),
  resource_not_found: entry(500, 'No such resource on the agent'),
  invalid_plan_file: entry(500, 'Saved plan not readable'),
  wrong_orchestrator: entry(500, 'Of another orchestrator'),
  confirmation_required: entry(500, 'Confirmation required'),
  agent_running: entry(500, 'Agent running'),
  journal_corrupt: entry(500, 'Journal corrupt'),
};

/** Returns the faults of a route beyond its own list, by its access and shape. */
export function generalFaults(route: {
  readonly access: string;
  readonly params?: unknown;
  readonly method: string;
}): readonly FaultCode[] {
  const codes: FaultCode[] = [
    'bad_request',
    'invalid_query',
    'invalid_body',
    'internal',
    'shutting_down',
    'request_timeout',
    'headers_too_large',
    'url_too_long',
    'origin_forbidden',
  ];
  if (route.params) codes.push('invalid_path');
  if (route.access !== 'public') codes.push('unauthenticated');
  if (route.access === 'operator') codes.push('role_forbidden');
  if (route.access === 'admin') codes.push('admin_required');
  const isRead = route.method === 'GET';
  const isPublic = route.access === 'public';
  if (!isRead) codes.push('unsupported_media_type', 'body_too_large');
  if (!isRead && !isPublic) codes.push('idempotency_conflict');
  // Only the public documents and the health work without the store.
  if (!isRead || !isPublic) codes.push('store_unavailable');
  return codes;
}

/** The error body of every failure, by RFC 9457. */
export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: '`urn:orch:problem:` and the code' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'The failure and the next step' }),
    code: Type.String({ description: 'Stable snake_case name of the error' }),
    request_id: Type.Optional(Type.String()),
    errors: Type.Optional(
      Type.Array(
        closed({
          path: Type.String({ description: 'JSON pointer' }),
          message: Type.String(),
          line: Type.Optional(Type.Integer()),
          column: Type.Optional(Type.Integer()),
        }),
      ),
    ),
  },
  { description: 'RFC 9457 problem details; further members depend on the code' },
);

export type Problem = Type.Static<typeof ProblemSchema>;
