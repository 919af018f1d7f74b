/** Checks the protocol version of a hello before the rest of it, because other versions may have another format. */
import { Fault } from '../../src/kernel/fault.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { type Decode, UnknownMessage } from '../../src/wire/codec.js';
import { LINK_LIMITS } from '../../src/wire/limits.js';
import type { AgentMessage } from '../../src/wire/messages.js';
import { commonVersion } from '../../src/wire/version.js';

/**
 * Wraps a decoder, which then throws `protocol_mismatch` (`data.protocol_version`) for a hello of an unsupported
 * version.
 */
export const versionFirst =
  (decode: Decode<AgentMessage>): Decode<AgentMessage> =>
  (frame, onIgnored) => {
    try {
      const message = decode(frame, onIgnored);
      if (!(message instanceof UnknownMessage) && message.type === 'hello') requireCommon(message.protocol_version);
      return message;
    } catch (error) {
      requireCommon(versionOf(frame));
      throw error;
    }
  };

function requireCommon(theirs: number | null): void {
  if (theirs === null || commonVersion(theirs) !== null) return;
  const older = theirs > PROTOCOL_VERSION ? 'orchestrator' : 'agent';
  throw new Fault(
    'protocol_mismatch',
    `the agent speaks protocol version ${theirs}, the orchestrator ${PROTOCOL_VERSION}: upgrade the ${older}`,
    { data: { protocol_version: theirs } },
  );
}

/** Returns the version of a frame that looks like a hello, else null. */
function versionOf(frame: string): number | null {
  if (frame.length > LINK_LIMITS.pendingFrame) return null;
  try {
    const value: unknown = JSON.parse(frame);
    if (typeof value !== 'object' || value === null || !('type' in value) || value.type !== 'hello') return null;
    const version = 'protocol_version' in value ? value.protocol_version : null;
    return Number.isSafeInteger(version) ? Number(version) : null;
  } catch {
    return null;
  }
}
