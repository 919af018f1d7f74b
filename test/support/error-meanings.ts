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
    mend: 'Use `orch`, or compare the request with `orch api GET /openapi.json`.',
  },
  invalid_body: {
    cause: 'The body is not JSON, or does not match the schema of the route.',
    mend: '`errors` names each place. If `orch` sent it, the command is newer than the orchestrator: [upgrading.md](upgrading.md).',
  },
  invalid_query: {
    cause: 'A query parameter is unknown or has a wrong value.',
    mend: 'The message names the parameter and what it accepts.',
  },
  invalid_path: {
    cause: 'A parameter in the path has a wrong form, such as an ID with a letter too many.',
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
    mend: 'Send fewer or smaller headers, such as cookies that a proxy adds.',
  },
  url_too_long: {
    cause: 'The URL exceeds 4 KiB.',
    mend: 'Use a shorter filter or selector.',
  },
  origin_forbidden: {
    cause: 'A web page of another origin sent the request.',
    mend: 'Use `orch` or another program; browsers are not supported as clients.',
  },
  not_found: {
    cause: 'There is no such route.',
    mend: 'Compare the path with `orch api GET /openapi.json`. If `orch` sent it, the command is newer than the orchestrator.',
  },
  method_not_allowed: {
    cause: 'The route exists, but not with this method.',
    mend: 'Use one of the methods in the `Allow` header.',
  },
  unauthenticated: {
    cause: 'The request has no session token, or the session has ended.',
    mend: 'Log in again: `orch login`. `orch` does it by itself unless `ORCH_TOKEN` is set.',
  },
  admin_required: {
    cause: 'The route is for the role `admin`.',
    mend: 'Ask an admin: `orch operator list` shows them.',
  },
  role_forbidden: {
    cause: 'The role of the operator does not permit this request.',
    mend: 'Ask an admin for another role: `orch operator grant NAME --role ROLE`.',
  },
  not_granted: {
    cause:
      'The grants of the operator do not give the right on this machine, or on all machines that the request could reach.',
    mend: 'See what they give with `orch operator rights`, and ask an admin for more.',
  },
  operator_expired: {
    cause: 'The time of the operator is over, so the key logs in no more. The record, role and grants are still there.',
    mend: 'Ask an admin for more time: `orch operator grant NAME --expires 90d`.',
  },
  expiry_beyond_own: {
    cause:
      'An admin whose own time ends adds or changes an operator whose time would end later, or never. Removing one is permitted.',
    mend: 'Give an end that is no later than your own, or ask an admin without an end.',
  },
  invalid_expiry: {
    cause: 'The end of the operator is over already, or it is a robot without an end within 366 days.',
    mend: 'Give a time ahead: `--expires 90d`.',
  },
  rate_limited: {
    cause: 'Too many requests of this kind in a short time.',
    mend: 'Wait for the time in `Retry-After`. For logins: look for a script with a wrong key.',
  },
  request_timeout: {
    cause: 'The request did not arrive completely in time.',
    mend: 'Repeat it. If it recurs, look at the network or a proxy in between, or raise `limits.request_timeout_secs`.',
  },
  idempotency_conflict: {
    cause: 'The `Idempotency-Key` belongs to another request, or its answer is no longer available.',
    mend: 'Use a new key for a new request.',
  },
  tls_required: {
    cause: 'The connection is not encrypted, and the request is for a login, a secret or a terminal.',
    mend: 'Use https. Behind a proxy: set `trust_proxy_tls`, and let the proxy send `X-Forwarded-Proto`: [reverse proxies](guides/reverse-proxies.md).',
  },
  store_unavailable: {
    cause: 'The store cannot write or read now, for example because the disk is full.',
    mend: 'Free space on the orchestrator. Its log has the cause, and `orch doctor` on the host checks the disk.',
  },
  shutting_down: {
    cause: 'The orchestrator is stopping.',
    mend: 'Try again after its restart.',
  },
  internal: {
    cause: 'An error in orch.',
    mend: 'Look in the log of the orchestrator for the request ID, and report both.',
  },
  invalid_public_key: {
    cause: 'The text is not an Ed25519 public key, or is one that must not be used.',
    mend: 'Copy the whole line that `orch operator init` prints, or use `@FILE`.',
  },
  invalid_signature: {
    cause: 'The signature does not have the form of an Ed25519 signature.',
    mend: 'Sign the bytes of the nonce with Ed25519, and send 128 hex digits. `orch` does it.',
  },
  unknown_operator: {
    cause: 'The key belongs to no active operator.',
    mend: 'An admin adds it: `orch operator add KEY --username NAME`. `orch operator whoami` shows which key you use.',
  },
  signature_verification_failed: {
    cause: 'The signature does not fit the challenge, or the challenge has expired.',
    mend: 'Try again. If it recurs, the key file is not that of the public key.',
  },
  operator_not_found: {
    cause: 'There is no operator with this ID or name.',
    mend: '`orch operator list --include-removed` lists all.',
  },
  operator_exists: {
    cause: 'The key or the name belongs to an operator already.',
    mend: 'Use another name, or remove the operator that has it.',
  },
  invalid_username: {
    cause: 'The name of an operator has a wrong form.',
    mend: 'The message names the valid form.',
  },
  invalid_role: {
    cause: 'The role is not `admin`, `operator`, `deployer`, `planner` or `viewer`.',
    mend: 'Use one of the five.',
  },
  invalid_grant: {
    cause:
      'A grant of an operator names no right, more than the role may do, or a selector of what machines report themselves.',
    mend: 'The message names the place. `docs/guides/operators.md` has the rights and the form of grants.',
  },
  invalid_key_proof: {
    cause: 'The new key of an operator did not sign the request, so nothing shows that the operator has it.',
    mend: 'Rotate the key with `orch operator rotate`, which signs with both keys.',
  },
  last_admin: {
    cause: 'The request would leave no admin.',
    mend: 'Add another admin first.',
  },
  agent_not_found: {
    cause: 'There is no agent with this ID or name, or no agent matches the selector.',
    mend: '`orch agents` lists names and IDs. With a selector, `--allow-empty` accepts that none matches.',
  },
  agent_not_approved: {
    cause: 'The agent is pending or rejected.',
    mend: 'Approve it: `orch agents approve NODE --name NAME`.',
  },
  agent_not_connected: {
    cause: 'The agent is offline.',
    mend: 'Start the machine or its service `orch-agent`. `orch apply --when-online` waits for it.',
  },
  agent_not_rejected: {
    cause: 'Only a rejected agent can be removed.',
    mend: 'Reject it first: `orch agents reject NODE`.',
  },
  agent_timeout: {
    cause: 'The agent is connected, but did not answer in time.',
    mend: 'Try again. The machine may be overloaded; `journalctl -u orch-agent` there has the cause.',
  },
  agent_too_old: {
    cause: 'The release of the agent lacks what the run asks for, such as health checks.',
    mend: 'Upgrade it: `orch agents upgrade NODE`.',
  },
  package_not_found: {
    cause: 'The orchestrator has no package of this version for the system of the agent.',
    mend: 'Copy `orch-VERSION-linux-CPU.tar.gz` to `packages` in the data directory: [upgrading.md](upgrading.md#the-agents).',
  },
  upgrade_in_progress: {
    cause: 'An earlier upgrade of the agent has not ended.',
    mend: 'Wait until it has ended. `orch audit list --agent NODE` shows how.',
  },
  upgrade_not_found: {
    cause: 'The agent was never upgraded through this orchestrator.',
    mend: 'Nothing to do: `orch agents upgrade NODE` starts one.',
  },
  name_required: {
    cause: 'An agent is approved under a name, and it has none yet.',
    mend: 'Add `--name NAME`.',
  },
  name_taken: {
    cause: 'Another agent has this name, or one that looks like it.',
    mend: 'Choose another name, or rename or remove the other agent.',
  },
  name_immutable: {
    cause: 'The agent has a name, which an approval does not change.',
    mend: 'Approve it without a name, and rename it with orch agents rename.',
  },
  invalid_name: {
    cause: 'The name has a wrong form.',
    mend: 'The message names the valid form.',
  },
  invalid_tag: {
    cause: 'A tag is not `key=value` of valid characters and length.',
    mend: 'Write `key=value`, with letters, digits, `.`, `_` and `-`.',
  },
  tag_not_found: {
    cause: 'The agent has no such tag.',
    mend: '`orch agents show NODE` lists its tags.',
  },
  enrolment_token_not_found: {
    cause: 'There is no open enrolment token with this ID.',
    mend: '`orch enroll list` shows the tokens.',
  },
  discovery_failed: {
    cause: 'No discovery packet was sent, or an address cannot be named in one.',
    mend: 'Set `advertised_host` or `agent_host` to an address that agents reach, or use `orch discover --target HOST`.',
  },
  invalid_selector: {
    cause: 'The selector has a mistake.',
    mend: 'The message shows the place. `orch help selectors` has the forms.',
  },
  module_not_found: {
    cause: 'There is no module, or no revision, with this name.',
    mend: '`orch module list` and `orch module revisions MODULE` list them. Upload it with `orch module publish FILE`.',
  },
  module_in_use: {
    cause: 'An assignment names the module.',
    mend: 'Change the assignment first: `orch assignments edit`.',
  },
  unknown_module: {
    cause: 'The request or an assignment names a module that does not exist.',
    mend: 'Upload it first: `orch module publish FILE`.',
  },
  assignment_not_found: {
    cause: 'There is no assignment with this name.',
    mend: '`orch assignments` lists them.',
  },
  assignment_exists: {
    cause: 'There is an assignment with this name already.',
    mend: 'Change it: `orch assignments edit NAME`.',
  },
  assignment_changed: {
    cause: 'The assignment of a rollout no longer matches this agent.',
    mend: 'Nothing to do if the tags were changed on purpose. Otherwise correct them, and `orch rollouts retry ID`.',
  },
  rollout_finished: {
    cause: 'The rollout has ended already.',
    mend: 'Start another one with `orch apply`, or apply to those that failed: `orch rollouts retry ID`.',
  },
  rollout_in_progress: {
    cause: 'The rollout is still running.',
    mend: 'Cancel it, or wait until it has ended or halted.',
  },
  rollout_not_found: {
    cause: 'There is no rollout with this ID, or it was deleted for its age.',
    mend: '`orch rollouts` lists them.',
  },
  rollout_stopped: {
    cause: 'The rollout ended before this agent: a canary failed, too many agents failed, or it was cancelled.',
    mend: '`orch rollouts show ID` says why. Repair it, then `orch rollouts resume ID` or `retry ID`.',
  },
  invalid_module: {
    cause: 'The module has mistakes.',
    mend: 'Each one is shown with line and column. `orch module validate FILE` needs no orchestrator.',
  },
  module_not_supported: {
    cause: 'The module does not support the platform of this agent.',
    mend: 'Extend `supports` of the module, or leave this agent out of the selector.',
  },
  module_conflict: {
    cause:
      'Two modules declare the same resource differently, two entries are the same thing on the machine, or dependencies form a cycle.',
    mend: 'The message names both places. Declare the resource in one module only, or give it the same fields.',
  },
  variant_ambiguous: {
    cause: 'Two variants of a resource match the agent equally well.',
    mend: 'Add a key to the `when` of one of them.',
  },
  variant_missing: {
    cause: 'No variant of a resource matches the agent.',
    mend: 'Add a variant with `when: {}`, or narrow `supports`.',
  },
  invalid_values: {
    cause:
      'A value set or a value of a request has mistakes; each one comes with its place. Secret inputs take no value of a request.',
    mend: 'Correct the lines; `orch values check FILE` shows those of a file without an upload.',
  },
  values_conflict: {
    cause: 'Another value set has the ranking of tags, which stands in one place.',
    mend: 'Take `rank` out of one of them; the message names the other.',
  },
  values_not_found: {
    cause: 'There is no value set with this name.',
    mend: '`orch values list` lists them.',
  },
  input_missing: {
    cause: 'An input of a module has neither a default nor a value for the agent.',
    mend: 'Set it in a value set (`orch values edit`), or give it a default.',
  },
  input_invalid: {
    cause: 'A value of an input does not fit its declaration, or two values have the same weight.',
    mend: '`orch explain NODE MODULE.INPUT` shows where values come from.',
  },
  secret_unavailable: {
    cause: 'The secret does not exist, has expired, or is restricted to other agents.',
    mend: '`orch secrets show NAME` shows expiry and restriction. Set it, or widen `--restrict-tags`.',
  },
  expression_error: {
    cause: 'An expression fails on this agent, for example because a tag is missing.',
    mend: 'Set the tag (`orch agents tag`), or remove the expression. The message names the field.',
  },
  secret_not_found: {
    cause: 'There is no secret with this name.',
    mend: '`orch secrets list` lists them.',
  },
  secret_exists: {
    cause: 'There is a secret with this name already.',
    mend: '`orch secrets set NAME` changes it.',
  },
  invalid_restriction: {
    cause: 'The restriction of a secret to agents or tags has a mistake.',
    mend: 'The message shows the place. `orch help selectors` has the forms.',
  },
  secrets_locked: {
    cause: 'The secrets cannot be decrypted: `secrets.key` is missing, unreadable or belongs to another store.',
    mend: 'Put the right `secrets.key` into the data directory: [backup.md](backup.md#what-to-keep).',
  },
  channel_not_found: {
    cause: 'There is no notification channel with this ID or name.',
    mend: '`orch channels list` lists them.',
  },
  channel_exists: {
    cause: 'There is a notification channel with this name already.',
    mend: 'Change it: `orch channels update NAME`.',
  },
  delivery_failed: {
    cause: 'The test notification did not arrive.',
    mend: 'The message has the answer of the other side. [notifications](guides/notifications.md#when-nothing-arrives) has the usual causes.',
  },
  notification_not_found: {
    cause: 'There is no notification with this ID.',
    mend: '`orch notifications` lists them. Old ones are deleted after `retention.notifications_days`.',
  },
  maintenance_window_not_found: {
    cause: 'There is no maintenance window with this ID.',
    mend: '`orch maintenance` lists them.',
  },
  maintenance_window_over: {
    cause: 'The maintenance window has ended and cannot change.',
    mend: 'Start or schedule another one.',
  },
  terminal_not_found: {
    cause: 'There is no terminal session with this ID.',
    mend: '`orch term list` lists open sessions.',
  },
  terminal_over: {
    cause: 'The terminal session has ended.',
    mend: 'Open another one. `orch term replay ID` plays its recording.',
  },
  terminal_disabled: {
    cause: 'The configuration of the agent does not permit terminals.',
    mend: 'Set `remote_terminal: {enabled: true}` in `/etc/orch/agent.yaml` of the machine.',
  },
  terminal_unsupported: {
    cause: 'The agent cannot open a terminal: it is too old, or its terminal process fails.',
    mend: 'Upgrade the agent. If it is new: its log names why the terminal process fails.',
  },
  terminal_limit: {
    cause: 'The operator or the agent has as many open terminals as permitted.',
    mend: 'Close one: `orch term list`, `orch term close ID`.',
  },
  terminal_pen_taken: {
    cause: 'Another client types in this terminal.',
    mend: 'Watch it, or take the pen with `--take`.',
  },
  shell_not_allowed: {
    cause: 'The agent does not permit this shell.',
    mend: 'Leave out the shell, or set `remote_terminal.allow_operator_shell_override` on the machine.',
  },
  recording_failed: {
    cause: 'The session cannot be recorded, and `terminal.record` requires it.',
    mend: 'Free disk space on the orchestrator (`terminal.disk_floor_bytes`), or set `terminal.record` to `best_effort`.',
  },
  transcript_not_found: {
    cause: 'The session has no recording, or it was deleted.',
    mend: 'Recordings are kept for `retention.transcripts_days`.',
  },
  transcript_invalid: {
    cause: 'The recording is damaged.',
    mend: 'Restore the file from the backup of the host: [terminal.md](terminal.md#files).',
  },
  forward_refused: {
    cause: 'The configuration of the agent does not permit the target.',
    mend: 'Name the target in `forward.targets`, or for `orch ssh-proxy` in `ssh_proxy.targets`, in `/etc/orch/agent.yaml` of the machine: [SSH without an open port](guides/ssh-without-an-open-port.md).',
  },
  forward_limit: {
    cause: 'The operator or the agent has as many open forwards as permitted.',
    mend: 'End one, or raise `forward.per_operator` or `forward.per_agent`.',
  },
  copy_refused: {
    cause: 'The configuration of the agent does not permit the path, or the path cannot be copied.',
    mend: 'Name the path in `copy.read` or `copy.write` in `/etc/orch/agent.yaml` of the machine: [copying files](guides/copying-files.md).',
  },
  operation_not_found: {
    cause: 'There is no operation with this ID on this agent, or it was deleted by age.',
    mend: '`orch ops list` lists them. Old ones are deleted after `retention.operations_days`.',
  },
  operation_in_progress: {
    cause: 'Another plan, apply or drift check runs on the agent, or the orchestrator is at its limit.',
    mend: 'Wait, or cancel it: `orch ops list`, `orch ops cancel ID`.',
  },
  operation_finished: {
    cause: 'The operation has ended, so it cannot be cancelled.',
    mend: 'Nothing to do. To undo it: `orch apply NODE --to OPERATION` with the one before.',
  },
  operation_unsuitable: {
    cause: 'An apply cannot go back to this operation: it is one of another agent, or its desired state is not stored.',
    mend: 'Choose an apply of this agent: `orch ops list --agent NODE`.',
  },
  removal_guard: {
    cause: 'The apply would remove more resources than permitted.',
    mend: 'Read which and why. If it is meant: `--allow-removals N`.',
  },
  rolled_back: {
    cause:
      'The agent has undone the apply: a resource or a health check failed, or the machine did not come back in time. The result names what could not be restored.',
    mend: '`orch ops show ID` says why. Repair the module, and apply again.',
  },
  outside_window: {
    cause: 'An assignment of the agent is applied only within its maintenance windows, and none is active.',
    mend: 'Wait for the window, or permit it with `--outside-window`.',
  },
  precondition_failed: {
    cause: 'What the request would replace has changed since the caller read it.',
    mend: 'Read it again, look at the difference, and repeat the change.',
  },
  plan_stale: {
    cause: 'The machine, a module, a tag or a secret has changed since the plan.',
    mend: 'Plan again, and look at the difference.',
  },
  not_delivered: {
    cause: 'The apply did not reach the agent in time. Nothing was changed.',
    mend: 'Start the agent, and apply again, or use `--when-online`.',
  },
  interrupted: {
    cause: 'The agent or its machine stopped in the middle.',
    mend: 'Apply again: it continues where it was.',
  },
  cancelled: {
    cause: 'An operator cancelled it, or the client disconnected.',
    mend: 'Apply again when you want to.',
  },
  drift_not_found: {
    cause: 'There is no drift record with this ID.',
    mend: '`orch drift list` lists them. Old ones are deleted after `drift.retention_days`.',
  },
  drift_unacceptable: {
    cause:
      'The drift cannot be accepted: it is not in the newest check, or nothing tells a further change of the resource.',
    mend: 'Run `orch drift NODE`, then accept. Otherwise use `orch drift snooze`.',
  },
  snooze_not_found: {
    cause: 'There is no snooze with this ID that has not ended.',
    mend: '`orch drift snoozes` lists them.',
  },
  no_snapshot: {
    cause: 'Nothing was ever applied on the agent, so there is nothing to compare with.',
    mend: 'Apply first.',
  },
  invalid_filter: {
    cause: 'A filter of a list has a wrong value.',
    mend: 'The message names the values that it accepts.',
  },
  invalid_cursor: {
    cause: 'The cursor is not from this list.',
    mend: 'Begin with the first page.',
  },
  invalid_cutoff: {
    cause: 'The time before which events are deleted is not valid, or lies ahead.',
    mend: 'Use RFC 3339, a date, or a text such as `180d ago`.',
  },
  invalid_checkpoint: {
    cause: 'The text is not a checkpoint of this audit log.',
    mend: 'Copy the whole line that `orch audit verify -o name` printed on this orchestrator.',
  },
  stale_generation: {
    cause: 'The agent has seen a newer operation: the store is an old copy.',
    mend: 'Restore it with `orch serve restore`, or start once with `--new-epoch`: [backup.md](backup.md#copies-made-by-other-means).',
  },
  verify_failed: {
    cause: 'All was applied, and a health check of a module failed afterwards.',
    mend: 'Look at its reason, repair it, and run `orch verify NODE`.',
  },
  not_converged: {
    cause: 'The resource still differs after the change.',
    mend: 'The message names what differs. Something else changes it, or a `check` of a script never succeeds.',
  },
  apply_failed: {
    cause: 'A change failed.',
    mend: 'The message has the error of the system. Repair that, and apply again.',
  },
  observe_failed: {
    cause: 'The state of the resource cannot be read.',
    mend: 'The message has the error of the system, such as a damaged file system or a hung mount.',
  },
  wrong_type: {
    cause:
      'Another kind of object has the path, such as a directory in place of a file, a link where no content is declared, or a file of the kernel.',
    mend: 'Move the object away, or declare another path.',
  },
  file_missing: {
    cause: 'The file of which a resource changes a part does not exist.',
    mend: 'Declare what brings it before the resource, such as its package, or write `create: true`.',
  },
  content_unsuitable: {
    cause:
      'The content of a file leaves open what a change of a part of it means: it is not text, is too large, or has the part twice.',
    mend: 'The message names the lines. Edit them by hand, or make the pattern narrower.',
  },
  value_unknown: {
    cause:
      'The machine does not know what is declared, such as a setting or a module of its kernel, a time zone or a locale.',
    mend: 'Correct the name or the value, or declare before it what brings it, such as a package.',
  },
  parent_missing: {
    cause: 'The parent directory is missing, and `parents` is false.',
    mend: 'Declare the directory, or leave out `parents: false`.',
  },
  unsafe_path: {
    cause: 'A link, or a directory that another user can change, lies in the path.',
    mend: 'Correct the owner or the mode of the directory that the message names, or choose another path.',
  },
  permission_denied: {
    cause: 'The agent lacks the permission.',
    mend: 'Run the agent as root: `orch agent install` does. In a container, the message names what is missing.',
  },
  read_only: {
    cause: 'The file system is mounted read-only.',
    mend: 'Mount it writable, or leave the resource out on this machine.',
  },
  disk_full: {
    cause: 'The file system has no space or the quota is used up.',
    mend: 'Free space on the machine, then apply again.',
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
    cause: 'There is no user with this name on the machine.',
    mend: 'Declare the user too, or correct the name.',
  },
  unknown_group: {
    cause: 'There is no group with this name on the machine.',
    mend: 'Declare the group before the file, or correct the name.',
  },
  dependency_failed: {
    cause: 'A resource that this one depends on failed, or a failure holds a removal back.',
    mend: 'Repair the resource that failed first.',
  },
  command_failed: {
    cause: 'A tool of the system ended with an error.',
    mend: 'The message has its last lines. Run the tool on the machine to see more.',
  },
  command_missing: {
    cause: 'A program is not installed on the machine.',
    mend: 'Declare the package that brings it, before this resource.',
  },
  command_not_executable: {
    cause: 'A program exists, but cannot be executed.',
    mend: 'Look at its mode, at its first line, and at the mount option `noexec`.',
  },
  command_timed_out: {
    cause: 'A tool of the system did not end in time.',
    mend: 'See what it waits for. For scripts, give them a `timeout`, or raise `script_timeout` of the agent.',
  },
  package_unknown: {
    cause: 'No package source of the machine has this package.',
    mend: 'Correct the name, or declare the package source before it.',
  },
  package_version_unknown: {
    cause: 'No package source of the machine has this version.',
    mend: '`apt-cache policy NAME` or `dnf list NAME` on the machine shows the versions.',
  },
  package_held: {
    cause: 'The package is held or pinned on the machine.',
    mend: 'Release it (`apt-mark unhold NAME`), or declare the version that it has.',
  },
  package_manager_locked: {
    cause: 'Another package manager is running, and did not end in time.',
    mend: 'Wait for the other run, such as automatic updates, and apply again.',
  },
  package_manager_broken: {
    cause: 'The package manager has an unfinished run or a damaged database.',
    mend: 'Run the repair that the message names, such as `dpkg --configure -a`.',
  },
  removal_refused: {
    cause: 'The removal would take other things along, or something still needs the resource.',
    mend: 'The message names what needs it. Remove that first, or keep the resource declared.',
  },
  unit_missing: {
    cause: 'The machine has no such service.',
    mend: 'Correct the name, or declare the package that brings the service before it.',
  },
  unit_masked: {
    cause: 'The service is masked.',
    mend: 'Run `systemctl unmask NAME` on the machine, or leave the service out.',
  },
  unit_unsuitable: {
    cause: 'The service cannot be started or enabled as declared.',
    mend: 'The message says why, such as a unit without an `[Install]` section. Leave out `enabled` or `running`.',
  },
  service_failed: {
    cause: 'The service did not start, stop or reload.',
    mend: 'The message has its last log lines. Repair its configuration, and apply again.',
  },
  id_taken: {
    cause: 'Another user or group has this numeric ID.',
    mend: 'Choose another number, or leave it out.',
  },
  account_busy: {
    cause: 'The account is in use, for example by a running process.',
    mend: 'End the processes of the user, and apply again.',
  },
  account_not_local: {
    cause: 'The account comes from a directory service, so the agent cannot change it.',
    mend: 'Change it in the directory service, or leave it out.',
  },
  script_failed: {
    cause: 'A script ended with an error.',
    mend: '`orch ops output ID` shows what it wrote.',
  },
  local_changes: {
    cause: 'A checkout of git holds changes or commits that are nowhere else, so it was left as it is.',
    mend: 'Commit and push them, or undo them, and apply again.',
  },
  archive_refused: {
    cause: 'An archive is damaged or too large, or has entries that are not unpacked. Nothing was changed.',
    mend: 'The message names the entry. [`archive-unix`](kinds/archive-unix.md#archives-that-are-refused) lists what is refused.',
  },
  unsupported_on_platform: {
    cause: 'The resource or the command does not exist on this platform.',
    mend: 'Use a [variant](modules.md#variants) for this platform, or narrow `supports`.',
  },
  usage: {
    cause: 'The command line has a mistake; the exit status is 64.',
    mend: '`orch COMMAND --help` explains it.',
  },
  invalid_config: {
    cause: 'A configuration file, variable or setting has a mistake.',
    mend: 'The message names file, line and reason. `orch serve --config-schema` lists what is valid.',
  },
  key_unreadable: {
    cause: 'The key file cannot be read.',
    mend: 'Make one with `orch operator init`, or name it with `--key-file` or `ORCH_KEY_FILE`.',
  },
  key_unwritable: {
    cause: 'The key file cannot be written.',
    mend: 'The message has the error of the system, such as a missing permission for the directory.',
  },
  key_permissions: {
    cause: 'Another user owns the key file, or can read it.',
    mend: 'Run `chmod 600 FILE` as its owner.',
  },
  key_invalid: {
    cause: 'The key file does not contain a usable Ed25519 key.',
    mend: 'Use a file of `orch operator init`, or import a key: `orch operator init --from-ssh FILE`.',
  },
  key_exists: {
    cause: 'There is a key file already, and it is not replaced.',
    mend: 'Keep it, or name another file with `--key-file`.',
  },
  tls_mismatch: {
    cause: 'The certificate differs from the one that the profile trusts: it was changed, or someone is in between.',
    mend: 'Ask an admin for the present fingerprint. Only then: `orch profile update NAME --tls-fingerprint HEX`.',
  },
  tls_unknown: {
    cause: 'The certificate is not trusted yet.',
    mend: 'Compare its fingerprint with that of an admin, then add it to the profile.',
  },
  login_unbound: {
    cause:
      'The challenge is not bound to the certificate of this server, so nothing was signed. Someone may be in between.',
    mend: 'Behind a proxy, set `api_spki` on the orchestrator: [reverse proxies](guides/reverse-proxies.md).',
  },
  unreachable: {
    cause: 'Nothing answers at the address, or the connection broke.',
    mend: '`orch doctor` finds out where it ends: name, port, tunnel, firewall, service.',
  },
  protocol_mismatch: {
    cause: 'Agent and orchestrator have no common version of the protocol.',
    mend: 'Upgrade the older one: [upgrading.md](upgrading.md).',
  },
  protocol_violation: {
    cause: 'The other side sent a message that the protocol does not permit.',
    mend: 'Look for a proxy or another program on the port. If both ends are orch, report it with the log.',
  },
  pin_mismatch: {
    cause: 'The orchestrator has another key than the pinned one, so the agent does nothing for it.',
    mend: 'Correct the address, or put `identity.key` back. Only if the key was really replaced: `orch agent repin` on the machine.',
  },
  pin_missing: {
    cause: 'The agent does not know the key of the orchestrator.',
    mend: 'Start it with `--orchestrator-key KEY` or a token.',
  },
  agent_rejected: {
    cause: 'The orchestrator has rejected this agent.',
    mend: 'On the orchestrator: `orch agents remove NODE`. The agent then waits for approval again.',
  },
  data_dir_locked: {
    cause: 'Another process uses the data directory.',
    mend: 'Stop the other one: `systemctl status orch-serve orch-agent`.',
  },
  data_dir_invalid: {
    cause: 'The data directory is missing, not mounted, damaged or incomplete.',
    mend: 'The message says which. [backup.md](backup.md#a-data-directory-with-missing-files) has a remedy for each case.',
  },
  schema_too_new: {
    cause: 'A newer release has written the store.',
    mend: 'Start that release, or go back: [upgrading.md](upgrading.md#going-back).',
  },
  migration_failed: {
    cause: 'The store of an older release cannot be migrated. It is unchanged.',
    mend: 'Start the earlier release again, and report the message.',
  },
  bootstrap_required: {
    cause: 'The first start needs an operator.',
    mend: 'Run `orch operator init`, or name a key with `--bootstrap-key`.',
  },
  port_in_use: {
    cause: 'Another program listens on the port.',
    mend: 'Stop the other program, or choose another port: `agent_port`, `api_port`.',
  },
  native_module_missing: {
    cause: 'A native library is missing, or was not compiled for this Node.js.',
    mend: 'The hint says how to install it. Packages contain it: [install.md](install.md).',
  },
  profile_not_found: {
    cause: 'There is no profile with this name.',
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
    cause: 'The saved plan cannot be read or written, or other users can change it.',
    mend: 'Save the plan again with `orch plan --out FILE`, in a directory of your own.',
  },
  content_unavailable: {
    cause:
      'A file beside a module did not reach the machine: no room, no connection, or the orchestrator has it no more.',
    mend: 'The message says which. Apply again; what has come is kept, and the rest follows.',
  },
  file_not_found: {
    cause: 'A module names a file beside it that the orchestrator does not have.',
    mend: 'The command line sends files by itself. Other clients upload them first: `PUT /api/v1/files/{sha256}`.',
  },
  file_damaged: {
    cause: 'The uploaded parts of a file have another SHA-256 than the one that it was uploaded under.',
    mend: 'The file has changed while it was read, or the client has read it wrongly. Send it again.',
  },
  upgrade_failed: {
    cause: 'The agent could not fetch, check or start the new release, and runs the earlier one.',
    mend: 'The message says which, and the audit log keeps it (`agent.upgrade_failed`).',
  },
  upgrade_unsupported: {
    cause: 'This agent cannot replace its release.',
    mend: 'The message says why. Install the newer package on the machine.',
  },
  package_invalid: {
    cause: 'The package, its sum or its signature is missing or does not match.',
    mend: "Do not install it. Fetch it again, and compare the publisher's key.",
  },
  wrong_orchestrator: {
    cause: 'The file belongs to another orchestrator.',
    mend: 'Choose the profile of the orchestrator that made it: `--profile NAME`.',
  },
  confirmation_required: {
    cause: 'The command asks, and there is no terminal.',
    mend: 'Add `--yes` if you mean it.',
  },
  agent_running: {
    cause: 'An agent with this data directory is running.',
    mend: 'Stop it first: `systemctl stop orch-agent`.',
  },
  journal_corrupt: {
    cause: 'The journal of the agent is damaged.',
    mend: 'If a newer release wrote it, install that release again. A damaged journal is set aside by the agent itself: [security.md](security.md#secrets).',
  },
};
