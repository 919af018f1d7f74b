import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChallengeStore } from '../../daemon/auth/challenge-store.js';
import { isPublicKeyHex, type PublicKeyHex } from '../../src/kernel/ids.js';
import { ManualClock } from '../support/database.js';

function key(digit: string): PublicKeyHex {
  const hex = digit.repeat(64);
  if (!isPublicKeyHex(hex)) throw new Error(`${hex} is no key`);
  return hex;
}
const nonce = (n: number): Uint8Array => Buffer.from(String(n));
/** Accepts the nonce that was signed, as a verification does. */
const signed = (n: number) => async (candidate: Uint8Array) => Buffer.from(candidate).toString() === String(n);

/** The number of the nonce that the key gets when `n` is the next new one. */
const issue = (store: ChallengeStore, to: PublicKeyHex, n: number): number =>
  Number(Buffer.from(store.issue(to, () => nonce(n))).toString());

describe('a challenge', () => {
  it('is used once', async () => {
    const store = new ChallengeStore(new ManualClock());
    issue(store, key('a'), 1);
    expect(await store.claim(key('a'), signed(1))).toBe(true);
    expect(await store.claim(key('a'), signed(1))).toBe(false);
    expect(store.size).toBe(0);
  });

  it('is used once when two claim it at the same time', async () => {
    const store = new ChallengeStore(new ManualClock());
    issue(store, key('a'), 1);
    const claims = await Promise.all([1, 1, 1].map((n) => store.claim(key('a'), signed(n))));
    expect(claims.filter((claim) => claim)).toHaveLength(1);
  });

  it('belongs to its key', async () => {
    const store = new ChallengeStore(new ManualClock());
    issue(store, key('a'), 1);
    expect(await store.claim(key('b'), signed(1))).toBe(false);
    expect(await store.claim(key('a'), signed(1))).toBe(true);
  });

  it('is over after a minute, whatever the wall clock says', async () => {
    const clock = new ManualClock();
    const store = new ChallengeStore(clock);
    issue(store, key('a'), 1);
    clock.setWall(0);
    clock.advance(59_999);
    issue(store, key('a'), 2);
    clock.advance(1);
    expect(await store.claim(key('a'), signed(1))).toBe(false);
    issue(store, key('a'), 3);
    expect(await store.claim(key('a'), signed(3))).toBe(true);
  });

  it('is over when it expires while its signature is verified', async () => {
    const clock = new ManualClock();
    const store = new ChallengeStore(clock);
    issue(store, key('a'), 1);
    const claim = store.claim(key('a'), async () => {
      clock.advance(60_000);
      return true;
    });
    expect(await claim).toBe(false);
  });

  it('outlives wrong signatures and verifications that throw, so that no client spoils the login of another', async () => {
    const store = new ChallengeStore(new ManualClock());
    issue(store, key('a'), 1);
    for (let n = 0; n < 100; n += 1) expect(await store.claim(key('a'), async () => false)).toBe(false);
    await expect(store.claim(key('a'), () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await store.claim(key('a'), signed(1))).toBe(true);
  });

  it('is compared with as many of the newest as the caller asks for', async () => {
    const clock = new ManualClock();
    const store = new ChallengeStore(clock);
    for (let n = 1; n <= 8; n += 1) {
      issue(store, key('a'), n);
      clock.advance(5_000);
    }
    const tried: string[] = [];
    const refuse = async (candidate: Uint8Array) => {
      tried.push(Buffer.from(candidate).toString());
      return false;
    };
    expect(await store.claim(key('a'), refuse, 3)).toBe(false);
    expect(tried).toEqual(['8', '7', '6']);
  });

  it('outlives a flood of challenges of its key, which memory does not notice', async () => {
    const clock = new ManualClock();
    const store = new ChallengeStore(clock);
    const first = issue(store, key('a'), 1);
    for (let n = 2; n < 10_000; n += 1) {
      issue(store, key('a'), n);
      if (n % 1_000 === 0) clock.advance(1_000);
      expect(store.size).toBeLessThanOrEqual(4 + 12);
    }
    expect(await store.claim(key('a'), signed(first))).toBe(true);
  });

  it('is handed out again when its key has many, for as many logins and long enough for each', async () => {
    const clock = new ManualClock();
    const store = new ChallengeStore(clock, { lifetimeMs: 60_000, perKey: 2, sharedMs: 2_000 });
    expect([1, 2, 3, 4].map((n) => issue(store, key('a'), n))).toEqual([1, 2, 2, 2]);
    clock.advance(1_999);
    expect(issue(store, key('a'), 5)).toBe(2);
    clock.advance(1);
    expect(issue(store, key('a'), 6)).toBe(6);
    for (let use = 0; use < 4; use += 1) expect(await store.claim(key('a'), signed(2))).toBe(true);
    expect(await store.claim(key('a'), signed(2))).toBe(false);
    expect(await store.claim(key('a'), signed(1))).toBe(true);
  });
});

/** The challenges that have to be open, oldest first. */
interface Model {
  now: number;
  open: { readonly key: PublicKeyHex; readonly n: number; readonly madeAt: number; uses: number }[];
}
interface Real {
  readonly store: ChallengeStore;
  readonly clock: ManualClock;
}
type Command = fc.AsyncCommand<Model, Real>;

const LIMITS = { lifetimeMs: 100, perKey: 3, sharedMs: 10 };
const expire = (model: Model) => {
  model.open = model.open.filter(({ madeAt }) => madeAt + LIMITS.lifetimeMs > model.now);
};

class Issue implements Command {
  readonly key: PublicKeyHex;
  readonly n: number;

  constructor(key: PublicKeyHex, n: number) {
    this.key = key;
    this.n = n;
  }

  check = () => true;

  async run(model: Model, { store }: Real): Promise<void> {
    expire(model);
    const own = model.open.filter(({ key }) => key === this.key);
    const youngest = own.at(-1);
    if (youngest && own.length >= LIMITS.perKey && model.now < youngest.madeAt + LIMITS.sharedMs) youngest.uses += 1;
    else model.open.push({ key: this.key, n: this.n, madeAt: model.now, uses: 1 });
    const given = model.open.findLast(({ key }) => key === this.key)?.n;
    expect(issue(store, this.key, this.n)).toBe(given);
    expect(store.size).toBe(model.open.length);
  }

  toString = () => `issue(${this.key[0]}, ${this.n})`;
}

class Claim implements Command {
  readonly key: PublicKeyHex;
  readonly n: number;

  constructor(key: PublicKeyHex, n: number) {
    this.key = key;
    this.n = n;
  }

  check = () => true;

  async run(model: Model, { store }: Real): Promise<void> {
    expire(model);
    const match = model.open.findLast(({ key, n }) => key === this.key && n === this.n);
    expect(await store.claim(this.key, signed(this.n))).toBe(match !== undefined);
    if (match) match.uses -= 1;
    model.open = model.open.filter(({ uses }) => uses > 0);
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

  async run(model: Model, { clock }: Real): Promise<void> {
    clock.advance(this.ms);
    model.now += this.ms;
  }

  toString = () => `wait(${this.ms})`;
}

describe('the challenge store', () => {
  it('does what its model does, in any sequence (property)', async () => {
    const keys = fc.constantFrom(...['a', 'b', 'c', 'd'].map(key));
    const numbers = fc.integer({ min: 0, max: 8 });
    const commands = fc.commands(
      [
        fc.tuple(keys, numbers).map((args) => new Issue(...args)),
        fc.tuple(keys, numbers).map((args) => new Claim(...args)),
        fc.integer({ min: 1, max: 120 }).map((ms) => new Wait(ms)),
      ],
      { size: '+1' },
    );
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const clock = new ManualClock();
        const setup = () => ({
          model: { now: 0, open: [] },
          real: { clock, store: new ChallengeStore(clock, LIMITS) },
        });
        await fc.asyncModelRun(setup, sequence);
      }),
      { numRuns: 300 },
    );
  });
});
