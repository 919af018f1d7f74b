/** The enrolment token that `orch agent connect` was given, and the key of the orchestrator that follows from it. */
import type { OfferedToken } from '../src/agent/first-contact.js';
import { parsePublicKey } from '../src/identity/public-key.js';
import { Fault } from '../src/kernel/fault.js';
import type { PublicKeyHex } from '../src/kernel/ids.js';
import { parseEnrolmentToken } from '../src/wire/enrolment-token.js';

export interface Credentials {
  readonly enrolmentToken: OfferedToken | undefined;
  readonly orchestratorKey: PublicKeyHex | undefined;
}

/**
 * @param key given beside the token
 * @throws Fault `usage`, which does not show the token
 */
export function credentialsOf(text: string | undefined, key: PublicKeyHex | undefined): Credentials {
  if (text === undefined) return { enrolmentToken: undefined, orchestratorKey: key };
  const token = parseEnrolmentToken(text.trim());
  if (token === null) {
    throw new Fault('usage', 'what was given as --token is no enrolment token', {
      hint: 'it begins with orch-enroll-v1. and has 129 characters; copy the whole line that "orch enroll create" printed',
    });
  }
  const orchestratorKey = parsePublicKey(token.orchestratorKey, 'the key in the enrolment token');
  if (key !== undefined && key !== orchestratorKey) {
    throw new Fault('usage', 'the enrolment token is of another orchestrator than --orchestrator-key says', {
      hint: `the token is of ${orchestratorKey}; leave --orchestrator-key out if that is the one`,
    });
  }
  hide(text.trim());
  return { enrolmentToken: { text: text.trim(), orchestratorKey }, orchestratorKey };
}

/** Everybody can list the words of a process, so the ones of this are replaced when the token is among them. */
function hide(token: string): void {
  if (process.argv.some((word) => word.includes(token))) process.title = 'orch agent connect';
}
