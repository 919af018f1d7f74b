/** How a connection is closed: the WebSocket's code and a reason that fits into its frame. */
import type { Fault } from '../../src/kernel/fault.js';
import { CLOSE } from '../../src/wire/limits.js';

/** RFC 6455: a control frame has 125 bytes, two of them for the code. */
const REASON_BYTES = 123;

/** What the peer is told about a fault: its own mistakes in full, ours not at all. */
export function farewell({ code, message }: Fault): { readonly code: number; readonly reason: string } {
  switch (code) {
    case 'protocol_violation':
      return { code: CLOSE.violation, reason: message };
    case 'protocol_mismatch':
      return { code: CLOSE.version, reason: message };
    default:
      return { code: CLOSE.goingAway, reason: 'the orchestrator could not handle a message' };
  }
}

/** As much of the text as fits, never half a character: peers have a say in what it holds. */
export function closeReason(text: string): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(REASON_BYTES));
  return text.slice(0, read);
}
