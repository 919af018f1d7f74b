/** The walk over agents in waves: whatever the agents do, it keeps to its bounds and comes to an end. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  brokenBound,
  firstWindow,
  nextStep,
  shareOf,
  unorderedWaves,
  type WalkBounds,
  type WalkStep,
  type WaveTally,
  waveSizes,
} from '../../src/kernel/walk.js';
import { drawn } from '../support/exhaustive.js';

type Tally = { -readonly [K in keyof WaveTally]: WaveTally[K] };

const NONE: WaveTally = {
  ready: 0,
  awaited: 0,
  away: 0,
  running: 0,
  succeeded: 0,
  failed: 0,
  forgiven: 0,
  skipped: 0,
};

/** The outcome of an agent's turn: it runs to an end, or it is offline. */
type Fate = 'succeeds' | 'fails' | 'unreachable' | 'skipped' | 'returns' | 'expires';

const fate = fc.oneof(
  { arbitrary: fc.constant<Fate>('succeeds'), weight: 8 },
  { arbitrary: fc.constantFrom<Fate[]>('fails', 'unreachable', 'skipped', 'returns', 'expires'), weight: 3 },
);

interface Plan {
  readonly fates: readonly (readonly Fate[])[];
  readonly bounds: WalkBounds;
  /** Picks who ends or returns next. */
  readonly picks: readonly number[];
}

const plans: fc.Arbitrary<Plan> = fc.record({
  fates: fc.array(fc.array(fate, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 4 }),
  bounds: fc.record({
    concurrency: fc.integer({ min: 1, max: 6 }),
    hasCanaries: fc.boolean(),
    maxFailures: fc.option(fc.integer({ min: 1, max: 4 })),
    soak: fc.constantFrom(0, 100),
  }),
  picks: fc.array(fc.nat(), { minLength: 1, maxLength: 40 }),
});

/** Walks a plan, and checks at every step what must hold. Returns the last step. */
function walked({ fates, bounds, picks }: Plan): { readonly last: WalkStep; readonly waves: readonly WaveTally[] } {
  const waves = fates.map((wave): Tally => ({ ...NONE, ready: wave.length }));
  const queues = fates.map((wave) => [...wave]);
  const flying: { readonly wave: number; readonly fate: Fate }[] = [];
  const away: { readonly wave: number; readonly fate: Fate }[] = [];
  let [passed, window, soakEnd, now, picked] = [0, firstWindow(bounds, waves.length), null as number | null, 0, 0];
  const soaked = new Set<number>();
  const pick = (count: number) => (picks[picked++ % picks.length] ?? 0) % count;
  const total = (kind: keyof WaveTally) => waves.reduce((sum, wave) => sum + wave[kind], 0);

  const startOne = () => {
    const wave = queues.slice(0, passed + 1).findIndex((queue) => queue.length > 0);
    const next = queues[wave]?.shift();
    const tally = waves[wave];
    if (next === undefined || tally === undefined) throw new Error('there is no ready agent to start');
    tally.ready -= 1;
    if (next === 'unreachable') {
      tally.failed += 1;
      window = firstWindow(bounds, waves.length);
    } else if (next === 'skipped') tally.skipped += 1;
    else if (next === 'returns' || next === 'expires') {
      tally.away += 1;
      away.push({ wave, fate: next });
    } else {
      tally.running += 1;
      flying.push({ wave, fate: next });
    }
  };
  const endOne = () => {
    const [one] = flying.splice(pick(flying.length), 1);
    const tally = waves[one?.wave ?? -1];
    if (one === undefined || tally === undefined) throw new Error('no agent is in flight');
    tally.running -= 1;
    if (one.fate === 'succeeds') {
      tally.succeeded += 1;
      window += 1;
    } else {
      tally.failed += 1;
      window = firstWindow(bounds, waves.length);
    }
  };
  const comeBack = () => {
    const [one] = away.splice(pick(away.length), 1);
    const tally = waves[one?.wave ?? -1];
    if (one === undefined || tally === undefined) throw new Error('no agent is away');
    tally.away -= 1;
    if (one.fate === 'expires') {
      tally.failed += 1;
      return;
    }
    tally.ready += 1;
    queues[one.wave]?.push('succeeds');
  };

  for (let round = 0; round < 2000; round += 1) {
    const running = total('running');
    expect(running).toBeLessThanOrEqual(bounds.concurrency);
    const { maxFailures } = bounds;
    // Expired agents were never in flight, so no bound can hold their number.
    const expired = fates.flat().filter((one) => one === 'expires').length;
    if (maxFailures !== null) expect(total('failed') + running).toBeLessThanOrEqual(maxFailures + expired);
    const step = nextStep({ bounds, waves, passed, window, soakEnd, now });
    switch (step.do) {
      case 'start':
        expect(step.count).toBeGreaterThan(0);
        if (bounds.hasCanaries && passed > 0) expect(waves[0]?.failed).toBe(0);
        startOne();
        break;
      case 'soak':
        expect(running).toBe(0);
        soakEnd = now + bounds.soak;
        soaked.add(passed);
        break;
      case 'check':
        expect(soaked).toContain(passed);
        expect(now).toBeGreaterThanOrEqual(soakEnd ?? Number.POSITIVE_INFINITY);
        soakEnd = null;
        passed += 1;
        break;
      case 'pass':
        expect(running).toBe(0);
        expect(waves[passed]).toMatchObject({ ready: 0, awaited: 0 });
        if (bounds.soak > 0) expect(waves[passed]?.succeeded).toBe(0);
        passed += 1;
        break;
      case 'wait':
        if (flying.length > 0) endOne();
        else if (step.until !== null) now = step.until;
        else if (away.length > 0) comeBack();
        else throw new Error('the walk waits for nothing');
        break;
      case 'halt':
        while (flying.length > 0) endOne();
        expect(total('ready') + total('away')).toBeGreaterThan(0);
        return { last: step, waves };
      case 'finish':
        expect(flying).toEqual([]);
        expect(total('ready') + total('away') + total('running')).toBe(0);
        expect(step.state).toBe(total('failed') === 0 ? 'succeeded' : 'failed');
        return { last: step, waves };
    }
  }
  throw new Error('the walk does not end');
}

describe('a walk', () => {
  it('keeps to its bounds and ends, whatever the agents do', () => {
    fc.assert(
      fc.property(plans, (plan) => {
        walked(plan);
      }),
      { numRuns: drawn(2000) },
    );
  });

  it('ends with success when every agent succeeds', () => {
    fc.assert(
      fc.property(plans, ({ fates, ...plan }) => {
        const well = fates.map((wave) => wave.map((): Fate => 'succeeds'));
        expect(walked({ ...plan, fates: well }).last).toEqual({ do: 'finish', state: 'succeeded', reason: null });
      }),
    );
  });

  it('harms one of twelve machines when two are bad, with canaries and a limit of one', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat({ max: 11 }), { minLength: 2, maxLength: 2 }), plans, (bad, { picks }) => {
        const all = Array.from({ length: 12 }, (_, index): Fate => (bad.includes(index) ? 'fails' : 'succeeds'));
        const bounds = { concurrency: 32, hasCanaries: true, maxFailures: 1, soak: 0 };
        const { waves } = walked({ fates: [all.slice(0, 3), all.slice(3)], bounds, picks });
        expect(waves.reduce((sum, { failed }) => sum + failed, 0)).toBe(1);
      }),
    );
  });

  const bounds: WalkBounds = { concurrency: 4, hasCanaries: false, maxFailures: null, soak: 0 };
  const view = { bounds, passed: 0, window: 1, soakEnd: null, now: 0 };

  it('does not leave a wave without one success, but does not wait for the other agents that are away', () => {
    const rest = { ...NONE, ready: 5 };
    const unproved = [{ ...NONE, away: 2 }, rest];
    expect(nextStep({ ...view, waves: unproved })).toEqual({ do: 'wait', until: null });
    expect(nextStep({ ...view, waves: [{ ...NONE, away: 1, succeeded: 1 }, rest] })).toEqual({ do: 'pass' });
    expect(nextStep({ ...view, waves: [{ ...NONE, awaited: 1, succeeded: 1 }, rest] }).do).toBe('wait');
  });

  it('starts agents of earlier waves that return, as long as it has not halted', () => {
    const waves = [
      { ...NONE, ready: 1, succeeded: 1 },
      { ...NONE, succeeded: 3 },
    ];
    expect(nextStep({ ...view, passed: 2, waves })).toEqual({ do: 'start', count: 1 });
  });

  it('halts when no canary was applied', () => {
    const waves = [
      { ...NONE, skipped: 1 },
      { ...NONE, ready: 2 },
    ];
    const step = nextStep({ ...view, bounds: { ...bounds, hasCanaries: true }, waves });
    expect(step).toEqual({ do: 'halt', reason: 'no canary agent was applied' });
  });

  it('halts at a failure in any wave but the last, unless a number of failures is allowed', () => {
    const waves = [
      { ...NONE, succeeded: 2 },
      { ...NONE, failed: 1, ready: 3 },
      { ...NONE, ready: 6 },
    ];
    const reason = '1 of 4 agents of wave 2 did not succeed';
    expect(nextStep({ ...view, passed: 1, waves })).toEqual({ do: 'halt', reason });
    expect(nextStep({ ...view, passed: 1, waves, bounds: { ...bounds, maxFailures: 2 } }).do).toBe('start');
    const last = [waves[0] ?? NONE, { ...NONE, failed: 1, ready: 3 }];
    expect(nextStep({ ...view, passed: 1, waves: last }).do).toBe('start');
  });

  it('knows which wave has reached a bound, also when the walk is further', () => {
    const waves = [
      { ...NONE, failed: 1, succeeded: 1 },
      { ...NONE, failed: 1, succeeded: 1 },
      { ...NONE, succeeded: 2 },
    ];
    expect(brokenBound({ ...view, passed: 3, waves })?.wave).toBe(0);
    const allowing = { ...view, passed: 3, waves, bounds: { ...bounds, maxFailures: 2 } };
    expect(brokenBound(allowing)).toEqual({ reason: '2 agents have failed', wave: 1 });
  });

  it('does not count failures that were forgiven, but does not succeed with them', () => {
    const waves = [{ ...NONE, forgiven: 2, succeeded: 1 }];
    const step = nextStep({ ...view, waves, bounds: { ...bounds, maxFailures: 1 }, passed: 1 });
    expect(step).toEqual({ do: 'finish', state: 'failed', reason: '2 agents did not succeed' });
  });
});

describe('waves', () => {
  it.each([
    [{ agents: 1000, canary: 0, waves: [1, '10%', '100%'] }, [1, 99, 900]],
    [{ agents: 1000, canary: 3, waves: [] }, [3, 997]],
    [{ agents: 12, canary: 3, waves: ['50%'] }, [3, 3, 6]],
    [{ agents: 5, canary: 0, waves: [1, '10%', '100%'] }, [1, 4]],
    [{ agents: 7, canary: '7%', waves: [] }, [1, 6]],
    [{ agents: 100, canary: 0, waves: ['7%'] }, [7, 93]],
    [{ agents: 2, canary: 9, waves: [50] }, [2]],
    [{ agents: 0, canary: 1, waves: ['10%'] }, []],
    [{ agents: 4, canary: 0, waves: [] }, [4]],
  ])('of %j have sizes %j', (options, sizes) => expect(waveSizes(options)).toEqual(sizes));

  it('cover every agent once', () => {
    const share = fc.oneof(
      fc.nat({ max: 50 }),
      fc.nat({ max: 100 }).map((percent) => `${percent}%`),
    );
    fc.assert(
      fc.property(fc.nat({ max: 200 }), share, fc.array(share), (agents, canary, waves) => {
        const sizes = waveSizes({ agents, canary, waves });
        expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(agents);
        expect(sizes.every((size) => size > 0)).toBe(true);
      }),
    );
  });

  it('round up, and bounds round down', () => {
    expect([shareOf('10%', 11, 'up'), shareOf('10%', 11, 'down'), shareOf(4, 11, 'up')]).toEqual([2, 1, 4]);
  });

  it('must ascend, numbers and percentages each among themselves', () => {
    expect(unorderedWaves([1, '10%', 5, '100%'])).toBeNull();
    expect(unorderedWaves([5, '10%', 2])).toEqual([5, 2]);
    expect(unorderedWaves(['50%', 1, '50%'])).toEqual(['50%', '50%']);
  });
});
