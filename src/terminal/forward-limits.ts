/** Numbers and names of forwards (`docs/protocols/forward.md`). Sizes are in bytes, times in milliseconds. */
import { TERMINAL_LIMITS } from './limits.js';

export const FORWARD_LIMITS = {
  /** Maximum data in a frame. A frame fits into one TLS record, so that small frames wait little. */
  data: 16 * 1024 - 64,
  /** Credit of each direction of a connection at its start. */
  window: 512 * 1024,
  /** Credit that a frame of data takes beside its bytes, because each frame takes memory of its own. */
  frameCost: 256,
  /** Consumed credit that is returned at once; less waits for more. */
  creditStep: 128 * 1024,
  /** Maximum connections of a session that are open at the same time. */
  channels: 128,
  /** Maximum connections through one agent, because each may take a window of its memory. */
  agentChannels: 512,
  /** Maximum targets of a session. */
  targets: 32,
  /** The orchestrator stops reading from one end while the other end has more unsent bytes. */
  unsent: 256 * 1024,
  /** Time limit for a target to accept a connection. */
  connectTimeout: 15_000,
  /** Time limit for the agent and the client to attach to a new session, as long as their tickets are valid. */
  attachDeadline: TERMINAL_LIMITS.ticketLife,
  /** The orchestrator ends a session with an end that has read nothing for this time although data waits for it. */
  stall: 300_000,
  /** Maximum bytes of the reason in a reset. */
  reason: 512,
  /** Maximum characters of the reason for which a path of a copy is refused. */
  refusal: 1024,
} as const;

/** WebSocket subprotocol on both hops. */
export const FORWARD_SUBPROTOCOL = 'orch-forward.v1';

/** Version of the frames, sent in each hello. */
export const FORWARD_VERSION = 1;

/** Path of forwards on the agent port. */
export const AGENT_FORWARD_PATH = '/agent/v1/forward';
