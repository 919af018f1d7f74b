/** What idle sessions cost the orchestrator, and how typing feels beside many others. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Row } from '../row.js';
import { percentile } from '../statistics.js';
import type { Fleet } from './fleet.js';
import { endAll, type OpenedSession, openSession } from './opened-session.js';

const IDLE = 90;
const FLOODING = 9;
const KEYS = 500;
const MEGABYTE = 1e6;

export async function measureManySessions(fleet: Fleet, say: (line: string) => void): Promise<readonly Row[]> {
  // What the first one makes is there for all.
  await endAll([await openIdle(fleet)]);
  await wait(1_000);
  const before = fleet.orchestratorMemory();
  const open: OpenedSession[] = [];
  try {
    for (let count = 0; count < IDLE; count += 1) open.push(await openIdle(fleet));
    await wait(3_000);
    const perSession = (fleet.orchestratorMemory() - before) / IDLE / MEGABYTE;
    const memory: Row = {
      what: `terminal: memory of the orchestrator for each of ${IDLE} idle sessions`,
      unit: 'MB',
      ours: perSession,
      beside: {},
      goal: 'below 1 MB',
      isMet: perSession < 1,
    };
    say(`${IDLE} sessions are idle, ${FLOODING} begin to flood, and one types`);
    for (let count = 0; count < FLOODING; count += 1) open.push(await openFlood(fleet));
    return [memory, ...(await typing(fleet, open))];
  } finally {
    await endAll(open);
  }
}

async function typing(fleet: Fleet, open: OpenedSession[]): Promise<readonly Row[]> {
  const typist = await openIdle(fleet);
  open.push(typist);
  typist.session.sendInput(Buffer.from('stty raw -echo; exec cat\r'));
  await wait(1_000);
  const times: number[] = [];
  for (let key = 0; key < KEYS; key += 1) {
    const start = performance.now();
    const heard = typist.heard();
    typist.session.sendInput(Buffer.from('k'));
    await heard;
    times.push(performance.now() - start);
    await wait(5);
  }
  const what = (part: string) => `terminal: echo beside ${IDLE} idle and ${FLOODING} flooding sessions, ${part}`;
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)];
  return [
    { what: what('p50'), unit: 'ms', ours: p50, beside: {}, goal: 'below 5 ms', isMet: p50 < 5 },
    { what: what('p99'), unit: 'ms', ours: p99, beside: {}, goal: 'below 25 ms', isMet: p99 < 25 },
  ];
}

async function openIdle(fleet: Fleet): Promise<OpenedSession> {
  let text = '';
  const opened = await openSession(fleet, {
    onOutput: (bytes) => {
      text = (text + bytes.toString('latin1')).slice(-200);
    },
  });
  while (!/[#$%>] (\x1b\[\S*)*$/.test(text)) await opened.heard();
  return opened;
}

async function openFlood(fleet: Fleet): Promise<OpenedSession> {
  const opened = await openIdle(fleet);
  opened.session.sendInput(Buffer.from('yes "the quick brown fox jumps over the lazy dog, again and again"\r'));
  return opened;
}
