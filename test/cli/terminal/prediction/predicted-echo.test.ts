/** Predicted echo in simulated time: what is shown at once, what is never shown, and what remains. */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SimulatedSession } from './simulated-session.js';

/** Sessions of each kind; `npm run test:long` has more. */
const RUNS = Number(process.env.ORCH_PREDICTION_RUNS ?? 100);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

async function opened(delay: number, options: { readonly when?: 'auto' | 'always'; readonly cols?: number } = {}) {
  const session = new SimulatedSession({ delay, ...options });
  session.begin();
  // The emulator is loaded in real time.
  await vi.dynamicImportSettled();
  await pass(4 * delay + 200);
  return session;
}

/** Types key by key, with so many milliseconds in between; returns how many of them were seen at once. */
async function typeSlowly(session: SimulatedSession, text: string, pause: number): Promise<number> {
  let atOnce = 0;
  for (const key of text) {
    const before = session.shown.state;
    session.type(key);
    if (JSON.stringify(session.shown.state) !== JSON.stringify(before)) atOnce += 1;
    await pass(pause);
  }
  return atOnce;
}

describe('predicted echo', () => {
  it.each([25, 50, 100])('shows most keys of a line at once with %i ms each way', async (delay) => {
    const session = await opened(delay);
    let keys = 0;
    let atOnce = 0;
    await typeSlowly(session, 'first\r', 120);
    await pass(2_000);
    for (const line of ['systemctl status nginx', 'journalctl -u nginx -n 50', 'ls -l /var/log/nginx']) {
      keys += line.length;
      atOnce += await typeSlowly(session, line, 120);
      await typeSlowly(session, '\r', 0);
      await pass(4 * delay + 500);
    }
    expect(atOnce / keys).toBeGreaterThanOrEqual(0.7);
    expect(session.shown.state).toEqual(session.truth.state);
    expect(session.prediction.counts.wrong).toBe(0);
  });

  it('shows nothing before a key of the line was echoed', async () => {
    const session = await opened(100);
    session.type('x\r');
    await pass(1_000);
    session.type('abc');
    expect(session.shown.lines).toEqual(session.truth.lines);
    await pass(190);
    expect(session.shown.lines).toEqual(session.truth.lines);
    await pass(200);
    session.type('d');
    expect(session.shown.lines).toContain('$ abcd');
    expect(session.truth.lines).toContain('$ abc');
  });

  it('takes back what turns out otherwise within a round trip and 50 ms', async () => {
    const session = await opened(100);
    session.type('x\r');
    await pass(1_000);
    await typeSlowly(session, 'abc', 400);
    // The shell completes the word, and the keys behind it move.
    session.type('\tde');
    await pass(280);
    expect(session.shown.state).toEqual(session.truth.state);
    expect(session.shown.lines).toContain('$ abctabde');
  });

  it('begins above 30 ms of round trip and ends below 20', async () => {
    const session = await opened(5, { when: 'auto' });
    for (const delay of [5, 14]) {
      for (let round = 0; round < 40; round += 1) session.prediction.measured(2 * delay);
      await vi.dynamicImportSettled();
      expect(await typeSlowly(session, 'quick', 100)).toBe(0);
    }
  });
});

/** Each character of a password is another letter, so that one that is seen tells where it comes from. */
const LETTERS = { first: 0x100, last: 0x17f };
const letters = (lines: readonly string[]): string[] => lines.join('').match(/[\u0100-\u017f]/gu) ?? [];

describe('passwords', () => {
  const prompt = fc.record({
    command: fc.constantFrom('pass', 'read', 'mask'),
    takes: fc.integer({ min: 0, max: 300 }),
    length: fc.integer({ min: 1, max: 12 }),
    /** The text that a mask would be mistaken for. */
    star: fc.boolean(),
    /** Milliseconds before the first key of the password, and between keys. */
    first: fc.integer({ min: 0, max: 400 }),
    between: fc.constantFrom(0, 1, 10, 50, 120, 250),
  });

  it('are never shown, also when they are typed ahead of their prompt', async () => {
    const delays = fc.constantFrom(15, 25, 50, 100, 200);
    await fc.assert(
      fc.asyncProperty(delays, fc.array(prompt, { minLength: 1, maxLength: 5 }), async (delay, prompts) => {
        const session = await opened(delay);
        const seen = new Set<string>();
        const echoed = new Set<string>();
        session.onShown = () => {
          for (const letter of letters(session.shown.lines)) seen.add(letter);
          for (const letter of letters(session.truth.lines)) echoed.add(letter);
        };
        let next = LETTERS.first;
        for (const { command, takes, length, star, first, between } of prompts) {
          await typeSlowly(session, `${command} ${takes}`, 60);
          session.type('\r');
          await pass(first);
          if (star) session.type('*');
          for (let key = 0; key < length; key += 1, next += 1) {
            session.type(String.fromCodePoint(next));
            await pass(between);
          }
          session.type('\r');
          await pass(4 * delay + takes + 500);
        }
        expect(next).toBeLessThanOrEqual(LETTERS.last);
        // The machine's own echo is there without us.
        expect([...seen].filter((letter) => !echoed.has(letter))).toEqual([]);
        expect(session.shown.state).toEqual(session.truth.state);
        session.end();
      }),
      { numRuns: RUNS },
    );
  }, 600_000);
});

describe('the screen', () => {
  const key = fc.oneof(
    { arbitrary: fc.stringMatching(/^[a-z ./-]$/), weight: 12 },
    { arbitrary: fc.constantFrom('é', 'ß', '漢', '🦊'), weight: 1 },
    { arbitrary: fc.constantFrom('\x7f', '\x7f\x7f\x7f'), weight: 2 },
    { arbitrary: fc.constantFrom('\t', '\x03', '\r', '\x1b[D', 'pass 40\r', 'line 30\r', 'x'.repeat(150)), weight: 2 },
  );
  const typed = fc.array(fc.tuple(key, fc.constantFrom(0, 0, 5, 40, 120, 300, 700)), { maxLength: 60 });

  it('is in the end as it would be without predictions', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(15, 50, 150), fc.constantFrom(20, 80), typed, async (delay, cols, keys) => {
        const session = await opened(delay, { cols });
        for (const [text, pause] of keys) {
          session.type(text);
          await pass(pause);
        }
        await pass(4 * delay + 1_000);
        expect(session.shown.state).toEqual(session.truth.state);
        session.end();
        expect(session.shown.state).toEqual(session.truth.state);
      }),
      { numRuns: RUNS },
    );
  }, 600_000);
});
