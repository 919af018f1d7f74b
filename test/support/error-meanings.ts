/** Cause and mend of each error code, for docs/errors.md. A code without an entry does not compile. */
import type { FaultCode } from '../../src/kernel/fault.js';

/** Both are Markdown, with links that are relative to docs/. */
export interface Meaning {
  readonly cause: string;
  readonly mend: string;
}

export const MEANINGS: Readonly<Record<FaultCode, Meaning>> = {
  bad_request: {
    cause: 'The request is not valid HTTP, or a header is missing or wrong.',
    mend: 'Use `orch`, or compare with `orch api GET /openapi.json`.',
  },
  invalid_body: {
    cause: "The body is not JSON, or does not match the route's schema.",
    mend: '`errors` names each place. If `orch` sent it, it is newer than the orchestrator: [upgrading.md](upgrading.md).',
  },
  invalid_query: {
    cause: 'A query parameter is unknown or wrong.',
    mend: 'The message names it and what it accepts.',
  },
  invalid_path: {
    cause: 'A parameter in the path has a wrong form.',
    mend: 'Copy the ID again; `-o json` shows IDs in full.',
  },
  unsupported_media_type: {
    cause: 'The body is not `application/json`.',
    mend: 'Send `Content-Type: application/json`.',
  },
  body_too_large: {
    cause: 'The body exceeds the limit of the route, or `limits.body_bytes`.',
    mend: 'Split the module, or raise `limits.body_bytes`.',
  },
  headers_too_large: {
    cause: 'The headers exceed 16 KiB.',
    mend: 'Send fewer or smaller headers. A proxy may add cookies.',
  },
  url_too_long: {
    cause: 'The URL exceeds 4 KiB.',
    mend: 'Use a shorter filter or selector.',
  },
  origin_forbidden: {
    cause: 'A web page of another origin sent the request.',
    mend: 'Use `orch` or another program; browsers are not supported.',
  },
  not_found: {
    cause: 'There is no such route.',
    mend: 'Compare with `orch api GET /openapi.json`. If `orch` sent it, it is newer than the orchestrator.',
  },
  method_not_allowed: {
    cause: 'The route does not have this method.',
    mend: 'Use one of the `Allow` header.',
  },
  unauthenticated: {
    cause: 'The session token is missing or has ended.',
    mend: 'Run `orch login`. `orch` logs in by itself unless `ORCH_TOKEN` is set.',
  },
  admin_required: {
    cause: 'The route is for the role `admin`.',
    mend: 'Ask an admin: `orch operator list` shows them.',
  },
  role_forbidden: {
    cause: 'The role of the operator does not permit this.',
    mend: 'Ask an admin for another role: `orch operator grant NAME --role ROLE`.',
  },
  not_granted: {
    cause: "The operator's grants lack the right on this machine, or on all that the request could reach.",
    mend: '`orch operator rights` shows them. Ask an admin for more.',
  },
  operator_expired: {
    cause: 'The time of the operator is over. The record, role and grants remain.',
    mend: 'Ask an admin for more time: `orch operator grant NAME --expires 90d`.',
  },
  expiry_beyond_own: {
    cause: 'An admin whose own time ends gives an operator a later end, or none. Removing one is permitted.',
    mend: 'Give an earlier end, or ask an admin without one.',
  },
  invalid_expiry: {
    cause: 'The end of the operator is over already, or a robot has no end within 366 days.',
    mend: 'Give a time ahead: `--expires 90d`.',
  },
  rate_limited: {
    cause: 'Too many requests of this kind.',
    mend: 'Wait for the time in `Retry-After`. For logins: look for a script with a wrong key.',
  },
  request_timeout: {
    cause: 'The request did not arrive completely in time.',
    mend: 'Repeat it. If it recurs, look at the network or a proxy, or raise `limits.request_timeout_secs`.',
  },
  idempotency_conflict: {
    cause: 'The `Idempotency-Key` belongs to another request, or its answer is no longer kept.',
    mend: 'Use a new key for a new request.',
  },
  tls_required: {
    cause: 'A login, a secret or a terminal needs an encrypted connection.',
    mend: 'Use https. Behind a proxy: set `trust_proxy_tls`, and let the proxy send `X-Forwarded-Proto`: [reverse proxies](guides/reverse-proxies.md).',
  },
  store_unavailable: {
    cause: 'The store cannot write or read, for example because the disk is full.',
    mend: 'Free space on the orchestrator. Its log and `orch doctor` there have the cause.',
  },
  shutting_down: {
    cause: 'The orchestrator is stopping.',
    mend: 'Try again after its restart.',
  },
  internal: {
    cause: 'An error in orch.',
    mend: 'Find the request ID in the log of the orchestrator, and report both.',
  },
  invalid_public_key: {
    cause: 'The text is no Ed25519 public key, or one that must not be used.',
    mend: 'Copy the whole line of `orch operator init`, or use `@FILE`.',
  },
  invalid_signature: {
    cause: 'The signature does not have the form of Ed25519.',
    mend: 'Sign the bytes of the nonce, and send 128 hex digits. `orch` does it.',
  },
  unknown_operator: {
    cause: 'The key belongs to no active operator.',
    mend: '`orch operator whoami` shows your key. An admin adds it: `orch operator add KEY --username NAME`.',
  },
  signature_verification_failed: {
    cause: 'The signature does not fit the challenge, or the challenge has expired.',
    mend: 'Try again. If it recurs, the key file does not fit the public key.',
  },
  operator_not_found: {
    cause: 'No operator has this ID or name.',
    mend: '`orch operator list --include-removed` lists all.',
  },
  operator_exists: {
    cause: 'Another operator has the key or the name.',
    mend: 'Use another name, or remove that operator.',
  },
  invalid_username: {
    cause: 'The name of an operator has a wrong form.',
    mend: 'The message names the valid one.',
  },
  invalid_role: {
    cause: 'The role is not `admin`, `operator`, `deployer`, `planner` or `viewer`.',
    mend: 'Use one of the five.',
  },
  invalid_grant: {
    cause: 'A grant names no right, more than the role may do, or a selector of what machines report.',
    mend: '[Grants](guides/operators.md#grants-some-machines-only) have their forms there.',
  },
  invalid_key_proof: {
    cause: 'The new key of an operator did not sign the request.',
    mend: 'Use `orch operator rotate`, which signs with both keys.',
  },
  last_admin: {
    cause: 'No admin would remain.',
    mend: 'Add another admin first.',
  },
  agent_not_found: {
    cause: 'No agent has this ID or name, or none matches the selector.',
    mend: '`orch agents` lists them. With a selector, `--allow-empty` accepts none.',
  },
  agent_not_approved: {
    cause: 'The agent is pending or rejected.',
    mend: 'Approve it: `orch agents approve NODE --name NAME`.',
  },
  agent_not_connected: {
    cause: 'The agent is offline.',
    mend: 'Start the machine or its service `orch-agent`, or wait with `orch apply --when-online`.',
  },
  agent_not_rejected: {
    cause: 'Only a rejected agent can be removed.',
    mend: 'Reject it first: `orch agents reject NODE`.',
  },
  agent_timeout: {
    cause: 'The agent is connected, but did not answer in time.',
    mend: 'Try again. The machine may be overloaded: see `journalctl -u orch-agent` there.',
  },
  agent_too_old: {
    cause: 'The agent lacks what the run asks for, such as health checks.',
    mend: 'Upgrade it: `orch agents upgrade NODE`.',
  },
  package_not_found: {
    cause: "The orchestrator has no package of this version for the agent's system.",
    mend: 'Copy `orch-VERSION-linux-CPU.tar.gz` to `packages` in the data directory: [upgrading.md](upgrading.md#the-agents).',
  },
  upgrade_in_progress: {
    cause: 'An earlier upgrade of the agent has not ended.',
    mend: 'Wait. `orch audit list --agent NODE` shows how it ends.',
  },
  upgrade_not_found: {
    cause: 'This orchestrator never upgraded the agent.',
    mend: '`orch agents upgrade NODE` starts an upgrade.',
  },
  name_required: {
    cause: 'The agent has no name yet.',
    mend: 'Approve it with `--name NAME`.',
  },
  name_taken: {
    cause: 'Another agent has this name, or one that looks like it.',
    mend: 'Choose another name, or rename or remove that agent.',
  },
  name_immutable: {
    cause: 'The agent has a name, which an approval does not change.',
    mend: 'Approve it without one, then `orch agents rename`.',
  },
  invalid_name: {
    cause: 'The name has a wrong form.',
    mend: 'The message names the valid one.',
  },
  invalid_tag: {
    cause: 'A tag is not `key=value`, or is too long.',
    mend: 'Write `key=value`, with letters, digits, `.`, `_` and `-`.',
  },
  tag_not_found: {
    cause: 'The agent has no such tag.',
    mend: '`orch agents show NODE` lists its tags.',
  },
  enrolment_token_not_found: {
    cause: 'No open enrolment token has this ID.',
    mend: '`orch enroll list` shows them.',
  },
  discovery_failed: {
    cause: 'No discovery packet was sent, or it cannot name an address.',
    mend: 'Set `advertised_host` or `agent_host`, or use `orch discover --target HOST`.',
  },
  invalid_selector: {
    cause: 'The selector has a mistake.',
    mend: '`orch help selectors` has the forms.',
  },
  module_not_found: {
    cause: 'No module, or no revision, has this name.',
    mend: '`orch module list` and `orch module revisions MODULE` list them.',
  },
  module_in_use: {
    cause: 'An assignment names the module.',
    mend: 'Change that first: `orch assignments edit`.',
  },
  unknown_module: {
    cause: 'The request or an assignment names a missing module.',
    mend: 'Upload it: `orch module publish FILE`.',
  },
  assignment_not_found: {
    cause: 'No assignment has this name.',
    mend: '`orch assignments` lists them.',
  },
  assignment_exists: {
    cause: 'An assignment has this name already.',
    mend: 'Change it: `orch assignments edit NAME`.',
  },
  assignment_changed: {
    cause: 'The assignment of a rollout no longer matches this agent.',
    mend: 'If that is wrong, correct the tags, then `orch rollouts retry ID`.',
  },
  rollout_finished: {
    cause: 'The rollout has ended.',
    mend: 'Start another with `orch apply`, or repeat those that failed: `orch rollouts retry ID`.',
  },
  rollout_in_progress: {
    cause: 'The rollout is still running.',
    mend: 'Cancel it, or wait until it has ended or halted.',
  },
  rollout_not_found: {
    cause: 'No rollout has this ID, or it was deleted for its age.',
    mend: '`orch rollouts` lists them.',
  },
  rollout_stopped: {
    cause: 'The rollout ended before this agent: too many failures, a failed canary, or a cancel.',
    mend: '`orch rollouts show ID` says why. Then `orch rollouts resume ID` or `retry ID`.',
  },
  invalid_module: {
    cause: 'The module has mistakes.',
    mend: 'Each is shown with line and column. `orch module validate FILE` needs no orchestrator.',
  },
  module_not_supported: {
    cause: "The module does not support this agent's platform.",
    mend: 'Extend its `supports`, or leave the agent out of the selector.',
  },
  module_conflict: {
    cause:
      'Two modules declare one resource differently, two entries are the same thing on the machine, or dependencies form a cycle.',
    mend: 'Declare it once, or with the same fields in both places.',
  },
  variant_ambiguous: {
    cause: 'Two variants of a resource match the agent equally well.',
    mend: 'Add a key to one `when`.',
  },
  variant_missing: {
    cause: 'No variant of a resource matches the agent.',
    mend: 'Add a variant with `when: {}`, or narrow `supports`.',
  },
  invalid_values: {
    cause: 'A value set or a value of a request has mistakes. Secret inputs take no value of a request.',
    mend: 'Correct them; `orch values check FILE` needs no upload.',
  },
  values_conflict: {
    cause: 'Another value set has the `rank` of tags, which stands in one place.',
    mend: 'Take one of them out.',
  },
  values_not_found: {
    cause: 'No value set has this name.',
    mend: '`orch values list` lists them.',
  },
  input_missing: {
    cause: 'An input has neither a default nor a value for the agent.',
    mend: 'Set it in a value set (`orch values edit`), or add a default.',
  },
  input_invalid: {
    cause: 'A value does not fit its input, or two values have the same weight.',
    mend: '`orch explain NODE MODULE.INPUT` shows where they come from.',
  },
  secret_unavailable: {
    cause: 'The secret is missing, expired, or restricted to other agents.',
    mend: '`orch secrets show NAME` shows expiry and restriction. Set it, or widen `--restrict-tags`.',
  },
  expression_error: {
    cause: 'An expression fails on this agent, for example because a tag is missing.',
    mend: 'Set the tag (`orch agents tag`), or remove the expression.',
  },
  secret_not_found: {
    cause: 'No secret has this name.',
    mend: '`orch secrets list` lists them.',
  },
  secret_exists: {
    cause: 'A secret has this name already.',
    mend: '`orch secrets set NAME` changes it.',
  },
  invalid_restriction: {
    cause: 'The restriction of a secret has a mistake.',
    mend: '`orch help selectors` has the forms.',
  },
  secrets_locked: {
    cause: '`secrets.key` is missing, unreadable or of another store, so no secret can be decrypted.',
    mend: 'Put the right one into the data directory: [backup.md](backup.md#what-to-keep).',
  },
  channel_not_found: {
    cause: 'No notification channel has this ID or name.',
    mend: '`orch channels list` lists them.',
  },
  channel_exists: {
    cause: 'A notification channel has this name already.',
    mend: 'Change it: `orch channels update NAME`.',
  },
  delivery_failed: {
    cause: 'The test notification did not arrive.',
    mend: '[Notifications](guides/notifications.md#when-nothing-arrives) has the usual causes.',
  },
  notification_not_found: {
    cause: 'No notification has this ID.',
    mend: '`orch notifications` lists them. Old ones go after `retention.notifications_days`.',
  },
  maintenance_window_not_found: {
    cause: 'No maintenance window has this ID.',
    mend: '`orch maintenance` lists them.',
  },
  maintenance_window_over: {
    cause: 'The maintenance window has ended.',
    mend: 'Start or schedule another one.',
  },
  terminal_not_found: {
    cause: 'No terminal session has this ID.',
    mend: '`orch term list` lists open ones.',
  },
  terminal_over: {
    cause: 'The terminal session has ended.',
    mend: 'Open another one. `orch term replay ID` plays its recording.',
  },
  terminal_disabled: {
    cause: "The agent's configuration does not permit terminals.",
    mend: 'Set `remote_terminal: {enabled: true}` in `/etc/orch/agent.yaml` there.',
  },
  terminal_unsupported: {
    cause: 'The agent is too old for terminals, or its terminal process fails.',
    mend: 'Upgrade it. Its log names why the process fails.',
  },
  terminal_limit: {
    cause: 'The operator or the agent has all terminals open that it may.',
    mend: 'Close one: `orch term list`, `orch term close ID`.',
  },
  terminal_pen_taken: {
    cause: 'Another client types in this terminal.',
    mend: 'Watch it, or take the pen with `--take`.',
  },
  shell_not_allowed: {
    cause: 'The agent does not permit this shell.',
    mend: 'Leave it out, or set `remote_terminal.allow_operator_shell_override` on the machine.',
  },
  recording_failed: {
    cause: 'The session cannot be recorded, which `terminal.record` requires.',
    mend: 'Free disk space on the orchestrator (`terminal.disk_floor_bytes`), or set `terminal.record` to `best_effort`.',
  },
  transcript_not_found: {
    cause: 'The session has no recording, or it was deleted.',
    mend: 'They are kept for `retention.transcripts_days`.',
  },
  transcript_invalid: {
    cause: 'The recording is damaged.',
    mend: "Restore [the file](terminal.md#files) from the host's backup.",
  },
  forward_refused: {
    cause: "The agent's configuration does not permit the target.",
    mend: 'Name it in `forward.targets`, or for `orch ssh-proxy` in `ssh_proxy.targets`, in `/etc/orch/agent.yaml` there: [SSH without an open port](guides/ssh-without-an-open-port.md).',
  },
  forward_limit: {
    cause: 'The operator or the agent has all forwards open that it may.',
    mend: 'End one, or raise `forward.per_operator` or `forward.per_agent`.',
  },
  copy_refused: {
    cause: "The agent's configuration does not permit the path, or it cannot be copied.",
    mend: 'Name it in `copy.read` or `copy.write` in `/etc/orch/agent.yaml` there: [copying files](guides/copying-files.md).',
  },
  operation_not_found: {
    cause: 'This agent has no operation with this ID, or it was deleted for its age.',
    mend: '`orch ops list` lists them. Old ones go after `retention.operations_days`.',
  },
  operation_in_progress: {
    cause: 'Another operation runs on the agent, or the orchestrator is at its limit.',
    mend: 'Wait, or cancel it: `orch ops list`, `orch ops cancel ID`.',
  },
  operation_finished: {
    cause: 'The operation has ended, so it cannot be cancelled.',
    mend: 'To undo it: `orch apply NODE --to OPERATION` with the one before.',
  },
  operation_unsuitable: {
    cause: "The operation is another agent's, or its desired state is not stored.",
    mend: 'Choose an apply of this agent: `orch ops list --agent NODE`.',
  },
  removal_guard: {
    cause: 'The apply would remove more resources than permitted.',
    mend: 'Read which and why. If you mean it: `--allow-removals N`.',
  },
  rolled_back: {
    cause:
      'The agent has undone the apply: a resource or a health check failed, or the machine did not come back in time.',
    mend: '`orch ops show ID` says why, and what was not restored. Repair the module, and apply again.',
  },
  outside_window: {
    cause: 'An assignment of the agent is applied only in maintenance windows, and none is active.',
    mend: 'Wait for the window, or use `--outside-window`.',
  },
  precondition_failed: {
    cause: 'What the request would replace has changed since it was read.',
    mend: 'Read it again, look at the difference, and repeat.',
  },
  plan_stale: {
    cause: 'The machine, a module, a tag or a secret has changed since the plan.',
    mend: 'Plan again, and look at the difference.',
  },
  not_delivered: {
    cause: 'The apply did not reach the agent in time. Nothing changed.',
    mend: 'Start the agent, and apply again, or use `--when-online`.',
  },
  interrupted: {
    cause: 'The agent or its machine stopped in the middle.',
    mend: 'Apply again: it goes on there.',
  },
  cancelled: {
    cause: 'An operator cancelled it, or the client disconnected.',
    mend: 'Apply again when you want to.',
  },
  drift_not_found: {
    cause: 'No drift record has this ID.',
    mend: '`orch drift list` lists them. Old ones go after `drift.retention_days`.',
  },
  drift_unacceptable: {
    cause: 'The drift is not in the newest check, or a further change could not be told.',
    mend: 'Run `orch drift NODE`, then accept; or use `orch drift snooze`.',
  },
  snooze_not_found: {
    cause: 'No open snooze has this ID.',
    mend: '`orch drift snoozes` lists them.',
  },
  no_snapshot: {
    cause: 'Nothing was ever applied on the agent.',
    mend: 'Apply first.',
  },
  invalid_filter: {
    cause: 'A filter of a list has a wrong value.',
    mend: 'The message names the valid ones.',
  },
  invalid_cursor: {
    cause: 'The cursor is not from this list.',
    mend: 'Begin with the first page.',
  },
  invalid_cutoff: {
    cause: 'The time before which to delete events is invalid, or lies ahead.',
    mend: 'Use RFC 3339, a date, or a text such as `180d ago`.',
  },
  invalid_checkpoint: {
    cause: 'The text is no checkpoint of this audit log.',
    mend: 'Copy the whole line of `orch audit verify -o name`.',
  },
  stale_generation: {
    cause: 'The agent has seen a newer operation: the store is an old copy.',
    mend: 'Restore with `orch serve restore`, or start once with `--new-epoch`: [backup.md](backup.md#copies-made-by-other-means).',
  },
  verify_failed: {
    cause: 'All was applied, and then a health check failed.',
    mend: 'Repair its reason, and run `orch verify NODE`.',
  },
  not_converged: {
    cause: 'The resource still differs after the change.',
    mend: 'Something else changes it, or the `check` of a script never succeeds.',
  },
  apply_failed: {
    cause: 'A change failed.',
    mend: 'Repair the reason, and apply again.',
  },
  observe_failed: {
    cause: 'The state of the resource cannot be read, for example because a file system is damaged or hangs.',
    mend: 'Repair the reason.',
  },
  wrong_type: {
    cause:
      'Something else has the path: a directory in place of a file, a link without declared content, a file of the kernel.',
    mend: 'Move it away, or declare another path.',
  },
  file_missing: {
    cause: 'The file of which a resource changes a part is missing.',
    mend: 'Declare what brings it first, such as its package, or write `create: true`.',
  },
  content_unsuitable: {
    cause: 'A change of a part of a file is ambiguous: it is not text, is too large, or has the part twice.',
    mend: 'Edit the lines in the message, or narrow the pattern.',
  },
  value_unknown: {
    cause: 'The machine does not know a declared setting, kernel module, time zone, locale or the like.',
    mend: 'Correct it, or declare what brings it first, such as a package.',
  },
  parent_missing: {
    cause: 'The parent directory is missing, and `parents` is false.',
    mend: 'Declare the directory, or leave out `parents: false`.',
  },
  unsafe_path: {
    cause: 'A link, or a directory that another user can change, lies in the path.',
    mend: "Correct the directory's owner or mode, or choose another path.",
  },
  permission_denied: {
    cause: 'The agent lacks the permission.',
    mend: 'Run it as root, as `orch agent install` does, or permit the container what is missing.',
  },
  read_only: {
    cause: 'The file system is mounted read-only.',
    mend: 'Mount it writable, or leave the resource out there.',
  },
  disk_full: {
    cause: 'The file system has no space, or the quota is used up.',
    mend: 'Free space on the machine, and apply again.',
  },
  busy: {
    cause: 'The object is in use, a mount point, or being executed.',
    mend: 'Stop what uses it. A mount point, such as `/etc/hosts` in a container, cannot be replaced.',
  },
  immutable: {
    cause: 'The object is immutable or append-only (`lsattr`), or the agent lacks a capability.',
    mend: 'Remove the attribute: `chattr -i FILE`.',
  },
  unknown_owner: {
    cause: 'The machine has no user with this name.',
    mend: 'Declare the user too, or correct the name.',
  },
  unknown_group: {
    cause: 'The machine has no group with this name.',
    mend: 'Declare it before the file, or correct the name.',
  },
  dependency_failed: {
    cause: 'A resource that this one needs failed, or a failure holds a removal back.',
    mend: 'Repair that resource first.',
  },
  command_failed: {
    cause: 'A tool of the system ended with an error.',
    mend: 'Run it on the machine to see more.',
  },
  command_missing: {
    cause: 'A program is not installed on the machine.',
    mend: 'Declare its package before this resource.',
  },
  command_not_executable: {
    cause: 'A program cannot be executed.',
    mend: 'Look at its mode, its first line, and the mount option `noexec`.',
  },
  command_timed_out: {
    cause: 'A tool of the system did not end in time.',
    mend: "See what it waits for, give a script a `timeout`, or raise the agent's `script_timeout`.",
  },
  package_unknown: {
    cause: 'No package source of the machine has this package.',
    mend: 'Correct the name, or declare the source before it.',
  },
  package_version_unknown: {
    cause: 'No package source of the machine has this version.',
    mend: '`apt-cache policy NAME` or `dnf list NAME` on the machine shows the versions.',
  },
  package_held: {
    cause: 'The package is held or pinned on the machine.',
    mend: 'Release it (`apt-mark unhold NAME`), or declare its version.',
  },
  package_manager_locked: {
    cause: 'Another package manager did not end in time.',
    mend: 'Wait for it, such as for automatic updates, and apply again.',
  },
  package_manager_broken: {
    cause: 'The package manager has an unfinished run or a damaged database.',
    mend: 'Run the repair that the message names, such as `dpkg --configure -a`.',
  },
  removal_refused: {
    cause: 'The removal would take other things along, or something still needs the resource.',
    mend: 'Remove that first, or keep the resource.',
  },
  unit_missing: {
    cause: 'The machine has no such service.',
    mend: 'Correct the name, or declare its package before it.',
  },
  unit_masked: {
    cause: 'The service is masked.',
    mend: 'Run `systemctl unmask NAME` on the machine, or leave the service out.',
  },
  unit_unsuitable: {
    cause: 'The service cannot be started or enabled as declared, such as without an `[Install]` section.',
    mend: 'Leave out `enabled` or `running`.',
  },
  service_failed: {
    cause: 'The service did not start, stop or reload.',
    mend: 'Repair its configuration by its last log lines, and apply again.',
  },
  id_taken: {
    cause: 'Another user or group has this numeric ID.',
    mend: 'Choose another, or leave it out.',
  },
  account_busy: {
    cause: 'The account is in use, for example by a process.',
    mend: "End the user's processes, and apply again.",
  },
  account_not_local: {
    cause: 'The account comes from a directory service.',
    mend: 'Change it there, or leave it out.',
  },
  script_failed: {
    cause: 'A script ended with an error.',
    mend: '`orch ops output ID` shows what it wrote.',
  },
  local_changes: {
    cause: 'A git checkout holds changes or commits that are nowhere else.',
    mend: 'Commit and push them, or undo them, and apply again.',
  },
  archive_refused: {
    cause: 'An archive is damaged, too large, or has entries that are not unpacked. Nothing changed.',
    mend: '[`archive-unix`](kinds/archive-unix.md#archives-that-are-refused) lists the reasons.',
  },
  unsupported_on_platform: {
    cause: 'The resource or the command does not exist on this platform.',
    mend: 'Use a [variant](modules.md#variants), or narrow `supports`.',
  },
  usage: {
    cause: 'The command line has a mistake; the exit status is 64.',
    mend: '`orch COMMAND --help` explains it.',
  },
  invalid_config: {
    cause: 'A configuration file, variable or setting has a mistake.',
    mend: '`orch serve --config-schema` lists what is valid.',
  },
  key_unreadable: {
    cause: 'The key file cannot be read.',
    mend: 'Make one with `orch operator init`, or name it with `--key-file` or `ORCH_KEY_FILE`.',
  },
  key_unwritable: {
    cause: 'The key file cannot be written.',
    mend: 'Correct the reason, such as a missing permission.',
  },
  key_permissions: {
    cause: 'Another user owns the key file, or can read it.',
    mend: 'Run `chmod 600 FILE` as its owner.',
  },
  key_invalid: {
    cause: 'The key file holds no usable Ed25519 key.',
    mend: 'Use a file of `orch operator init`, or import a key: `orch operator init --from-ssh FILE`.',
  },
  key_exists: {
    cause: 'The key file is there already, and is not replaced.',
    mend: 'Keep it, or name another with `--key-file`.',
  },
  tls_mismatch: {
    cause: "The certificate differs from the profile's: it was changed, or someone is in between.",
    mend: 'Ask an admin for the fingerprint. Only then: `orch profile update NAME --tls-fingerprint HEX`.',
  },
  tls_unknown: {
    cause: 'The certificate is not trusted yet.',
    mend: 'Compare its fingerprint with that of an admin, then add it to the profile.',
  },
  login_unbound: {
    cause: "The challenge is not bound to this server's certificate, so nothing was signed. Someone may be in between.",
    mend: 'Behind a proxy, set `api_spki` on the orchestrator: [reverse proxies](guides/reverse-proxies.md).',
  },
  unreachable: {
    cause: 'Nothing answers at the address, or the connection broke.',
    mend: '`orch doctor` finds where it ends: name, port, tunnel, firewall, service.',
  },
  protocol_mismatch: {
    cause: 'Agent and orchestrator have no common version of the protocol.',
    mend: 'Upgrade the older one: [upgrading.md](upgrading.md).',
  },
  protocol_violation: {
    cause: 'The other side broke the protocol.',
    mend: 'Look for a proxy or another program on the port. If both ends are orch, report it with the log.',
  },
  pin_mismatch: {
    cause: 'The orchestrator has another key than the pinned one. The agent does nothing for it.',
    mend: 'Correct the address, or put `identity.key` back. Only if the key was replaced: `orch agent repin` on the machine.',
  },
  pin_missing: {
    cause: 'The agent does not know the key of the orchestrator.',
    mend: 'Start it with `--orchestrator-key KEY` or a token.',
  },
  agent_rejected: {
    cause: 'The orchestrator has rejected this agent.',
    mend: '`orch agents remove NODE` there lets it wait for approval again.',
  },
  data_dir_locked: {
    cause: 'Another process uses the data directory.',
    mend: 'Stop it: `systemctl status orch-serve orch-agent`.',
  },
  data_dir_invalid: {
    cause: 'The data directory is missing, not mounted, damaged or incomplete.',
    mend: '[backup.md](backup.md#a-data-directory-with-missing-files) has a remedy for each case.',
  },
  schema_too_new: {
    cause: 'A newer release has written the store.',
    mend: 'Start that release, or go back: [upgrading.md](upgrading.md#going-back).',
  },
  migration_failed: {
    cause: 'The store of an older release cannot be migrated. It is unchanged.',
    mend: 'Start the earlier release, and report the message.',
  },
  bootstrap_required: {
    cause: 'The first start needs an operator.',
    mend: 'Run `orch operator init`, or name a key with `--bootstrap-key`.',
  },
  port_in_use: {
    cause: 'Another program listens on the port.',
    mend: 'Stop it, or choose another port: `agent_port`, `api_port`.',
  },
  native_module_missing: {
    cause: 'A native library is missing, or compiled for another Node.js.',
    mend: 'The hint says how to install it. [Packages](install.md) contain it.',
  },
  profile_not_found: {
    cause: 'No profile has this name.',
    mend: '`orch profile list` lists them.',
  },
  ambiguous_node: {
    cause: 'The text matches several agents.',
    mend: 'Use the name, or more of the ID.',
  },
  resource_not_found: {
    cause: 'No module or apply knows this resource on the agent.',
    mend: '`orch state NODE` lists what is managed.',
  },
  invalid_plan_file: {
    cause: 'The saved plan cannot be read or written, or others can change it.',
    mend: 'Save it again with `orch plan --out FILE`, in a directory of your own.',
  },
  content_unavailable: {
    cause:
      'A file beside a module did not reach the machine: no room, no connection, or the orchestrator has it no more.',
    mend: 'Apply again: only the rest is fetched.',
  },
  file_not_found: {
    cause: 'A module names a file that the orchestrator does not have.',
    mend: '`orch` sends files by itself. Other clients upload them first: `PUT /api/v1/files/{sha256}`.',
  },
  file_damaged: {
    cause: 'The uploaded parts of a file have another SHA-256 than its address.',
    mend: 'The file changed, or was read wrongly. Send it again.',
  },
  upgrade_failed: {
    cause: 'The agent could not fetch, check or start the new release, and runs the earlier one.',
    mend: 'The audit log has the reason, too (`agent.upgrade_failed`).',
  },
  upgrade_unsupported: {
    cause: 'This agent cannot replace its release.',
    mend: 'Install the package on the machine.',
  },
  package_invalid: {
    cause: 'The package, its sum or its signature is missing or does not match.',
    mend: "Do not install it. Fetch it again, and compare the publisher's key.",
  },
  wrong_orchestrator: {
    cause: 'The file belongs to another orchestrator.',
    mend: 'Choose the profile of that one: `--profile NAME`.',
  },
  confirmation_required: {
    cause: 'The command asks, and there is no terminal.',
    mend: 'Add `--yes` if you mean it.',
  },
  agent_running: {
    cause: 'An agent with this data directory runs.',
    mend: 'Stop it first: `systemctl stop orch-agent`.',
  },
  journal_corrupt: {
    cause: 'The journal of the agent is damaged.',
    mend: 'If a newer release wrote it, install that again. The agent sets a damaged one aside: [security.md](security.md#secrets).',
  },
};
