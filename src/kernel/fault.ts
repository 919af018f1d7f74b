/** The one error class of deliberate failures, its codes, and small helpers around errors. */

/** One mistake in an input. `path` is a JSON pointer; line and column start at 1. */
export interface FaultDetail {
  readonly path: string;
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
}

export interface FaultOptions {
  /** The next step, as a sentence or a command to type. */
  readonly hint?: string;
  readonly cause?: unknown;
  /** Every single mistake, for validation faults. */
  readonly errors?: readonly FaultDetail[];
  /** Facts for programs. The problem document shows them, so they hold no secret. */
  readonly data?: Readonly<Record<string, unknown>>;
}

export class Fault extends Error {
  override readonly name = 'Fault';
  readonly code: FaultCode;
  readonly hint: string | undefined;
  readonly errors: readonly FaultDetail[] | undefined;
  readonly data: Readonly<Record<string, unknown>> | undefined;

  /**
   * @param code the stable code; callers may depend on it, never on the message
   * @param message one sentence for a person: what happened and where
   */
  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.errors = options.errors;
    this.data = options.data;
  }
}

/** Returns true for a Fault; with codes, only for a Fault with one of them. */
export function isFault(error: unknown, ...codes: readonly FaultCode[]): error is Fault {
  return error instanceof Fault && (codes.length === 0 || codes.includes(error.code));
}

/** Returns the message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the `code` of a system error (`ENOENT`, `EACCES`, …), or undefined. */
export function systemCodeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Every code a fault can carry: the stable name that scripts, the API and tests rely on. */
const FAULT_CODES = [
  // request and access
  'bad_request',
  'invalid_body',
  'invalid_query',
  'invalid_path',
  'unsupported_media_type',
  'body_too_large',
  'headers_too_large',
  'url_too_long',
  'origin_forbidden',
  'not_found',
  'method_not_allowed',
  'unauthenticated',
  'admin_required',
  'role_forbidden',
  'not_granted',
  'operator_expired',
  'expiry_beyond_own',
  'invalid_expiry',
  'rate_limited',
  'request_timeout',
  'idempotency_conflict',
  'tls_required',
  'store_unavailable',
  'shutting_down',
  'internal',
  // login and operators
  'invalid_public_key',
  'invalid_key_proof',
  'invalid_signature',
  'unknown_operator',
  'signature_verification_failed',
  'operator_not_found',
  'operator_exists',
  'invalid_username',
  'invalid_role',
  'invalid_grant',
  'last_admin',
  // agents and tags
  'agent_not_found',
  'agent_not_approved',
  'agent_not_connected',
  'agent_not_rejected',
  'agent_timeout',
  'agent_too_old',
  'package_not_found',
  'upgrade_in_progress',
  'upgrade_not_found',
  'name_required',
  'name_taken',
  'name_immutable',
  'invalid_name',
  'invalid_tag',
  'tag_not_found',
  'enrolment_token_not_found',
  'discovery_failed',
  'invalid_selector',
  // modules and resolution
  'module_not_found',
  'module_in_use',
  'unknown_module',
  'assignment_not_found',
  'assignment_exists',
  'assignment_changed',
  'rollout_finished',
  'rollout_in_progress',
  'rollout_not_found',
  'rollout_stopped',
  'invalid_module',
  'module_not_supported',
  'module_conflict',
  'invalid_values',
  'values_conflict',
  'values_not_found',
  'input_missing',
  'input_invalid',
  'variant_ambiguous',
  'variant_missing',
  'secret_unavailable',
  'expression_error',
  // secrets
  'secret_not_found',
  'secret_exists',
  'invalid_restriction',
  'secrets_locked',
  // channels and notifications
  'channel_not_found',
  'channel_exists',
  'delivery_failed',
  'notification_not_found',
  // maintenance windows
  'maintenance_window_not_found',
  'maintenance_window_over',
  // terminals
  'terminal_not_found',
  'terminal_over',
  'terminal_disabled',
  'terminal_unsupported',
  'terminal_limit',
  'terminal_pen_taken',
  'shell_not_allowed',
  'recording_failed',
  'transcript_not_found',
  'transcript_invalid',
  // forwards
  'forward_refused',
  'forward_limit',
  'copy_refused',
  // operations and drift
  'operation_not_found',
  'operation_in_progress',
  'operation_finished',
  'operation_unsuitable',
  'removal_guard',
  'outside_window',
  'precondition_failed',
  'plan_stale',
  'rolled_back',
  'stale_generation',
  'not_delivered',
  'interrupted',
  'cancelled',
  'drift_not_found',
  'drift_unacceptable',
  'snooze_not_found',
  'no_snapshot',
  // what one resource can fail with on the machine
  'verify_failed',
  'not_converged',
  'apply_failed',
  'observe_failed',
  'wrong_type',
  'file_missing',
  'content_unsuitable',
  'value_unknown',
  'parent_missing',
  'unsafe_path',
  'permission_denied',
  'read_only',
  'disk_full',
  'busy',
  'immutable',
  'unknown_owner',
  'unknown_group',
  'dependency_failed',
  'command_failed',
  'command_missing',
  'command_not_executable',
  'command_timed_out',
  'package_unknown',
  'package_version_unknown',
  'package_held',
  'package_manager_locked',
  'package_manager_broken',
  'removal_refused',
  'unit_missing',
  'unit_masked',
  'unit_unsuitable',
  'service_failed',
  'id_taken',
  'account_busy',
  'account_not_local',
  'script_failed',
  'local_changes',
  'archive_refused',
  'unsupported_on_platform',
  // audit
  'invalid_filter',
  'invalid_cursor',
  'invalid_cutoff',
  'invalid_checkpoint',
  // the programs on this machine
  'usage',
  'invalid_config',
  'key_unreadable',
  'key_unwritable',
  'key_permissions',
  'key_invalid',
  'key_exists',
  'tls_mismatch',
  'tls_unknown',
  'login_unbound',
  'unreachable',
  'protocol_mismatch',
  'protocol_violation',
  'pin_mismatch',
  'pin_missing',
  'agent_rejected',
  'data_dir_locked',
  'data_dir_invalid',
  'schema_too_new',
  'migration_failed',
  'bootstrap_required',
  'port_in_use',
  'native_module_missing',
  'profile_not_found',
  'ambiguous_node',
  'resource_not_found',
  'invalid_plan_file',
  'package_invalid',
  'upgrade_failed',
  'content_unavailable',
  'file_not_found',
  'file_damaged',
  'upgrade_unsupported',
  'wrong_orchestrator',
  'confirmation_required',
  'agent_running',
  'journal_corrupt',
] as const;

/** A stable snake_case error code. */
export type FaultCode = (typeof FAULT_CODES)[number];

const known: ReadonlySet<string> = new Set(FAULT_CODES);

/** Returns true for a string that is a fault code. */
export function isFaultCode(code: string): code is FaultCode {
  return known.has(code);
}

/** Ends a switch over a union: a forgotten case does not compile. */
export function assertNever(value: never): never {
  throw new Error(`unexpected case: ${JSON.stringify(value)}`);
}

/** Quotes a path as one word of a shell command, for hints that people paste. */
export const shellWord = (path: string): string =>
  /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
