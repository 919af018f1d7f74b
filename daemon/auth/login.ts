/** Login by challenge and signature, with rate limits on failures. */
import { operatorIdOf } from '../../src/identity/key-object.js';
import { makeBoundNonce } from '../../src/identity/login-binding.js';
import { isSignatureHex, signatureTest } from '../../src/identity/proof-of-key.js';
import { parsePublicKey } from '../../src/identity/public-key.js';
import { toSeconds, toTimestamp } from '../../src/kernel/clock.js';
import { Fault, isFault } from '../../src/kernel/fault.js';
import { isPublicKeyHex, type PublicKeyHex } from '../../src/kernel/ids.js';
import { hostNetworkOf } from '../../src/kernel/ip-network.js';
import type { Core } from '../core/core.js';
import { type DomainEvent, type Party, type RequestContext, SYSTEM } from '../core/domain-event.js';
import type { ChallengeStore } from './challenge-store.js';
import type { FailedLogins, LoginFailure } from './failed-logins.js';
import { findActiveOperator, isExpired, type OperatorRow, partyOfOperator } from './operator-store.js';
import type { RateLimiter } from './rate-limiter.js';
import type { SessionEvents } from './session-events.js';
import type { IssuedToken, Sessions } from './sessions.js';

interface LoginOptions extends Pick<Core, 'clock' | 'db' | 'randomBytes' | 'uow'> {
  readonly challenges: ChallengeStore;
  readonly sessions: Pick<Sessions, 'forget' | 'issue' | 'issueUnstored'>;
  readonly failures: FailedLogins;
  readonly sessionEvents: SessionEvents;
  /** Limit on failed challenges and verifications, by network. No limit ever refuses a successful login. */
  readonly failedRequests: RateLimiter;
  /** Limit on failed verifications, by network and key. */
  readonly rejections: RateLimiter;
  /**
   * Returns the SHA-256 of the SPKI of the certificate that clients see, 32 bytes; null over plain HTTP on loopback.
   */
  readonly serverSpki: () => Uint8Array | null;
}

/** Origin of a request; the actor is unknown before the login. */
type LoginContext = Pick<RequestContext, 'address' | 'requestId'>;

/** Party for an unknown key, which the log does not identify further. */
const STRANGER: Party = { id: 'unknown', name: 'unknown', type: 'operator' };

export class Login {
  private readonly options: LoginOptions;

  constructor(options: LoginOptions) {
    this.options = options;
  }

  /**
   * Returns a nonce to sign, 64 hex digits. An active operator's key always gets one, however many logins have
   * failed; otherwise anyone with the public key could lock its operator out.
   * Throws `rate_limited`, `invalid_public_key`, and `unknown_operator`, also for removed keys.
   */
  async challenge(publicKey: string, context: LoginContext): Promise<string> {
    const key = await this.wellFormed(context, () => formOfHexKey(publicKey));
    const { db, challenges, randomBytes, serverSpki } = this.options;
    const operator = await findActiveOperator(db, operatorIdOf(key));
    const make = () => makeBoundNonce({ random16: randomBytes(16), operatorKey: key, serverSpki: serverSpki() });
    if (operator) return Buffer.from(challenges.issue(key, make)).toString('hex');
    await this.count(context, [this.options.failedRequests, networkOf(context)]);
    // Also made for unknown keys, so that the response time reveals nothing.
    make();
    parseHexKey(publicKey);
    throw await this.failed('unknown_operator', STRANGER, context);
  }

  /**
   * Returns a session for the signature of one of the key's open nonces. Only failures count against the limits.
   * Beyond a limit a signature is only compared with the newest nonces, so that a refusal costs little and a valid
   * signature still succeeds.
   * Throws `rate_limited`, `invalid_public_key`, `invalid_signature`, `operator_expired` to the holder of the key, or
   * `signature_verification_failed` for every other reason.
   */
  async verify(publicKey: string, signature: string, context: LoginContext): Promise<IssuedToken> {
    const key = await this.wellFormed(context, () => {
      const form = formOfHexKey(publicKey);
      if (isSignatureHex(signature)) return form;
      throw new Fault('invalid_signature', 'signature is not an Ed25519 signature in hex', {
        hint: 'send the 128 hex digits of a signature over the 32 raw bytes of the nonce',
      });
    });
    const { challenges, failedRequests, rejections } = this.options;
    const network = networkOf(context);
    // Counted before the work and taken back after a success, so that parallel requests do not slip through.
    const attempt = attemptOf([failedRequests, network], [rejections, `${network} ${key}`]);
    const newest = attempt.refusal === null ? undefined : NEWEST;
    if (await challenges.claim(key, signatureTest(key, signature), newest)) {
      await this.refuseExpired(key, attempt, context);
      const issued = await this.open(key, context);
      if (issued) {
        attempt.takeBack();
        return issued;
      }
    }
    if (attempt.refusal !== null) throw await this.limited(attempt.refusal, context);
    parseHexKey(publicKey);
    throw await this.failed('signature_verification_failed', await this.claimed(key), context);
  }

  /** Throws `operator_expired` once the end of the operator has come; a valid signature is no failure that counts. */
  private async refuseExpired(key: PublicKeyHex, attempt: Attempt, context: LoginContext): Promise<void> {
    const operator = await findActiveOperator(this.options.db, operatorIdOf(key));
    if (operator === null || !isExpired(operator, this.options.clock.now())) return;
    attempt.takeBack();
    await this.record('operator_expired', partyOfOperator(operator), context);
    throw expired(operator);
  }

  /** Returns the result of `read`; an exception counts as a failure of the network. */
  private async wellFormed<T>(context: LoginContext, read: () => T): Promise<T> {
    try {
      return read();
    } catch (error) {
      await this.count(context, [this.options.failedRequests, networkOf(context)]);
      throw error;
    }
  }

  /**
   * Opens a session, or returns null when the operator was removed after the challenge. On a full disk the session is kept in
   * memory until the store takes it.
   */
  private async open(key: PublicKeyHex, context: LoginContext): Promise<IssuedToken | null> {
    const { db, uow, sessions, sessionEvents } = this.options;
    const { address } = context;
    let counted: Party | null = null;
    try {
      const issued = await uow.write(async (tx, emit) => {
        const operator = await findActiveOperator(tx, operatorIdOf(key));
        if (!operator) return null;
        const party = partyOfOperator(operator);
        const event = sessionEvents.single({ type: 'operator.login', party, context });
        counted = event === null ? party : null;
        if (event !== null) emit(event);
        return sessions.issue(tx, operator, address);
      });
      if (counted !== null) {
        sessions.forget();
        sessionEvents.count({ type: 'operator.login', party: counted, context });
      }
      return issued;
    } catch (error) {
      if (!isFault(error, 'store_unavailable')) throw error;
      // Throws as well while the store cannot even be read.
      const operator = await findActiveOperator(db, operatorIdOf(key));
      const issued = operator && sessions.issueUnstored(operator, address, loginEvent(operator, context));
      if (issued === null) throw error;
      return issued;
    }
  }

  private async claimed(key: PublicKeyHex): Promise<Party> {
    const operator = await findActiveOperator(this.options.db, operatorIdOf(key));
    return operator ? partyOfOperator(operator) : STRANGER;
  }

  private async count(context: LoginContext, limit: Limit): Promise<void> {
    const { refusal } = attemptOf(limit);
    if (refusal !== null) throw await this.limited(refusal, context);
  }

  private async limited(refusal: Fault, context: LoginContext): Promise<Fault> {
    await this.record('rate_limited', SYSTEM, context);
    return refusal;
  }

  private async failed(reason: keyof typeof ANSWERS, party: Party, context: LoginContext): Promise<Fault> {
    await this.record(reason, party, context);
    return ANSWERS[reason]();
  }

  private record(reason: LoginFailure, party: Party, { address, requestId }: LoginContext): Promise<void> {
    return this.options.failures.record({ reason, party, address, requestId });
  }
}

function loginEvent(operator: OperatorRow, { address, requestId }: LoginContext): DomainEvent {
  const party = partyOfOperator(operator);
  const metadata = { address, request_id: requestId };
  return { type: 'operator.login', actor: party, target: party, summary: `${party.name} logged in`, metadata };
}

/** Number of nonces that a signature is compared with beyond a limit. They cover the last 15 seconds of a flood. */
const NEWEST = 4;

/** A limiter and the subject whose events it counts. */
type Limit = readonly [limiter: RateLimiter, subject: string];

interface Attempt {
  /** Fault of the first limit that is used up; null when there is none. */
  readonly refusal: Fault | null;
  /** Takes back what was counted. */
  takeBack(): void;
}

/** Counts an attempt against every limit, or against none when one of them is used up. */
function attemptOf(...limits: readonly Limit[]): Attempt {
  const counted: (() => void)[] = [];
  const takeBack = () => {
    for (const undo of counted) undo();
  };
  try {
    for (const [limiter, subject] of limits) counted.push(limiter.take(subject));
    return { refusal: null, takeBack };
  } catch (error) {
    if (!isFault(error, 'rate_limited')) throw error;
    takeBack();
    return { refusal: error, takeBack: () => {} };
  }
}

/** Counts a whole IPv6 /64 as one network, because a client chooses its address within it freely. */
const networkOf = ({ address }: LoginContext): string => (address === null ? 'unknown' : hostNetworkOf(address));

const ANSWERS = {
  unknown_operator: () =>
    new Fault('unknown_operator', 'the public key belongs to no active operator', {
      hint: 'ask an admin to run: orch operator add KEY --username NAME',
    }),
  signature_verification_failed: () =>
    new Fault('signature_verification_failed', 'the signature does not verify, or its nonce was used or has expired', {
      hint: 'ask for a new challenge and sign that',
    }),
};

const expired = ({ username, expires_at }: OperatorRow): Fault =>
  new Fault('operator_expired', `the time of ${username} ended at ${toTimestamp(expires_at ?? 0)}`, {
    hint: `ask an admin to run: orch operator grant ${username} --expires 90d`,
    data: { expires_at: toSeconds(expires_at ?? 0) },
  });

/** Parses the hex of an Ed25519 key that is safe to trust. Throws `invalid_public_key` for anything else. */
export const parseHexKey = (text: string): PublicKeyHex => parsePublicKey(formOfHexKey(text), 'public_key');

/**
 * Returns the key in lower case after checking only its form. That suffices to look it up among keys checked when
 * they were added, and is a hundred times faster. Throws `invalid_public_key`.
 */
function formOfHexKey(text: string): PublicKeyHex {
  const key = text.toLowerCase();
  if (isPublicKeyHex(key)) return key;
  throw new Fault('invalid_public_key', 'public_key is not a public key in hex', {
    hint: 'send the 64 hex digits of a raw Ed25519 public key',
  });
}
