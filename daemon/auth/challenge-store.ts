/** Nonces that wait to be signed, in memory only: single use, short-lived, few of one key, bounded in all. */
import type { Clock } from '../../src/kernel/clock.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';

export interface ChallengeLimits {
  readonly lifetimeMs: number;
  readonly perKey: number;
  readonly total: number;
}

export const CHALLENGE_LIMITS: ChallengeLimits = { lifetimeMs: 60_000, perKey: 5, total: 10_000 };

interface Challenge {
  readonly key: PublicKeyHex;
  readonly nonce: Uint8Array;
  /** On the monotonic clock. */
  readonly expiresAt: number;
}

export class ChallengeStore {
  private readonly clock: Clock;
  private readonly limits: ChallengeLimits;
  /** Oldest first, as all live for the same time. */
  private readonly challenges = new Set<Challenge>();
  private readonly byKey = new Map<PublicKeyHex, Challenge[]>();

  constructor(clock: Clock, limits: ChallengeLimits = CHALLENGE_LIMITS) {
    this.clock = clock;
    this.limits = limits;
  }

  get size(): number {
    return this.challenges.size;
  }

  /** Takes the place of the key's oldest one when it has too many, and of the oldest of all when the store is full. */
  add(key: PublicKeyHex, nonce: Uint8Array): void {
    this.dropExpired();
    const challenge = { key, nonce, expiresAt: this.clock.monotonic() + this.limits.lifetimeMs };
    const own = this.byKey.get(key) ?? [];
    if (own.length >= this.limits.perKey) this.drop(own[0]);
    if (this.challenges.size >= this.limits.total) this.drop(this.challenges.values().next().value);
    this.challenges.add(challenge);
    this.byKey.set(key, [...(this.byKey.get(key) ?? []), challenge]);
  }

  /**
   * True when one of the key's open nonces is accepted. Each attempt uses one up: the accepted one, else the oldest; the
   * others stay for logins that go on beside this one.
   */
  claim(key: PublicKeyHex, accepts: (nonce: Uint8Array) => boolean): boolean {
    this.dropExpired();
    const open = this.byKey.get(key) ?? [];
    let used = open[0];
    try {
      const accepted = open.find(({ nonce }) => accepts(nonce));
      used = accepted ?? used;
      return accepted !== undefined;
    } finally {
      this.drop(used);
    }
  }

  private dropExpired(): void {
    const now = this.clock.monotonic();
    for (const challenge of this.challenges) {
      if (challenge.expiresAt > now) return;
      this.drop(challenge);
    }
  }

  private drop(challenge: Challenge | undefined): void {
    if (!challenge || !this.challenges.delete(challenge)) return;
    const rest = (this.byKey.get(challenge.key) ?? []).filter((other) => other !== challenge);
    if (rest.length > 0) this.byKey.set(challenge.key, rest);
    else this.byKey.delete(challenge.key);
  }
}
