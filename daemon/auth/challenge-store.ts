/**
 * Nonces that wait to be signed, in memory only and short-lived. No nonce displaces another: whoever asks for many of them for
 * the public key of an operator must not keep that operator out. A key that has many open nonces gets its youngest one again,
 * and each nonce is accepted as often as it was handed out.
 */
import type { Clock } from '../../src/kernel/clock.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';

interface ChallengeLimits {
  readonly lifetimeMs: number;
  /** Open nonces of a key from which on its youngest one is handed out again. */
  readonly perKey: number;
  /** How long a nonce is handed out again. A key has at most `perKey + lifetimeMs / sharedMs` open nonces. */
  readonly sharedMs: number;
}

const CHALLENGE_LIMITS: ChallengeLimits = { lifetimeMs: 60_000, perKey: 64, sharedMs: 2_000 };

interface Challenge {
  readonly nonce: Uint8Array;
  /** On the monotonic clock. */
  readonly madeAt: number;
  /** How many logins may still use it. */
  uses: number;
}

export class ChallengeStore {
  private readonly clock: Clock;
  private readonly limits: ChallengeLimits;
  /** Oldest first; no key without a challenge. */
  private readonly byKey = new Map<PublicKeyHex, Challenge[]>();

  constructor(clock: Clock, limits: ChallengeLimits = CHALLENGE_LIMITS) {
    this.clock = clock;
    this.limits = limits;
  }

  /** Open nonces of all keys. */
  get size(): number {
    return [...this.byKey.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** Returns a nonce of the key to sign: a new one, or the youngest of a key that has many. */
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
   * True when `accepts` takes one of the key's open nonces, of which this is a use. An attempt that fails uses up nothing, so
   * that it does not spoil the login of another.
   */
  async claim(key: PublicKeyHex, accepts: (nonce: Uint8Array) => Promise<boolean>): Promise<boolean> {
    this.dropExpired();
    // Youngest first: a login follows its challenge at once.
    for (const challenge of (this.byKey.get(key) ?? []).toReversed()) {
      if (await accepts(challenge.nonce)) return this.use(key, challenge);
    }
    return false;
  }

  /** False when another login was faster, or the nonce has expired meanwhile. */
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
