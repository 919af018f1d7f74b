/**
 * Login nonces waiting for a signature, short-lived and in memory only. No nonce evicts another: requesting many of
 * them for an operator's public key must not lock that operator out. A key with many open nonces gets its newest one
 * again, and each nonce is accepted as often as it was issued.
 */
import type { Clock } from '../../src/kernel/clock.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';

interface ChallengeLimits {
  readonly lifetimeMs: number;
  /** Number of open nonces per key from which the newest one is reissued. */
  readonly perKey: number;
  /** Milliseconds for which a nonce may be reissued. A key has at most `perKey + lifetimeMs / sharedMs` open nonces. */
  readonly sharedMs: number;
}

/** At most 16 open nonces a key, because a wrong signature is compared with each of them. */
const CHALLENGE_LIMITS: ChallengeLimits = { lifetimeMs: 60_000, perKey: 4, sharedMs: 5_000 };

interface Challenge {
  readonly nonce: Uint8Array;
  /** Milliseconds on the monotonic clock. */
  readonly madeAt: number;
  /** Number of logins that may still use it. */
  uses: number;
}

export class ChallengeStore {
  private readonly clock: Clock;
  private readonly limits: ChallengeLimits;
  /** Challenges of each key, oldest first; keys without challenges are removed. */
  private readonly byKey = new Map<PublicKeyHex, Challenge[]>();

  constructor(clock: Clock, limits: ChallengeLimits = CHALLENGE_LIMITS) {
    this.clock = clock;
    this.limits = limits;
  }

  /** Number of open nonces of all keys. */
  get size(): number {
    return [...this.byKey.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** Returns a nonce for the key to sign: a new one, or the newest when the key has many. */
  issue(key: PublicKeyHex, make: () => Uint8Array): Uint8Array {
    this.dropExpired();
    const now = this.clock.monotonic();
    const own = this.byKey.get(key) ?? [];
    const youngest = own.at(-1);
    if (youngest && own.length >= this.limits.perKey && now - youngest.madeAt < this.limits.sharedMs) {
      youngest.uses += 1;
      return youngest.nonce;
    }
    const challenge = { nonce: make(), madeAt: now, uses: 1 };
    this.byKey.set(key, [...own, challenge]);
    return challenge.nonce;
  }

  /**
   * Returns true when `accepts` takes one of the key's open nonces, which uses it once. A failed attempt uses up
   * nothing, so it cannot spoil another login.
   * @param newest number of nonces to try, the newest first [default: all]
   */
  async claim(
    key: PublicKeyHex,
    accepts: (nonce: Uint8Array) => Promise<boolean>,
    newest = Number.POSITIVE_INFINITY,
  ): Promise<boolean> {
    this.dropExpired();
    // Newest first: a login follows its challenge at once.
    for (const challenge of (this.byKey.get(key) ?? []).toReversed().slice(0, newest)) {
      if (await accepts(challenge.nonce)) return this.use(key, challenge);
    }
    return false;
  }

  /** Returns false when another login used the nonce first, or it expired meanwhile. */
  private use(key: PublicKeyHex, challenge: Challenge): boolean {
    this.dropExpired();
    const own = this.byKey.get(key) ?? [];
    if (!own.includes(challenge)) return false;
    challenge.uses -= 1;
    if (challenge.uses === 0) {
      this.keep(
        key,
        own.filter((one) => one !== challenge),
      );
    }
    return true;
  }

  private dropExpired(): void {
    const before = this.clock.monotonic() - this.limits.lifetimeMs;
    for (const [key, own] of this.byKey) {
      const [oldest] = own;
      if (oldest && oldest.madeAt > before) continue;
      this.keep(
        key,
        own.filter(({ madeAt }) => madeAt > before),
      );
    }
  }

  private keep(key: PublicKeyHex, challenges: Challenge[]): void {
    if (challenges.length > 0) this.byKey.set(key, challenges);
    else this.byKey.delete(key);
  }
}
