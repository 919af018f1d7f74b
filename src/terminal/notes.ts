/** What is said beside the stream of a terminal, as JSON: the first frames, and the notes that are never printed into it. */
import * as Type from 'typebox';
import { closed, nullable } from '../kernel/schema.js';
import { TERMINAL_LIMITS } from './limits.js';

export { TERMINAL_SIGNALS, type TerminalSignal } from './signals.js';

const offset = Type.Integer({ minimum: 0, maximum: TERMINAL_LIMITS.offset });
const name = Type.String({ maxLength: 128 });
const version = Type.Integer({ minimum: 1 });

/** The agent's first frame on a terminal's socket. */
export const AgentHelloSchema = closed({
  version,
  session_id: Type.String({ maxLength: 64 }),
  ticket: Type.String({ maxLength: 128 }),
  /** Output that exists so far ends here. */
  produced: offset,
  /** Output from here on can still be sent. */
  kept_from: offset,
  /** Input was taken up to here. */
  taken: offset,
});
export type AgentHello = Type.Static<typeof AgentHelloSchema>;

/** The operator's first frame. */
export const ClientHelloSchema = closed({
  version,
  /** Null for one that attaches anew. */
  resume: nullable(
    closed({
      /** As the welcome before gave it: proves that this is the same client. */
      secret: Type.String({ maxLength: 128 }),
      /** Output was received up to here. */
      received: offset,
    }),
  ),
});
export type ClientHello = Type.Static<typeof ClientHelloSchema>;

export const TERMINAL_MODES = ['write', 'read'] as const;
/** `write` holds the pen: types, resizes, and paces the output. Any number may `read`. */
export type TerminalMode = (typeof TERMINAL_MODES)[number];

/** From the orchestrator, first: where the client stands. Output or a snapshot follows. */
const welcome = closed({
  kind: Type.Literal('welcome'),
  session_id: Type.String({ maxLength: 64 }),
  node_name: name,
  mode: Type.Enum(TERMINAL_MODES),
  /** Input was taken up to here: what the client has sent beyond it is to be sent again. */
  taken: offset,
  /** To be shown when it comes back. */
  secret: Type.String({ maxLength: 128 }),
  /** Everything shown is written to a transcript. */
  recorded: Type.Boolean(),
  /** Who holds the pen; null when nobody does. */
  writer: nullable(name),
  viewers: Type.Array(name),
});

/** Who is there has changed. `mode` is the receiver's own from now on, `taken` as in the welcome. */
const people = closed({
  kind: Type.Literal('people'),
  mode: Type.Enum(TERMINAL_MODES),
  taken: offset,
  writer: nullable(name),
  viewers: Type.Array(name),
  /** What happened, for people: `ada joined to watch`, `ada took the pen`. */
  text: Type.String({ maxLength: 256 }),
});

/** The orchestrator has lost its connection to the agent's end, or has it again. */
const agentLink = closed({ kind: Type.Literal('agent_link'), connected: Type.Boolean() });

/** The recording has stopped, and why; the session goes on without one. */
const recording = closed({ kind: Type.Literal('recording'), recorded: Type.Boolean(), text: Type.String() });

/** The session ends by itself in so many seconds unless that changes. */
const ending = closed({ kind: Type.Literal('ending'), seconds: Type.Integer({ minimum: 0 }), text: Type.String() });

/** Somebody who watches asks for the pen. */
const penWanted = closed({ kind: Type.Literal('pen_wanted'), by: name });

/** Answers `ask_latency`: milliseconds there and back between the orchestrator and the agent; null when not known. */
const latency = closed({ kind: Type.Literal('latency'), agent_ms: nullable(Type.Number({ minimum: 0 })) });

/** From the orchestrator to an operator. */
export const ServerNoteSchema = Type.Union([welcome, people, agentLink, recording, ending, penWanted, latency]);
export type ServerNote = Type.Static<typeof ServerNoteSchema>;

/** From an operator: draw the screen anew, ask the writer for the pen, ask for the latency, end the session. */
export const ClientNoteSchema = Type.Union([
  closed({ kind: Type.Literal('redraw') }),
  closed({ kind: Type.Literal('ask_pen') }),
  closed({ kind: Type.Literal('ask_latency') }),
  closed({ kind: Type.Literal('close') }),
]);
export type ClientNote = Type.Static<typeof ClientNoteSchema>;

/** What a snapshot draws: the screen as it was when the output had come to `offset`. */
export const SnapshotHeadSchema = closed({ cols: offset, rows: offset, offset });
export type SnapshotHead = Type.Static<typeof SnapshotHeadSchema>;
