/** All messages of the agent link, one closed table per direction. No message names a node, because the socket's key does. */
import * as Type from 'typebox';
import {
  FACT_LIMITS,
  OwnFactsSchema,
  PACKAGE_NAME,
  PackageVersionsSchema,
  PartedAttributesSchema,
  VolatileFactsSchema,
} from '../kernel/facts.js';
import { FORWARD_KINDS, SessionTargetSchema } from '../kernel/forward-target.js';
import { closed, EnvironmentSchema, MetricsSampleSchema, nullable, optional } from '../kernel/schema.js';
import { CheckReportSchema, DesiredCheckSchema, MAX_RUN_CHECKS } from '../resources/checks/check.js';
import { DesiredResourceSchema, RemovalSchema } from '../resources/desired.js';
import { CONFIRM_SECS, RestoredSchema } from '../resources/restored.js';
import { ErrorSchema, OutputSchema, ResourceResultSchema } from '../resources/result.js';
import { type Unchanged, UnchangedSchema } from '../resources/run-results.js';
import { ENROLMENT_TOKEN_PATTERN, TOKEN_VERDICTS } from './enrolment-token.js';

const id = Type.String({ pattern: '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' });
const count = Type.Integer({ minimum: 0, maximum: 1_000_000 });
const sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });

/** Versions of releases: safe in paths and on command lines. */
export const RELEASE_VERSION_PATTERN = '^[0-9][0-9A-Za-z.+~-]{0,63}$';
/** Maximum bytes of a release's tarball. */
export const RELEASE_BYTES_MAX = 512 * 1024 ** 2;

/** Names and values of the agent's attributes. */
export const AttributesSchema = Type.Record(
  Type.String({ pattern: '^[a-z][a-z0-9_]{0,63}$' }),
  Type.String({ maxLength: 256 }),
  { maxProperties: 64, additionalProperties: false },
);

/** `verify` runs only health checks; it goes to agents with that feature. */
const RUN_MODES = ['plan', 'apply', 'drift', 'verify'] as const;

/** How a run ended on the agent. `rolled_back`: a confirmed apply that the agent has undone. */
export const RUN_ENDS = ['succeeded', 'failed', 'cancelled', 'interrupted', 'refused', 'rolled_back'] as const;
export type RunEnd = (typeof RUN_ENDS)[number];

/** The result of one resource with data that the orchestrator stores beside it. */
export const RunItemSchema = closed({
  /** Position: desired resources first, then removals, in the order of the run. */
  index: count,
  result: ResourceResultSchema,
  /** True if the thing existed before this run; null when unknown, and for a creation that failed and left nothing. */
  existed: nullable(Type.Boolean()),
  /** Output of a script. */
  output: optional(OutputSchema),
});
export type RunItem = Type.Static<typeof RunItemSchema>;

/** An entry of `run_results`. */
export type RunEntry = RunItem | Unchanged;

const hello = closed({
  type: Type.Literal('hello'),
  protocol_version: Type.Integer({ minimum: 1 }),
  agent_version: Type.String({ maxLength: 64 }),
  hostname: Type.String({ maxLength: 255 }),
  attributes: AttributesSchema,
  /** Sent only to an orchestrator that has proved the key in the token. */
  enrolment_token: optional(Type.String({ pattern: ENROLMENT_TOKEN_PATTERN })),
  /** Loss of a damaged or missing journal, sent until an orchestrator has approved a connection. */
  journal_loss: optional(Type.String({ maxLength: 512 })),
});

const attributes = closed({ type: Type.Literal('attributes'), attributes: AttributesSchema });

/**
 * Facts beside the attributes: before the inventory after each approval of the connection, when they have changed, and when they
 * were requested. A change of volatile facts alone is not sent.
 */
const facts = closed({
  type: Type.Literal('facts'),
  parts: PartedAttributesSchema,
  volatile: VolatileFactsSchema,
  own: OwnFactsSchema,
  /** Why facts of one's own may be missing in `own`; null if these are all. */
  problem: nullable(Type.String({ maxLength: 512 })),
  /** ID of the request that this answers. */
  request_id: optional(count),
});

/**
 * Versions of the packages that the orchestrator asked for last: the answer, and again when the database of the package manager
 * has changed.
 */
const packages = closed({
  type: Type.Literal('packages'),
  /** Only of installed packages. */
  versions: PackageVersionsSchema,
  /** Why the package manager gave no versions; null if these are all. */
  problem: nullable(Type.String({ maxLength: 512 })),
  /** ID of the request that this answers. */
  request_id: optional(count),
});

/** All unacknowledged runs in the journal; sent once after each approval of the connection. */
const inventory = closed({
  type: Type.Literal('inventory'),
  runs: Type.Array(
    closed({
      run_id: id,
      state: Type.Enum(['running', 'finished']),
      /** Number of results in the journal. */
      results: count,
    }),
    { maxItems: 10_000 },
  ),
  /** Features beyond the first release of the agent's protocol version (`AgentFeature`); earlier agents send none. */
  features: optional(Type.Array(Type.String({ maxLength: 32 }), { maxItems: 64 })),
});

/** The apply has succeeded here: the agent ends this connection, dials anew, and asks for the confirmation. */
const runAwaiting = closed({
  type: Type.Literal('run_awaiting'),
  run_id: id,
  /** Seconds until the agent undoes the apply. */
  left_secs: Type.Integer({ minimum: 0, maximum: CONFIRM_SECS.maximum }),
});

/** Asks for `run_confirmed`, on a connection that was made after the apply. */
const runConfirm = closed({ type: Type.Literal('run_confirm'), run_id: id });

/** The run is in the journal (an apply) or has begun (plan, drift). */
const runAccepted = closed({ type: Type.Literal('run_accepted'), run_id: id });

/** Results `from`, `from + 1`, …: positions in the sequence of results, not of resources. */
const runResults = closed({
  type: Type.Literal('run_results'),
  run_id: id,
  from: count,
  /** Unchanged ones in short, if the orchestrator asked for that. */
  items: Type.Array(Type.Union([RunItemSchema, UnchangedSchema]), { minItems: 1, maxItems: 2_000 }),
});

const runFinished = closed({
  type: Type.Literal('run_finished'),
  run_id: id,
  end: Type.Enum(RUN_ENDS),
  /** Number of results; the orchestrator asks for missing ones. */
  results: count,
  /** SHA-256 of a plan's observations and decisions; null for other modes. */
  observed: nullable(sha256),
  error: nullable(ErrorSchema),
  /** Results of health checks, if the run had any and came to them. */
  checks: optional(Type.Array(CheckReportSchema, { maxItems: MAX_RUN_CHECKS })),
  /** Drift checks only: what is there instead of drifted resources, of at most the first thousand. */
  traces: optional(
    Type.Array(
      closed({
        /** Position of the resource in the run. */
        index: count,
        /** Hash that stays the same while the resource stays exactly as it is; null when nothing tells that. */
        observed: nullable(sha256),
        /** Unix milliseconds of the last change by the clock of the machine; null when unknown. */
        changed_at: nullable(Type.Integer()),
      }),
      { maxItems: 1_000 },
    ),
  ),
  /** Drift checks only: clock of the machine in Unix milliseconds. */
  clock: optional(Type.Integer()),
  /** The report of a restore: by `rolled_back`, and by an apply with `restore`. */
  restored: optional(RestoredSchema),
});

/** The answer to `metrics_request`; null when metrics are disabled. */
const metrics = closed({
  type: Type.Literal('metrics'),
  request_id: count,
  sample: nullable(MetricsSampleSchema),
});

/** The answer to `terminal_open`. */
const terminalAnswer = closed({
  type: Type.Literal('terminal_answer'),
  session_id: id,
  /** User and shell of the session; null when it was refused. The shell is also null for a command. */
  user: nullable(Type.String({ maxLength: 256 })),
  shell: nullable(Type.String({ maxLength: 4_096 })),
  error: nullable(ErrorSchema),
  /** True when a command gets the requested terminal; earlier agents do not send this and offer none. */
  tty: optional(Type.Boolean()),
  /** True when the command got its further words; earlier agents do not send this and drop them. */
  more_words: optional(Type.Boolean()),
  /** True when a command waits for its output as requested; earlier agents do not send this and never wait. */
  wait: optional(Type.Boolean()),
});

/**
 * All sessions of the agent, sent after each approval of the connection and whenever a session has lost its socket. Sessions
 * of ended programs stay until the orchestrator has all of their output.
 */
const terminals = closed({
  type: Type.Literal('terminals'),
  sessions: Type.Array(closed({ session_id: id, attached: Type.Boolean() }), { maxItems: 10_000 }),
});

/** The answer to `forward_open`; `error` is null when the agent permits all targets, and then it dials back. */
const forwardAnswer = closed({ type: Type.Literal('forward_answer'), session_id: id, error: nullable(ErrorSchema) });

const version = Type.String({ pattern: RELEASE_VERSION_PATTERN });

/** States of an upgrade on the agent. The last three are final. */
export const UPGRADE_STATES = ['downloading', 'waiting', 'switching', 'succeeded', 'failed', 'rolled_back'] as const;
export type UpgradeState = (typeof UPGRADE_STATES)[number];

/**
 * State of the agent's last upgrade: at each change, and after each approval of the connection until the orchestrator has
 * acknowledged a final state.
 */
const upgradeReport = closed({
  type: Type.Literal('upgrade_report'),
  upgrade_id: id,
  version,
  state: Type.Enum(UPGRADE_STATES),
  /** The work that the upgrade waits for, such as an apply; null otherwise. */
  waits_for: nullable(Type.String({ maxLength: 256 })),
  /** Why it failed or was rolled back; null otherwise. */
  error: nullable(ErrorSchema),
});

/** Messages of agents, by type. */
export const AgentMessageSchemas = {
  hello,
  attributes,
  facts,
  packages,
  inventory,
  run_accepted: runAccepted,
  run_awaiting: runAwaiting,
  run_confirm: runConfirm,
  run_results: runResults,
  run_finished: runFinished,
  metrics,
  terminal_answer: terminalAnswer,
  terminals,
  forward_answer: forwardAnswer,
  upgrade_report: upgradeReport,
} as const;

/** Messages that an agent may send before its approval. */
export const PENDING_MESSAGES: ReadonlySet<AgentMessage['type']> = new Set(['hello']);

/** The agent's status: the first answer to hello, sent again at each change. */
const status = closed({
  type: Type.Literal('status'),
  status: Type.Enum(['pending', 'approved']),
  /** The version that both sides speak from now on. */
  protocol_version: Type.Integer({ minimum: 1 }),
  /** Name given by an operator; null while pending. */
  name: nullable(Type.String({ maxLength: 64 })),
  /** Why an approved agent is pending again; absent for an agent that waits for its first approval. */
  reason: optional(Type.String({ maxLength: 512 })),
});

/**
 * The verdict about the token in hello, sent before the status or close. The reason of a refusal is only for agents that know
 * the secret; for others each token is `unknown`. Not sent to an approved agent, which needs no token.
 */
const tokenVerdict = closed({ type: Type.Literal('token_verdict'), verdict: Type.Enum(TOKEN_VERDICTS) });

/** Opens a run. `parts` messages of type `run_part` follow; the run begins with the last. */
const run = closed({
  type: Type.Literal('run'),
  run_id: id,
  mode: Type.Enum(RUN_MODES),
  /** Applies only: an agent refuses an apply whose (epoch, generation) is not above the highest it has seen. */
  epoch: count,
  generation: Type.Integer({ minimum: 0 }),
  resources: Type.Integer({ minimum: 0, maximum: 20_000 }),
  removals: Type.Integer({ minimum: 0, maximum: 20_000 }),
  parts: Type.Integer({ minimum: 1, maximum: 20_000 }),
  /** Applies only: refuse as `plan_stale` unless a plan of the machine gives this `observed` now. */
  expect: optional(sha256),
  /** True if the orchestrator takes unchanged results in short. */
  short_results: optional(Type.Boolean()),
  /** Health checks to run after the resources; sent only to agents with the feature `verify`. */
  verify: optional(Type.Array(DesiredCheckSchema, { maxItems: MAX_RUN_CHECKS })),
  /** Applies only: maximum entries that purges may delete together. Needs the feature `purge`. */
  may_purge: optional(Type.Integer({ minimum: 0 })),
  /** Applies only: undo the apply unless it succeeds and is confirmed within this time. Needs the feature `confirm`. */
  confirm_secs: optional(Type.Integer({ ...CONFIRM_SECS })),
  /** Applies only: keep what the apply replaces until the agent's next apply. Needs the feature `confirm`. */
  keep_snapshot: optional(Type.Boolean()),
  /** Applies only: the run whose kept snapshot is restored first. Needs the feature `confirm`. */
  restore: optional(id),
});

const runPart = closed({
  type: Type.Literal('run_part'),
  run_id: id,
  part: count,
  resources: Type.Array(DesiredResourceSchema),
  removals: Type.Array(RemovalSchema),
});

/** Stops an apply at the next resource, and a plan or drift check at once. */
const runCancel = closed({ type: Type.Literal('run_cancel'), run_id: id });

/** Requests results from a position on, and `run_finished` if the run has ended: after an inventory, or to fill a gap. */
const runResume = closed({ type: Type.Literal('run_resume'), run_id: id, from: count });

/** Allows the journal to forget a finished run, whose results are stored or not wanted. */
const runAck = closed({ type: Type.Literal('run_ack'), run_id: id });

/** Confirms an apply: the agent keeps it. Sent once the confirmation is stored. */
const runConfirmed = closed({ type: Type.Literal('run_confirmed'), run_id: id });

/** Requests the newest measurement of the machine. */
const metricsRequest = closed({ type: Type.Literal('metrics_request'), request_id: count });

/** Requests the facts of the machine, for which it runs the programs of its own facts again. */
const factsRequest = closed({ type: Type.Literal('facts_request'), request_id: count });

/** Requests the versions of these packages instead of those of an earlier request. The agent reports their changes until it disconnects. */
const packagesRequest = closed({
  type: Type.Literal('packages_request'),
  request_id: count,
  names: Type.Array(Type.String({ pattern: PACKAGE_NAME.source }), { maxItems: FACT_LIMITS.packages }),
});

const ticket = Type.String({ minLength: 16, maxLength: 128 });
const cells = Type.Integer({ minimum: 1, maximum: 1_000 });

const word = Type.String({ maxLength: 131_072 });
/** Maximum words of `command`. Earlier agents refuse a message with more. */
export const COMMAND_WORDS = 1_024;

/** Requests a program (a shell on a terminal, or a command on pipes), for which the agent dials back with the ticket. */
const terminalOpen = closed({
  type: Type.Literal('terminal_open'),
  session_id: id,
  ticket,
  /** Name of the operator, for the environment and the log of the machine. */
  operator: Type.String({ maxLength: 128 }),
  kind: Type.Enum(['shell', 'exec']),
  cols: cells,
  rows: cells,
  /** The client's TERM, or empty. */
  term: Type.String({ maxLength: 64 }),
  /** Wanted shell; null for the agent's choice. Shells only. */
  shell: nullable(Type.String({ maxLength: 4_096 })),
  /** Commands only. */
  command: nullable(Type.Array(word, { minItems: 1, maxItems: COMMAND_WORDS })),
  /** Words after those of `command`. An agent that takes them sets `more_words` in its answer. */
  more_words: optional(Type.Array(word, { maxItems: 65_536 })),
  timeout_secs: nullable(Type.Integer({ minimum: 1, maximum: 86_400 })),
  /** True when standard input comes from the client; else it is empty. Commands only. */
  stdin: Type.Boolean(),
  /** True to run a command on a terminal. An agent that can do so sets `tty` in its answer. */
  tty: optional(Type.Boolean()),
  /**
   * Commands on pipes only. True: wait until no process has the output open. An agent that can do so sets `wait` in its answer.
   * If present, the exit says whether the output was still open.
   */
  wait: optional(Type.Boolean()),
  /** Environment of the operator, from which the agent accepts some variables; earlier agents ignore it. */
  env: optional(EnvironmentSchema),
});

/** Requests that the agent dials back for a session without a socket. */
const terminalAttach = closed({ type: Type.Literal('terminal_attach'), session_id: id, ticket });

/** Ends the program of a session that is over for the orchestrator or unknown to it. */
const terminalClose = closed({ type: Type.Literal('terminal_close'), session_id: id });

/** Opens a session of connections to targets. Sent only to agents with the feature `forward`, and for copies with the feature `copy`. */
const forwardOpen = closed({
  type: Type.Literal('forward_open'),
  session_id: id,
  ticket,
  /** Username of the operator. */
  operator: Type.String({ maxLength: 128 }),
  kind: Type.Enum(FORWARD_KINDS),
  targets: Type.Array(SessionTargetSchema, { minItems: 1, maxItems: 32 }),
});

/** Ends a session and its connections. */
const forwardClose = closed({ type: Type.Literal('forward_close'), session_id: id });

/** Requests that the agent replaces its release by another, which it downloads from the agent port. Answered with `upgrade_report`. */
const upgrade = closed({
  type: Type.Literal('upgrade'),
  upgrade_id: id,
  version,
  /** SHA-256 of the release's tarball, which also names its path. */
  sha256,
  /** Bytes of the tarball. */
  size: Type.Integer({ minimum: 1, maximum: RELEASE_BYTES_MAX }),
  /** True to interrupt applies and terminals instead of waiting for their ends. */
  force: Type.Boolean(),
  /** Seconds to wait for applies and terminals. */
  wait_secs: Type.Integer({ minimum: 0, maximum: 86_400 }),
  /** Seconds in which the new release has to reach the orchestrator; else the old one returns. */
  trial_secs: Type.Integer({ minimum: 1, maximum: 3_600 }),
});

/** Allows the agent to forget the end of an upgrade, which is stored. */
const upgradeAck = closed({ type: Type.Literal('upgrade_ack'), upgrade_id: id });

/** Messages of orchestrators, by type. */
export const OrchestratorMessageSchemas = {
  status,
  token_verdict: tokenVerdict,
  run,
  run_part: runPart,
  run_cancel: runCancel,
  run_resume: runResume,
  run_ack: runAck,
  run_confirmed: runConfirmed,
  metrics_request: metricsRequest,
  facts_request: factsRequest,
  packages_request: packagesRequest,
  terminal_open: terminalOpen,
  terminal_attach: terminalAttach,
  terminal_close: terminalClose,
  forward_open: forwardOpen,
  forward_close: forwardClose,
  upgrade,
  upgrade_ack: upgradeAck,
} as const;

type Messages<Table extends Record<string, Type.TSchema>> = { [K in keyof Table]: Type.Static<Table[K]> }[keyof Table];
export type AgentMessage = Messages<typeof AgentMessageSchemas>;
export type OrchestratorMessage = Messages<typeof OrchestratorMessageSchemas>;
export type AgentMessageOf<T extends AgentMessage['type']> = Extract<AgentMessage, { type: T }>;
export type OrchestratorMessageOf<T extends OrchestratorMessage['type']> = Extract<OrchestratorMessage, { type: T }>;
