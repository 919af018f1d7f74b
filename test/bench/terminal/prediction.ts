/** How many keys are seen at once where the agent is far away, and how soon a wrong guess is mended. */
import { setTimeout as wait } from 'node:timers/promises';
import { Pty } from '../../support/pty.js';
import { SlowWay } from '../../support/slow-way.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import type { Fleet } from './fleet.js';

/** Milliseconds there and back. */
const FAR = [50, 100, 200];
const NEAR = 10;
/** What counts as at once, in milliseconds. */
const AT_ONCE = 5;
/** Between keys, in milliseconds, as people type: in turns. */
const PAUSES = [90, 140, 110, 180, 120, 100, 160];
const PROMPT = 'ready> ';
/** `<` stands for the key that erases. */
const LINES = [
  'systemctl status nginx',
  'journalctl -u nginx -n 20',
  'ls -l /var/log/ngni<<<inx',
  'grep -c error /var/log/syslog',
  'cd /etc && git sta<<<diff --stat',
  'for i in 1 2 3; do echo $i; done',
];
const WRONG_KEYS = 8;

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
    const what = `terminal: keys seen within ${AT_ONCE} ms, round trip ${trip} ms, %`;
    if (trip === NEAR) {
      return [
        {
          what: `terminal: keys predicted, round trip ${trip} ms, %`,
          unit: '',
          ours: share,
          beside: {},
          goal: 'none',
          isMet: share === 0,
        },
      ];
    }
    const wrong = (typed.wrong / typed.keys) * 100;
    const mended = median(await wrongKeys(pty, trip));
    return [
      { what, unit: '', ours: share, beside: {}, goal: 'at least 70', isMet: share >= 70 },
      {
        what: `terminal: keys shown wrongly, round trip ${trip} ms, %`,
        unit: '',
        ours: wrong,
        beside: {},
        goal: 'at most 1',
        isMet: wrong <= 1,
      },
      {
        what: `terminal: a wrong key is mended, round trip ${trip} ms`,
        unit: 'ms',
        ours: mended,
        beside: {},
        goal: `at most ${trip + 50} ms`,
        isMet: mended <= trip + 50,
      },
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
