/** The agent's watch over the echo, in simulated time: which input a look answers for. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { EchoWatch } from '../../../src/agent/terminal/session-io.js';
import type { EchoAck, Reading } from '../../../src/terminal/frames.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
/** Milliseconds of a look. */
const LOOK = 10;

function watching() {
  const state = { output: 0 as number | null, answers: [] as EchoAck[] };
  const watch = new EchoWatch({
    clock: { monotonic: () => performance.now() },
    produced: () => state.output,
    readSettings: () => new Promise<Reading>((resolve) => setTimeout(() => resolve('keys'), LOOK)),
    send: (ack) => void state.answers.push(ack),
  });
  return { watch, state };
}

it('answers for input once the program could read it, and again once its echo has had 50 ms', async () => {
  const { watch, state } = watching();
  watch.ask(1);
  await pass(1_000);
  expect(state.answers).toEqual([]);
  watch.recordGiven(1);
  await pass(LOOK);
  expect(state.answers).toMatchObject([{ given: 1, settled: 0 }]);
  await pass(39);
  expect(state.answers).toHaveLength(1);
  await pass(1 + LOOK);
  expect(state.answers).toMatchObject([{ settled: 0 }, { given: 1, settled: 1 }]);
  await pass(1_000);
  expect(state.answers).toHaveLength(2);
});

it('does not answer by a look during which input came', async () => {
  const { watch, state } = watching();
  watch.recordGiven(1);
  watch.ask(2);
  await pass(LOOK / 2);
  watch.recordGiven(2);
  await pass(LOOK / 2);
  expect(state.answers).toEqual([]);
  await pass(30);
  expect(state.answers).toMatchObject([{ given: 2, settled: 0 }]);
});

it('does not answer while output waits, because an echo may be missing', async () => {
  const { watch, state } = watching();
  state.output = null;
  watch.ask(1);
  watch.recordGiven(1);
  await pass(1_000);
  expect(state.answers).toEqual([]);
  state.output = 7;
  await pass(50);
  expect(state.answers).toMatchObject([{ given: 1, settled: 1, output: 7 }]);
});

it('says nothing once it is stopped', async () => {
  const { watch, state } = watching();
  watch.ask(1);
  watch.recordGiven(1);
  watch.stop();
  await pass(1_000);
  expect(state.answers).toEqual([]);
});
