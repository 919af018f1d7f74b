/** Numbers and names of the terminal protocol (`docs/protocols/limits.md`). Sizes are in bytes, times in milliseconds. */
export const TERMINAL_LIMITS = {
  /** Maximum size of a WebSocket message that the orchestrator and agents accept. */
  frame: 128 * 1024,
  /** Limits of the JSON in a frame: far above the need of any frame, and cheap to parse. */
  json: { depth: 16, members: 4_096, width: 256 },
  /** Maximum size of a message that a client accepts: a snapshot of a large, colourful screen. */
  pictureFrame: 8 * 1024 * 1024,
  /** Maximum output in a frame. */
  output: 64 * 1024,
  /** Output in a frame of a flood. It fits into one TLS record, so that small frames wait little. */
  swiftOutput: 16 * 1024 - 64,
  /** Maximum input in a frame; a long paste is split. */
  input: 16 * 1024,
  /** Input that the agent accepts before the program reads it. More waits at the client. */
  inputBacklog: 1024 * 1024,
  /** Maximum output that the recording has not stored or the emulator has not parsed. */
  unstored: 4 * 1024 * 1024,
  /** Window of the writer: initial, minimum and maximum. */
  firstWindow: 128 * 1024,
  leastWindow: 64 * 1024,
  mostWindow: 1280 * 1024,
  /** A viewer that is further behind gets a snapshot instead of the missed output. */
  viewerLag: 1024 * 1024,
  /** The orchestrator closes a socket with more unsent bytes, because its peer ignored the window. */
  unsent: 4 * 1024 * 1024,
  /** Output kept for a client that reconnects: normally, and in a flood. */
  idleBacklog: 256 * 1024,
  floodBacklog: 2 * 1024 * 1024,
  /** Interval of pings on each socket, and the silence after which an end cuts the socket. */
  pingInterval: 10_000,
  deadAfter: 35_000,
  /** Lifetime of a ticket, which is valid once. */
  ticketLife: 30_000,
  /** Time after the request beyond which an agent never starts the program. */
  startDeadline: 30_000,
  /** Time limit for the first frame of a socket. */
  helloDeadline: 5_000,
  /** Maximum offset in a stream. Sums of offsets near it stay exact and fit into eight bytes. */
  offset: 2 ** 52,
  /** Minimum time between two sizes of a terminal, because programs redraw at each and a dragged window sends hundreds. */
  resizePause: 50,
  /** Minimum and maximum of columns and rows. */
  leastSize: 1,
  mostSize: 1_000,
} as const;

/** Version of the frames, sent in every hello. A hello with another version is refused. */
export const TERMINAL_VERSION = 1;

/** WebSocket subprotocol on both hops. */
export const TERMINAL_SUBPROTOCOL = 'orch-term.v1';

/** Path of terminal sockets on the agent port. */
export const AGENT_TERMINAL_PATH = '/agent/v1/terminal';

/** WebSocket close codes of terminal sockets. They describe the transport; the exit frame describes the end of the program. */
export const TERMINAL_CLOSE = {
  /** Normal end: after the exit frame, or when the client detaches. */
  done: 1000,
  /** The orchestrator stops; the peer should reconnect. */
  goingAway: 1001,
  /** An internal error at the end that closes. */
  failed: 1011,
  /** The peer sent a frame that the protocol does not allow. */
  violation: 4400,
  /** The ticket is unknown, used or expired. */
  ticket: 4401,
  /** The operator lost the right to use the session. */
  revoked: 4403,
  /** The session does not exist. */
  unknown: 4404,
  /** Another socket replaced this one. */
  replaced: 4409,
  /** The peer ignored its window. */
  overrun: 4429,
} as const;

/** Clamps a number of columns or rows to the limits. */
export const clampSize = (cells: number): number =>
  Math.min(Math.max(Math.trunc(cells), TERMINAL_LIMITS.leastSize), TERMINAL_LIMITS.mostSize);

/** Signals that a client may send to the foreground process group. They are here because the agent needs no schema for them. */
export const TERMINAL_SIGNALS = ['INT', 'TERM', 'HUP', 'QUIT', 'KILL'] as const;

export type TerminalSignal = (typeof TERMINAL_SIGNALS)[number];
