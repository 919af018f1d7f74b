/** Every message of the agent link, one closed table per direction. No message names a node: the socket's key does. */
import * as Type from 'typebox';
import { closed, EnvironmentSchema, MetricsSampleSchema, nullable, optional } from '../kernel/schema.js';
import { DesiredResourceSchema, RemovalSchema } from '../resources/desired.js';
import { ErrorSchema, OutputSchema, ResourceResultSchema } from '../resources/result.js';
import { ENROLMENT_TOKEN_PATTERN, TOKEN_VERDICTS } from './enrolment-token.js';

const id = Type.String({ pattern: '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' });
const count = Type.Integer({ minimum: 0, maximum: 1_000_000 });
const sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });

/** Names and values of attributes as the agent found them. */
export const AttributesSchema = Type.Record(
  Type.String({ pattern: '^[a-z][a-z0-9_]{0,63}$' }),
  Type.String({ maxLength: 256 }),
  { maxProperties: 64, additionalProperties: false },
);

export const RUN_MODES = ['plan', 'apply', 'drift'] as const;

/** How a run ended on the agent. */
export const RUN_ENDS = ['succeeded', 'failed', 'cancelled', 'interrupted', 'refused'] as const;
export type RunEnd = (typeof RUN_ENDS)[number];

/** The result of one resource with what the orchestrator keeps beside it. */
export const RunItemSchema = closed({
  /** Position: desired resources first, then removals, in the order of the run. */
  index: count,
  result: ResourceResultSchema,
  /** Whether the thing was on the machine before this run first touched it; null when unknown. */
  existed: nullable(Type.Boolean()),
  /** What a script wrote. */
  output: optional(OutputSchema),
});
export type RunItem = Type.Static<typeof RunItemSchema>;

const hello = closed({
  type: Type.Literal('hello'),
  protocol_version: Type.Integer({ minimum: 1 }),
  agent_version: Type.String({ maxLength: 64 }),
  hostname: Type.String({ maxLength: 255 }),
  attributes: AttributesSchema,
  /** Sent only to an orchestrator that has proved the key in it. */
  enrolment_token: optional(Type.String({ pattern: ENROLMENT_TOKEN_PATTERN })),
  /** What a damaged or missing journal has taken with it, until an orchestrator has approved this connection. */
  journal_loss: optional(Type.String({ maxLength: 512 })),
});

const attributes = closed({ type: Type.Literal('attributes'), attributes: AttributesSchema });

/** Every run in the journal that has not been acknowledged; sent once after each approval of the connection. */
const inventory = closed({
  type: Type.Literal('inventory'),
  runs: Type.Array(
    closed({
      run_id: id,
      state: Type.Enum(['running', 'finished']),
      /** Results in the journal so far. */
      results: count,
    }),
    { maxItems: 10_000 },
  ),
});

/** The run is in the journal (an apply) or has begun (plan, drift). */
const runAccepted = closed({ type: Type.Literal('run_accepted'), run_id: id });

/** Results `from`, `from + 1`, …: positions in the sequence of results, not of resources. */
const runResults = closed({
  type: Type.Literal('run_results'),
  run_id: id,
  from: count,
  items: Type.Array(RunItemSchema, { minItems: 1, maxItems: 2_000 }),
});

const runFinished = closed({
  type: Type.Literal('run_finished'),
  run_id: id,
  end: Type.Enum(RUN_ENDS),
  /** How many results there are; the orchestrator asks again when it has fewer. */
  results: count,
  /** SHA-256 of what a plan observed and decided; null for the other modes. */
  observed: nullable(sha256),
  error: nullable(ErrorSchema),
});

/** The answer to `metrics_request`; null when the agent is told not to measure. */
const metrics = closed({
  type: Type.Literal('metrics'),
  request_id: count,
  sample: nullable(MetricsSampleSchema),
});

/** The answer to `terminal_open`. */
const terminalAnswer = closed({
  type: Type.Literal('terminal_answer'),
  session_id: id,
  /** The user of the machine that it runs as, and its shell; null when it was refused, the shell for a command too. */
  user: nullable(Type.String({ maxLength: 256 })),
  shell: nullable(Type.String({ maxLength: 4_096 })),
  error: nullable(ErrorSchema),
  /** A command gets the terminal that was asked for; agents of earlier versions do not say so, and have none for it. */
  tty: optional(Type.Boolean()),
});

/**
 * Every session that the agent holds, sent after each approval of the connection and whenever one of them has lost its
 * socket. Those whose program has ended stay until the orchestrator has all of their output.
 */
const terminals = closed({
  type: Type.Literal('terminals'),
  sessions: Type.Array(closed({ session_id: id, attached: Type.Boolean() }), { maxItems: 10_000 }),
});

/** What an agent may send, by type. */
export const AgentMessageSchemas = {
  hello,
  attributes,
  inventory,
  run_accepted: runAccepted,
  run_results: runResults,
  run_finished: runFinished,
  metrics,
  terminal_answer: terminalAnswer,
  terminals,
} as const;

/** What an agent that is not approved may send. */
export const PENDING_MESSAGES: ReadonlySet<AgentMessage['type']> = new Set(['hello']);

/** Where the agent stands; the first answer to hello, and again when it changes. */
const status = closed({
  type: Type.Literal('status'),
  status: Type.Enum(['pending', 'approved']),
  /** The version that both sides speak from now on. */
  protocol_version: Type.Integer({ minimum: 1 }),
  /** The name an operator gave, null while pending. */
  name: nullable(Type.String({ maxLength: 64 })),
});

/**
 * What became of the token in hello, before the status or the close that answers hello. Why one is not accepted is for those
 * who know its secret; to everybody else each is `unknown`. An approved agent needs none, so there is no word about it.
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
});

const runPart = closed({
  type: Type.Literal('run_part'),
  run_id: id,
  part: count,
  resources: Type.Array(DesiredResourceSchema),
  removals: Type.Array(RemovalSchema),
});

/** Stop at the next resource boundary; of a plan or drift check: at once. */
const runCancel = closed({ type: Type.Literal('run_cancel'), run_id: id });

/** Send results again from that position, and `run_finished` when the run has ended. Answers an inventory or fills a gap. */
const runResume = closed({ type: Type.Literal('run_resume'), run_id: id, from: count });

/** The results of a finished run are stored, or not wanted: the journal may forget it. */
const runAck = closed({ type: Type.Literal('run_ack'), run_id: id });

/** Send the newest measurement of the machine. */
const metricsRequest = closed({ type: Type.Literal('metrics_request'), request_id: count });

const ticket = Type.String({ minLength: 16, maxLength: 128 });
const cells = Type.Integer({ minimum: 1, maximum: 1_000 });

/** Start a program and dial back with the ticket: a shell on a terminal, or a command on pipes. */
const terminalOpen = closed({
  type: Type.Literal('terminal_open'),
  session_id: id,
  ticket,
  /** Who asked for it, for the environment and the log of the machine. */
  operator: Type.String({ maxLength: 128 }),
  kind: Type.Enum(['shell', 'exec']),
  cols: cells,
  rows: cells,
  /** The client's TERM; empty when it has none. */
  term: Type.String({ maxLength: 64 }),
  /** The shell that the operator wants; null for the one that the agent chooses. Shells only. */
  shell: nullable(Type.String({ maxLength: 4_096 })),
  /** Commands only. */
  command: nullable(Type.Array(Type.String({ maxLength: 131_072 }), { minItems: 1, maxItems: 1_024 })),
  timeout_secs: nullable(Type.Integer({ minimum: 1, maximum: 86_400 })),
  /** Its standard input is the client's; else it is empty. Commands only. */
  stdin: Type.Boolean(),
  /** Commands only: on a terminal, as a shell. The answer of an agent that can do so says `tty` too. */
  tty: optional(Type.Boolean()),
  /** Variables of the operator, from which the agent chooses; agents of earlier versions ignore them. */
  env: optional(EnvironmentSchema),
});

/** Dial back for a session that has no socket. */
const terminalAttach = closed({ type: Type.Literal('terminal_attach'), session_id: id, ticket });

/** The session is over for the orchestrator, or unknown to it: end its program and forget it. */
const terminalClose = closed({ type: Type.Literal('terminal_close'), session_id: id });

/** What an orchestrator may send, by type. */
export const OrchestratorMessageSchemas = {
  status,
  token_verdict: tokenVerdict,
  run,
  run_part: runPart,
  run_cancel: runCancel,
  run_resume: runResume,
  run_ack: runAck,
  metrics_request: metricsRequest,
  terminal_open: terminalOpen,
  terminal_attach: terminalAttach,
  terminal_close: terminalClose,
} as const;

type Messages<Table extends Record<string, Type.TSchema>> = { [K in keyof Table]: Type.Static<Table[K]> }[keyof Table];
export type AgentMessage = Messages<typeof AgentMessageSchemas>;
export type OrchestratorMessage = Messages<typeof OrchestratorMessageSchemas>;
export type AgentMessageOf<T extends AgentMessage['type']> = Extract<AgentMessage, { type: T }>;
export type OrchestratorMessageOf<T extends OrchestratorMessage['type']> = Extract<OrchestratorMessage, { type: T }>;
