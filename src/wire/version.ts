/**
 * The protocol version of the agent link: a rising integer. An orchestrator also speaks the version before its own, so
 * that a fleet is upgraded host by host.
 *
 * A message or member that changes what an agent does belongs to a new version: its type gets a line in `SINCE`, and the
 * orchestrator sends it to no older agent. Agents since version 2, and orchestrators to approved agents, ignore types and members
 * of messages that they do not know: a release that adds one within a version raises `PROTOCOL_REVISION`.
 *
 * History:
 *   1  hello, status, attributes, runs (plan, apply, drift) in parts, results, inventory, acknowledgement, cancel.
 *   2  metrics, enrolment tokens, terminals.
 */
import { PROTOCOL_VERSION } from '../kernel/version.js';
import type { OrchestratorMessage } from './messages.js';

/**
 * Rises with each change that older programs of the same protocol version ignore: a new message, or a new member of a
 * message.
 */
export const PROTOCOL_REVISION = 11;

/** Protocol version that introduced each message of the orchestrator. */
const SINCE: Readonly<Record<OrchestratorMessage['type'], number>> = {
  status: 1,
  run: 1,
  run_part: 1,
  run_cancel: 1,
  run_resume: 1,
  run_ack: 1,
  run_confirmed: 2,
  token_verdict: 2,
  metrics_request: 2,
  facts_request: 2,
  packages_request: 2,
  terminal_open: 2,
  terminal_attach: 2,
  terminal_close: 2,
  forward_open: 2,
  forward_close: 2,
  upgrade: 2,
  upgrade_ack: 2,
};

/** True when agents of that version know messages of the type. */
export const isKnown = (version: number, type: OrchestratorMessage['type']): boolean => version >= SINCE[type];

/** Returns the common version of both ends, or null. `theirs` is the agent's version. */
export function commonVersion(theirs: number): number | null {
  if (theirs === PROTOCOL_VERSION) return theirs;
  return theirs === PROTOCOL_VERSION - 1 && theirs >= 1 ? theirs : null;
}

/** Returns the message without the members that agents of that version refuse: version 1 accepts no unknown member. */
export function fitTo(version: number, message: OrchestratorMessage): OrchestratorMessage {
  if (version > 1) return message;
  if (message.type === 'status') {
    const { reason: _, ...known } = message;
    return known;
  }
  if (message.type !== 'run') return message;
  const { short_results: _, ...known } = message;
  return known;
}
