/** The cost of idle sessions for the orchestrator, and typing beside many others. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { alternate, atMostTimes, OURS, type Row } from '../row.js';
import { sized } from '../sized.js';
import { percentile } from '../statistics.js';
import type { Fleet } from './fleet.js';
import { endAll, type OpenedSession, openSession } from './opened-session.js';
import { JUMP, open, type Target } from './targets.js';
import type { Typist } from './typist.js';

const IDLE = sized(90, 2);
const FLOODING = sized(9, 1);
const WARM_UP = sized(100, 5);
const ROUNDS = sized(3, 1);
/** Of each round; all rounds count together. */
const KEYS = sized(200, 5);
/** Between keys, in milliseconds. */
const PAUSE = 5;
/** Until all floods run, in milliseconds. */
const RISE = sized(4_000, 500);
const MEGABYTE = 1e6;
const MEMORY = `terminal: memory of the orchestrator for each of ${IDLE} idle sessions`;
const ECHO = `terminal: echo beside ${IDLE} idle and ${FLOODING} flooding sessions`;

export const MANY_SESSIONS_ROWS = [MEMORY, `${ECHO}, p50`, `${ECHO}, p99`];
const FLOOD = "yes 'the quick brown fox jumps over the lazy dog, again and again'\n";

export async function measureManySessions(
  fleet: Fleet,
  targets: readonly Target[],
  say: (line: string) => void,
): Promise<readonly Row[]> {
  // The first one makes it for all.
  await endAll([await openIdle(fleet)]);
  await wait(1_000);
  const before = fleet.orchestratorMemory();
  const idle: OpenedSession[] = [];
  try {
    for (let count = 0; count < IDLE; count += 1) idle.push(await openIdle(fleet));
    await wait(3_000);
    const perSession = (fleet.orchestratorMemory() - before) / IDLE / MEGABYTE;
    const memory: Row = {
      what: MEMORY,
      unit: 'MB',
      ours: perSession,
      beside: {},
      goal: 'below 1 MB',
      isMet: perSession < 1,
    };
    say(`${IDLE} sessions are idle, ${FLOODING} begin to flood, and one types`);
    const compared = targets.filter(({ name }) => name === OURS || name === JUMP);
    const programs = new Map(compared.map((target) => [target.name, () => typingBesideFloods(target)]));
    const rounds = await alternate(ROUNDS, programs);
    const times = new Map([...rounds].map(([name, all]) => [name, all.flat()]));
    return [memory, p50(times), p99(times)];
  } finally {
    await endAll(idle);
  }
}

/** Each session is that of a program of its own, as each operator's is. Milliseconds of each key. */
async function typingBesideFloods(target: Target): Promise<readonly number[]> {
  const typist = await open(target);
  const floods: ChildProcess[] = [];
  try {
    typist.forget();
    typist.type("stty raw -echo; printf 'now-%s' raw; exec cat\r");
    await typist.shows(/now-raw/);
    await typeKeys(typist, WARM_UP);
    for (let count = 0; count < FLOODING; count += 1) floods.push(flood(target));
    await wait(RISE);
    return await typeKeys(typist, KEYS);
  } finally {
    await Promise.all(floods.map(end));
    await typist.close();
  }
}

async function typeKeys(typist: Typist, count: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let key = 0; key < count; key += 1) {
    times.push(await typist.key('k'));
    await wait(PAUSE);
  }
  return times;
}

/** A shell that floods a client that takes all at once. */
function flood({ command: [file = '', ...args], env }: Target): ChildProcess {
  const child = spawn(file, args, { env, stdio: ['pipe', 'ignore', 'ignore'] });
  child.stdin?.on('error', () => undefined);
  child.stdin?.write(FLOOD);
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  // Ends the session with it.
  child.kill('SIGINT');
  await ended;
}

function p50(times: ReadonlyMap<string, readonly number[]>): Row {
  const { ours, beside } = at(times, 0.5);
  return { what: `${ECHO}, p50`, unit: 'ms', ours, beside, goal: 'below 5 ms', isMet: ours < 5 };
}

function p99(times: ReadonlyMap<string, readonly number[]>): Row {
  const { ours, beside } = at(times, 0.99);
  const ratios = Object.fromEntries(Object.entries(beside).map(([name, value]) => [name, ours / value]));
  const goal = atMostTimes(1, JUMP);
  return { what: `${ECHO}, p99`, unit: 'ms', ours, beside, ratios, goal: goal.text, isMet: goal.isMet(ours, ratios) };
}

function at(times: ReadonlyMap<string, readonly number[]>, part: number): Pick<Row, 'ours' | 'beside'> {
  const values = [...times].map(([name, all]) => [name, percentile(all, part)] as const);
  const { [OURS]: ours = Number.NaN, ...beside } = Object.fromEntries(values);
  return { ours, beside };
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
