/** Limits of the agent link (`docs/protocols/limits.md`). */
import { MAX_RUN_RESOURCES } from '../resources/run-size.js';

/** Sizes are bytes, times milliseconds. */
export const LINK_LIMITS = {
  /** Maximum frame from an agent to the orchestrator. */
  agentFrame: 1024 * 1024,
  /**
   * Limits of the JSON of a frame from an agent, so that a frame costs the orchestrator little more than its bytes. The
   * widest object of a valid message, a mapping in a fact, has 256 members, and a frame has no room for 100,000 valid ones.
   */
  agentJson: { depth: 32, members: 100_000, width: 256 },
  /**
   * Characters of unknown messages and members of an approved agent: those that are read at once, and those of a
   * second after that. Beyond it the orchestrator reads nothing more from the agent for a while.
   */
  ignored: { burst: 1024 * 1024, perSecond: 128 * 1024 },
  /** Maximum frame from the orchestrator to an agent. */
  orchestratorFrame: 4 * 1024 * 1024,
  /** Maximum frame from an agent that is not approved. */
  pendingFrame: 16 * 1024,
  /** Time after which a connection without hello is closed. */
  helloDeadline: 5_000,
  /** Bytes of frames that wait in the socket of an agent. Further messages are written only when these have gone out. */
  ahead: 256 * 1024,
  /** Approximate bytes of messages to an agent that are not written yet. An agent that reads nothing is cut off beyond it. */
  unsent: 256 * 1024 * 1024,
  /** Milliseconds without any progress after which an agent that does not read its messages is cut off. */
  stalledAfter: 60_000,
  pingInterval: 15_000,
  deadAfter: 45_000,
  /** Approximate size of the parts of a run, so that one frame never blocks the link for long. */
  partSize: 512 * 1024,
  /**
   * Maximum output of one script as JSON. Two streams of 300 KiB fit, each 256 KiB of text with few escapes, and a result with it
   * fits into a frame.
   */
  outputSize: 608 * 1024,
  /** Maximum characters of the facts of an agent beside its attributes, as JSON. */
  facts: 256 * 1024,
  /** Maximum resources of one run. */
  resources: MAX_RUN_RESOURCES,
} as const;

/** ALPN protocol of the agent link. */
export const LINK_ALPN = 'orch-agent/1';
/** Path of the WebSocket upgrade on the agent port. */
export const LINK_PATH = '/agent/v1';
/** Path of a release's tarball on the agent port, before its SHA-256. */
export const PACKAGE_PATH = '/packages/';
/** Path of a file beside a module on the agent port, before its SHA-256. */
export const FILE_PATH = '/files/';

/** WebSocket close codes; the reason text has details. */
export const CLOSE = {
  normal: 1000,
  goingAway: 1001,
  /** A message that the protocol does not allow. */
  violation: 1008,
  /** The orchestrator turned the agent away: rejected or removed. */
  rejected: 4403,
  /** Another connection with the same key is alive. */
  duplicate: 4409,
  /** The protocol versions do not meet. */
  version: 4426,
  /** The pending queue is full. */
  full: 4429,
} as const;
