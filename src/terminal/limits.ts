/** Numbers of the terminal protocol (`docs/protocols/limits.md`). Sizes are bytes, times milliseconds. */
export const TERMINAL_LIMITS = {
  /** Largest frame that the orchestrator and agents take, as the WebSocket counts it. */
  frame: 128 * 1024,
  /** The JSON of a frame: many times what any frame needs, and little enough to cost nothing. */
  json: { depth: 16, members: 4_096, width: 256 },
  /** Largest frame that an operator takes: a picture of a big, colourful screen. */
  pictureFrame: 8 * 1024 * 1024,
  /** Most output in one frame. */
  output: 64 * 1024,
  /** Output of one frame when there is much: what fits into a single record of TLS, so that a flood comes in pieces that delay nobody. */
  swiftOutput: 16 * 1024 - 64,
  /** Most input in one frame: a long paste is cut. */
  input: 16 * 1024,
  /** Input that the agent takes before its program has read it; more waits at the client. */
  inputBacklog: 1024 * 1024,
  /** Output that is neither stored nor parsed at most, when nobody else holds it back. */
  unstored: 4 * 1024 * 1024,
  /** The window of the one who writes: at first, at least and at most. */
  firstWindow: 128 * 1024,
  leastWindow: 64 * 1024,
  mostWindow: 1024 * 1024,
  /** A viewer that is further behind gets a picture of the screen instead of what it missed. */
  viewerLag: 1024 * 1024,
  /** A socket with more unsent bytes is closed: its peer did not keep to its window. */
  unsent: 4 * 1024 * 1024,
  /** Output kept for a client that comes back: while little flows, and in a flood. */
  idleBacklog: 256 * 1024,
  floodBacklog: 2 * 1024 * 1024,
  /** Both ends ping that often on each socket, and cut it after that much silence. */
  pingInterval: 10_000,
  deadAfter: 35_000,
  /** A ticket is good for that long, once. */
  ticketLife: 30_000,
  /** A program that an agent was asked for never starts later than that, counted from the request. */
  startDeadline: 30_000,
  /** The first frame of a socket has to come by then. */
  helloDeadline: 5_000,
  /** Where a stream may be at most: offsets near it can still be added to, and written in eight bytes. */
  offset: 2 ** 52,
  /** Columns and rows. */
  leastSize: 1,
  mostSize: 1_000,
} as const;

/** Version of the frames, named in every hello; another one is refused. */
export const TERMINAL_VERSION = 1;

/** The WebSocket subprotocol of both hops. */
export const TERMINAL_SUBPROTOCOL = 'orch-term.v1';

/** Path of a terminal's socket on the agent port. */
export const AGENT_TERMINAL_PATH = '/agent/v1/terminal';

/** WebSocket close codes of terminal sockets: they tell of the transport; how a program ended is told by the exit frame. */
export const TERMINAL_CLOSE = {
  /** All was said: after the exit, or when the client lets go. */
  done: 1000,
  /** The orchestrator stops: come back. */
  goingAway: 1001,
  /** A mistake of whoever closes it. */
  failed: 1011,
  /** A frame that the protocol does not allow. */
  violation: 4400,
  /** The ticket is unknown, used up or too old. */
  ticket: 4401,
  /** The operator may not do this any more. */
  revoked: 4403,
  /** There is no such session here. */
  unknown: 4404,
  /** Another socket has taken this one's place. */
  replaced: 4409,
  /** The peer did not keep to its window. */
  overrun: 4429,
} as const;

/** A width or height within what terminals may have. */
export const clampSize = (cells: number): number =>
  Math.min(Math.max(Math.trunc(cells), TERMINAL_LIMITS.leastSize), TERMINAL_LIMITS.mostSize);
