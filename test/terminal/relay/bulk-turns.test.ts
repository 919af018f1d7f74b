/** Those with much take turns, and in each round of the event loop one of them is read. */
import { setImmediate as round } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { FairScheduler } from '../../../daemon/terminal/terminal-socket.js';

it('lets one read on in a round, whoever has waited longest', async () => {
  const turns = new FairScheduler();
  const read: string[] = [];
  const flood = (name: string, rounds: number) => {
    read.push(name);
    if (rounds > 1) turns.wait(() => flood(name, rounds - 1));
  };
  for (const name of ['a', 'b', 'c']) turns.wait(() => flood(name, 3));
  const perRound: number[] = [];
  for (let before = 0; perRound.length < 12; before = read.length) {
    await round();
    perRound.push(read.length - before);
  }
  expect(Math.max(...perRound)).toBe(1);
  expect(read.join('')).toBe('abcabcabc');
});

it('counts the rounds in which it is asked', async () => {
  const turns = new FairScheduler();
  const first = turns.round;
  expect(turns.round).toBe(first);
  await round();
  await round();
  const second = turns.round;
  expect(second).toBeGreaterThan(first);
  expect(turns.round).toBe(second);
});

it('takes those that come while others wait', async () => {
  const turns = new FairScheduler();
  const read: string[] = [];
  turns.wait(() => read.push('a'));
  turns.wait(() => read.push('b'));
  await round();
  turns.wait(() => read.push('c'));
  for (let left = 5; left > 0; left -= 1) await round();
  expect(read).toEqual(['a', 'b', 'c']);
});
