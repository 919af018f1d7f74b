import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChallengeStore } from '../../daemon/auth/challenge-store.js';
import { isPublicKeyHex, type PublicKeyHex } from '../../src/kernel/ids.js';
import { ManualClock } from '../store/support.js';

function key(digit: string): PublicKeyHex {
  const hex = digit.repeat(64);
  if (!isPublicKeyHex(hex)) throw new Error(`${hex} is no key`);
  return hex;
}
const nonce = (n: number): Uint8Array => Buffer.from(String(n));
/** Accepts the nonce that was signed, as a verification does. */
const signed = (n: number) => (candidate: Uint8Array) => Buffer.from(candidate).toString() === String(n);

describe('a challenge', () => {
  it('is used once', () => {
    const store = new ChallengeStore(new ManualClock());
    store.add(key('a'), nonce(1));
    expect(store.claim(key('a'), signed(1))).toBe(true);
    expect(store.claim(key('a'), signed(1))).toBe(false);
    expect(store.size).toBe(0);
  });

  it('belongs to its key', () => {
    const store = new ChallengeStore(new ManualClock());
    store.add(key('a'), nonce(1));
    expect(store.claim(key('b'), signed(1))).toBe(false);
    expect(store.claim(key('a'), signed(1))).toBe(true);
  });

  it('is over after a minute, whatever the wall clock says', () => {
    const clock = new ManualClock();
    const store = new ChallengeStore(clock);
    store.add(key('a'), nonce(1));
    clock.setWall(0);
    clock.advance(59_999);
    store.add(key('a'), nonce(2));
    clock.advance(1);
    expect(store.claim(key('a'), signed(1))).toBe(false);
    store.add(key('a'), nonce(3));
    expect(store.claim(key('a'), signed(3))).toBe(true);
  });

  it('is used up by a wrong signature, the oldest first, so that a login beside it goes on', () => {
    const store = new ChallengeStore(new ManualClock());
    for (const n of [1, 2, 3]) store.add(key('a'), nonce(n));
    expect(store.claim(key('a'), () => false)).toBe(false);
    expect(store.claim(key('a'), signed(3))).toBe(true);
    expect(store.claim(key('a'), signed(1))).toBe(false);
    expect(store.size).toBe(0);
  });

  it('is used up when its verification throws', () => {
    const store = new ChallengeStore(new ManualClock());
    store.add(key('a'), nonce(1));
    const claim = () =>
      store.claim(key('a'), () => {
        throw new Error('no');
      });
    expect(claim).toThrow('no');
    expect(store.size).toBe(0);
  });

  it('makes room: the sixth of a key takes the place of its oldest, one too many in all that of the oldest of all', () => {
    const store = new ChallengeStore(new ManualClock(), { lifetimeMs: 60_000, perKey: 5, total: 7 });
    for (const n of [1, 2, 3, 4, 5, 6]) store.add(key('a'), nonce(n));
    expect(store.size).toBe(5);
    for (const n of [7, 8]) store.add(key('b'), nonce(n));
    store.add(key('c'), nonce(9));
    expect(store.size).toBe(7);
    expect([1, 2].map((n) => store.claim(key('d'), signed(n)))).toEqual([false, false]);
    expect(store.claim(key('a'), signed(6))).toBe(true);
    expect(store.claim(key('a'), signed(2))).toBe(false);
    expect(store.claim(key('b'), signed(7))).toBe(true);
  });

  it('is bounded to ten thousand, each new one in next to no time', () => {
    const store = new ChallengeStore(new ManualClock());
    for (let n = 0; n < 20_000; n += 1) store.add(key((n % 16).toString(16)), nonce(n));
    expect(store.size).toBe(16 * 5);
    const many = new ChallengeStore(new ManualClock(), { lifetimeMs: 60_000, perKey: 1_000_000, total: 100 });
    for (let n = 0; n < 1000; n += 1) many.add(key((n % 16).toString(16)), nonce(n));
    expect(many.size).toBe(100);
  });
});

/** The challenges that have to be open, oldest first. */
interface Model {
  now: number;
  open: { readonly key: PublicKeyHex; readonly n: number; readonly until: number }[];
}
interface Real {
  readonly store: ChallengeStore;
  readonly clock: ManualClock;
}
type Command = fc.Command<Model, Real>;

const LIMITS = { lifetimeMs: 100, perKey: 3, total: 7 };
const expire = (model: Model) => {
  model.open = model.open.filter(({ until }) => until > model.now);
};

class Add implements Command {
  readonly key: PublicKeyHex;
  readonly n: number;

  constructor(key: PublicKeyHex, n: number) {
    this.key = key;
    this.n = n;
  }

  check = () => true;

  run(model: Model, { store }: Real): void {
    expire(model);
    store.add(this.key, nonce(this.n));
    const own = model.open.filter(({ key }) => key === this.key);
    if (own.length === LIMITS.perKey) model.open = model.open.filter((one) => one !== own[0]);
    if (model.open.length === LIMITS.total) model.open.shift();
    model.open.push({ key: this.key, n: this.n, until: model.now + LIMITS.lifetimeMs });
    expect(store.size).toBe(model.open.length);
  }

  toString = () => `add(${this.key[0]}, ${this.n})`;
}

class Claim implements Command {
  readonly key: PublicKeyHex;
  readonly n: number;

  constructor(key: PublicKeyHex, n: number) {
    this.key = key;
    this.n = n;
  }

  check = () => true;

  run(model: Model, { store }: Real): void {
    expire(model);
    const own = model.open.filter(({ key }) => key === this.key);
    const match = own.find(({ n }) => n === this.n);
    expect(store.claim(this.key, signed(this.n))).toBe(match !== undefined);
    model.open = model.open.filter((one) => one !== (match ?? own[0]));
    expect(store.size).toBe(model.open.length);
  }

  toString = () => `claim(${this.key[0]}, ${this.n})`;
}

class Wait implements Command {
  readonly ms: number;

  constructor(ms: number) {
    this.ms = ms;
  }

  check = () => true;

  run(model: Model, { clock }: Real): void {
    clock.advance(this.ms);
    model.now += this.ms;
  }

  toString = () => `wait(${this.ms})`;
}

describe('the challenge store', () => {
  it('does what its model does, in any sequence (property)', () => {
    const keys = fc.constantFrom(...['a', 'b', 'c', 'd'].map(key));
    const numbers = fc.integer({ min: 0, max: 8 });
    const commands = fc.commands(
      [
        fc.tuple(keys, numbers).map((args) => new Add(...args)),
        fc.tuple(keys, numbers).map((args) => new Claim(...args)),
        fc.integer({ min: 1, max: 120 }).map((ms) => new Wait(ms)),
      ],
      { size: '+1' },
    );
    fc.assert(
      fc.property(commands, (sequence) => {
        const clock = new ManualClock();
        const setup = () => ({
          model: { now: 0, open: [] },
          real: { clock, store: new ChallengeStore(clock, LIMITS) },
        });
        fc.modelRun(setup, sequence);
      }),
      { numRuns: 500 },
    );
  });
});
