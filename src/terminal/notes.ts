/** JSON payloads of hello, note and snapshot frames. They are never part of the output. */
import * as Type from 'typebox';
import { closed, nullable } from '../kernel/schema.js';
import { FORWARD_LIMITS } from './forward-limits.js';
import { TERMINAL_LIMITS } from './limits.js';

export { TERMINAL_SIGNALS, type TerminalSignal } from './limits.js';

const offset = Type.Integer({ minimum: 0, maximum: TERMINAL_LIMITS.offset });
const name = Type.String({ maxLength: 128 });
const version = Type.Integer({ minimum: 1 });

/** First frame of the agent on a terminal socket. */
export const AgentHelloSchema = closed({
  version,
  session_id: Type.String({ maxLength: 64 }),
  ticket: Type.String({ maxLength: 128 }),
  /** Output offset up to which the program has written. */
  produced: offset,
  /** Output offset from which the agent can still send. */
  kept_from: offset,
  /** Input was taken up to here. */
  taken: offset,
});
export type AgentHello = Type.Static<typeof AgentHelloSchema>;

/** First frame of the agent and of the client on the socket of a forward. The ticket of the client stands in the URL. */
export const ForwardHelloSchema = closed({
  version,
  session_id: Type.String({ maxLength: 64 }),
  ticket: Type.String({ maxLength: 128 }),
});
export type ForwardHello = Type.Static<typeof ForwardHelloSchema>;

/** Note of the orchestrator to the client of a forward: the agent is attached, and channels may be opened. */
export const ForwardNoteSchema = closed({ kind: Type.Literal('ready') });

/** Note of the agent to the orchestrator: what the session has copied so far. It goes into the audit log. */
export const CopiedNoteSchema = closed({
  kind: Type.Literal('copied'),
  files: Type.Integer({ minimum: 0 }),
  bytes: Type.Integer({ minimum: 0 }),
  failed: Type.Integer({ minimum: 0 }),
  sha256: nullable(Type.String({ pattern: '^[0-9a-f]{64}$' })),
  /** Why paths of the session were refused, the first ones; absent if none was. */
  refusals: Type.Optional(
    Type.Array(Type.String({ maxLength: FORWARD_LIMITS.refusal }), { maxItems: FORWARD_LIMITS.targets }),
  ),
});
export type CopiedNote = Type.Static<typeof CopiedNoteSchema>;

/** First frame of a client. */
export const ClientHelloSchema = closed({
  version,
  /** Null for a client that does not resume. */
  resume: nullable(
    closed({
      /** Secret of the last welcome, which proves that this is the same client. */
      secret: Type.String({ maxLength: 128 }),
      /** Output offset up to which the client received. */
      received: offset,
    }),
  ),
});
export type ClientHello = Type.Static<typeof ClientHelloSchema>;

export const TERMINAL_MODES = ['write', 'read'] as const;
/** The one client in mode `write` types, resizes and paces the output. Any number of clients may `read`. */
export type TerminalMode = (typeof TERMINAL_MODES)[number];

/** First note of the orchestrator: the state of the client. Output or a snapshot follows. */
const welcome = closed({
  kind: Type.Literal('welcome'),
  session_id: Type.String({ maxLength: 64 }),
  node_name: name,
  mode: Type.Enum(TERMINAL_MODES),
  /** Input offset up to which input was taken. The client resends input after it. */
  taken: offset,
  /** Secret for resuming. */
  secret: Type.String({ maxLength: 128 }),
  /** True if the output is recorded. */
  recorded: Type.Boolean(),
  /** Username of the writer; null without one. */
  writer: nullable(name),
  viewers: Type.Array(name),
});

/** The participants have changed. `mode` is the new mode of the receiver, `taken` as in the welcome. */
const people = closed({
  kind: Type.Literal('people'),
  mode: Type.Enum(TERMINAL_MODES),
  taken: offset,
  writer: nullable(name),
  viewers: Type.Array(name),
  /** Description for the operator: `ada joined to watch`, `ada took the pen`. */
  text: Type.String({ maxLength: 256 }),
});

/** The orchestrator lost its connection to the agent, or has it back. */
const agentLink = closed({ kind: Type.Literal('agent_link'), connected: Type.Boolean() });

/** The recording stopped, and the reason. The session continues without it. */
const recording = closed({ kind: Type.Literal('recording'), recorded: Type.Boolean(), text: Type.String() });

/** The session will end by itself after `seconds`, for the reason in `text`. */
const ending = closed({ kind: Type.Literal('ending'), seconds: Type.Integer({ minimum: 0 }), text: Type.String() });

/** A viewer asks for the pen. */
const penWanted = closed({ kind: Type.Literal('pen_wanted'), by: name });

/** Answer to `ask_latency`: round-trip time in milliseconds between orchestrator and agent; null when it is unknown. */
const latency = closed({ kind: Type.Literal('latency'), agent_ms: nullable(Type.Number({ minimum: 0 })) });

/** Notes of the orchestrator to a client. */
export const ServerNoteSchema = Type.Union([welcome, people, agentLink, recording, ending, penWanted, latency]);
export type ServerNote = Type.Static<typeof ServerNoteSchema>;

/** Notes of a client: redraw the screen, ask the writer for the pen, ask for the latency, end the session. */
export const ClientNoteSchema = Type.Union([
  closed({ kind: Type.Literal('redraw') }),
  closed({ kind: Type.Literal('ask_pen') }),
  closed({ kind: Type.Literal('ask_latency') }),
  closed({ kind: Type.Literal('close') }),
]);
export type ClientNote = Type.Static<typeof ClientNoteSchema>;

/** Head of a snapshot, which draws the screen as of output offset `offset`. */
export const SnapshotHeadSchema = closed({ cols: offset, rows: offset, offset });
export type SnapshotHead = Type.Static<typeof SnapshotHeadSchema>;
