/** How many keys are seen at once where the agent is far away, and how soon a wrong guess is mended. */
import { setTimeout as wait } from 'node:timers/promises';
import { Pty } from '../../support/pty.js';
import { SlowWay } from '../../support/slow-way.js';
import { atMost, OURS, type Row, rowOf } from '../row.js';
import { sized } from '../sized.js';
import type { Fleet } from './fleet.js';

/** Milliseconds there and back. */
const FAR = [50, 100, 200];
const NEAR = 10;
/** The limit of "at once", in milliseconds. */
const AT_ONCE = 5;
/** Between keys, in milliseconds, as people type: in turns. */
const PAUSES = [90, 140, 110, 180, 120, 100, 160];
const PROMPT = 'ready> ';
/** `<` stands for the key that erases. */
const LINES = sized(
  [
    'systemctl status nginx',
    'journalctl -u nginx -n 20',
    'ls -l /var/log/ngni<<<inx',
    'grep -c error /var/log/syslog',
    'cd /etc && git sta<<<diff --stat',
    'for i in 1 2 3; do echo $i; done',
  ],
  ['ls ngni<<<inx'],
);
const WRONG_KEYS = sized(8, 1);
const PREDICTED = `terminal: keys predicted, round trip ${NEAR} ms`;
const seen = (trip: number) => `terminal: keys seen within ${AT_ONCE} ms, round trip ${trip} ms`;
const wrongly = (trip: number) => `terminal: keys shown wrongly, round trip ${trip} ms`;
const mendedAfter = (trip: number) => `terminal: a wrong key is mended, round trip ${trip} ms`;

export const PREDICTION_ROWS = [PREDICTED, ...FAR.flatMap((trip) => [seen(trip), wrongly(trip), mendedAfter(trip)])];

interface Typed {
  keys: number;
  atOnce: number;
  wrong: number;
}

export async function measurePrediction(fleet: Fleet): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const trip of [NEAR, ...FAR]) {
    const way = await SlowWay.to(Number(fleet.api.url.port), trip / 2);
    try {
      rows.push(...(await measureTrip(fleet, way, trip)));
    } finally {
      await way.close();
    }
  }
  return rows;
}

async function measureTrip(fleet: Fleet, way: SlowWay, trip: number): Promise<readonly Row[]> {
  const at = ['--url', `https://127.0.0.1:${way.port}`, '--tls-fingerprint', fleet.fingerprint];
  const command = fleet.orch('term', fleet.name, '--shell', '/bin/bash', ...at);
  const pty = new Pty(command, { env: fleet.env, cwd: '/' });
  try {
    await pty.shows(/[$#>] (?:\x1b\[\S*)*$/);
    pty.write("stty -a > /dev/null; PS1='rea''dy> '; bind '\"q\": \"QQ\"'; clear\r");
    await pty.displays(/^ready> ?$/);
    await wait(4 * trip + 500);
    const typed: Typed = { keys: 0, atOnce: 0, wrong: 0 };
    for (const line of LINES) {
      await typeLine(pty, line, typed);
      pty.write('\x03');
      await wait(2 * trip + 500);
    }
    const share = (typed.atOnce / typed.keys) * 100;
    if (trip === NEAR) {
      return [{ what: PREDICTED, unit: '%', ours: share, beside: {}, goal: 'none', isMet: share === 0 }];
    }
    const wrong = (typed.wrong / typed.keys) * 100;
    const mended = new Map([[OURS, await wrongKeys(pty, trip)]]);
    return [
      { what: seen(trip), unit: '%', ours: share, beside: {}, goal: 'at least 70 %', isMet: share >= 70 },
      { what: wrongly(trip), unit: '%', ours: wrong, beside: {}, goal: 'at most 1 %', isMet: wrong <= 1 },
      rowOf({ what: mendedAfter(trip), unit: 'ms', runs: mended, goal: atMost(trip + 50, 'ms') }),
    ];
  } finally {
    pty.kill();
  }
}

/** The line at the prompt as it is shown. */
const shownLine = (pty: Pty): string =>
  (pty.lines.findLast((line) => line.startsWith(PROMPT)) ?? '').slice(PROMPT.length);

async function typeLine(pty: Pty, line: string, typed: Typed): Promise<void> {
  const states = [''];
  for (const [index, key] of [...line].entries()) {
    const before = states.at(-1) as string;
    states.push(key === '<' ? before.slice(0, -1) : before + key);
    pty.write(key === '<' ? '\x7f' : key);
    await wait(AT_ONCE);
    typed.keys += 1;
    // Spaces at the end of a line do not show in it.
    if (shownLine(pty).trimEnd() === (states.at(-1) as string).trimEnd() && key !== ' ') typed.atOnce += 1;
    else if (key === ' ' && cursorOf(pty) === PROMPT.length + (states.at(-1) as string).length) typed.atOnce += 1;
    const known = new Set(states.map((state) => state.trimEnd()));
    if (!known.has(shownLine(pty).trimEnd())) typed.wrong += 1;
    await wait((PAUSES[index % PAUSES.length] as number) - AT_ONCE);
  }
}

const cursorOf = ({ screen }: Pty): number => screen.buffer.active.cursorX;

/** A key that the shell takes for another: milliseconds until the line is right, from when it was typed. */
async function wrongKeys(pty: Pty, trip: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let round = 0; round < WRONG_KEYS; round += 1) {
    for (const key of 'echo') {
      pty.write(key);
      await wait(trip + 300);
    }
    const start = performance.now();
    pty.write('q');
    while (shownLine(pty) !== 'echoQQ') {
      if (performance.now() - start > 5_000) throw new Error(`the line stays wrong: ${shownLine(pty)}`);
      await wait(1);
    }
    times.push(performance.now() - start);
    pty.write('\x03');
    await wait(2 * trip + 300);
  }
  return times;
}
