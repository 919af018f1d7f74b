/**
 * The protocol version of the agent link: a rising integer. An orchestrator also speaks the version before its own, so
 * that a fleet is upgraded host by host.
 *
 * History:
 *   1  hello, status, attributes, runs (plan, apply, drift) in parts, results, inventory, acknowledgement, cancel; metrics; terminals.
 */
import { PROTOCOL_VERSION } from '../kernel/version.js';

/** The version that both sides speak, or null when they have none in common. `theirs` is what the agent said. */
export function commonVersion(theirs: number): number | null {
  if (theirs === PROTOCOL_VERSION) return theirs;
  return theirs === PROTOCOL_VERSION - 1 && theirs >= 1 ? theirs : null;
}
