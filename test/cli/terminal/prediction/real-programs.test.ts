/**
 * Predicted echo with real programs on real terminals, over a simulated distance. Programs switch the echo at any time, also on a
 * terminal behind the one that the agent sees. No key that they hide may be shown.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { loadNativePty } from '../../../../src/agent/pty/native-pty.js';
import { Pty } from '../../../../src/agent/pty/pty.js';
import { EchoWatch } from '../../../../src/agent/terminal/session-io.js';
import { PredictedEcho } from '../../../../src/cli/terminal/predicted-echo.js';
import type { OutputStream } from '../../../../src/terminal/frames.js';
import { launchOf, Running } from '../../../support/agent-pty.js';
import { IS_EXHAUSTIVE } from '../../../support/exhaustive.js';
import { itNeeding } from '../../../support/needing.js';
import { until } from '../../../support/until.js';

/** Sessions of each kind; `npm run test:long` has more. */
const RUNS = IS_EXHAUSTIVE ? 20 : 2;
/** Sessions at once: they wait for most of their time. */
const AT_ONCE = 4;
/** Milliseconds each way. */
const DELAY = 40;
/** Milliseconds after which a person who sees nothing presses Enter again. */
const AGAIN = 5_000;
const SIZE = { cols: 120, rows: 40 };
const NOTHING = Buffer.alloc(0);
const clock = { monotonic: () => performance.now() };
const later = (work: () => void): void => void setTimeout(work, DELAY);
/** Returns the letters of a text, without those of control sequences. */
const lettersOf = (text: string): readonly string[] =>
  text.replaceAll(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, '').match(/[A-WYZ]/g) ?? [];

/** A program on a terminal, the agent's watch, the way to the client, and what the client's terminal is sent. */
class Session extends Running {
  /** Text of the client's terminal, with predictions. */
  shown = '';
  private readonly prediction: PredictedEcho;
  private readonly agent: EchoWatch;
  private typed = 0;

  constructor(shell: string) {
    super();
    this.prediction = new PredictedEcho({
      when: 'always',
      isNew: true,
      clock,
      size: () => SIZE,
      askEcho: (end) => later(() => this.agent.ask(end)),
      redraw: () => this.show(NOTHING),
    });
    this.agent = new EchoWatch({
      clock,
      produced: () => this.bytes().length,
      readSettings: () => this.program.readSettings(),
      send: (ack) =>
        later(() => {
          this.prediction.acknowledged(ack);
          this.show(NOTHING);
        }),
    });
    const pty = new Pty({ native: loadNativePty(), launch: launchOf(shell), ...SIZE, listener: this });
    pty.resume();
    this.watch(pty);
  }

  override output(bytes: Buffer, stream: OutputStream): void {
    super.output(bytes, stream);
    later(() => {
      this.prediction.follow(bytes);
      this.show(bytes);
    });
  }

  override inputTaken(total: number): void {
    super.inputTaken(total);
    this.agent.recordGiven(total);
  }

  type(text: string): void {
    const bytes = Buffer.from(text);
    this.typed += bytes.length;
    later(() => this.program.write(bytes));
    this.prediction.typed(bytes, this.typed);
  }

  /**
   * Waits for a text, and presses Enter again from time to time: Linux keeps a line back whose Enter came while the program read
   * single keys, once it reads lines.
   */
  async answered(text: string): Promise<void> {
    let pressedAt = clock.monotonic();
    await until(
      () => {
        if (clock.monotonic() - pressedAt > AGAIN) {
          pressedAt = clock.monotonic();
          this.type('\r');
        }
        return this.text().includes(text);
      },
      `${JSON.stringify(text)} is shown`,
    );
  }

  async stop(): Promise<void> {
    this.agent.stop();
    this.prediction.stop();
    this.program.signal('KILL');
    // The output of the program arrives.
    await sleep(2 * DELAY);
  }

  private show(bytes: Buffer): void {
    this.shown += this.prediction.wrap(bytes, true).toString('latin1');
  }
}

/** Where the programs run: in the terminal that the agent sees, or in one behind it. */
const SHELLS = {
  plain: 'exec bash --norc --noprofile -i',
  nested: "exec script -qc 'bash --norc --noprofile -i' /dev/null",
} as const;

/** A question of a program: `open` keys are echoed, the others are hidden. */
interface Question {
  readonly program: string;
  readonly open: string;
  readonly hidden: number;
  readonly enter: boolean;
}

const question = (program: string, open: string, hidden: number, enter = true): Question => ({
  program,
  open,
  hidden,
  enter,
});
const EDITOR_SETTINGS = 'stty -icanon -echo -icrnl';
const QUESTIONS: readonly Question[] = [
  question("read -rs -p 'word: ' a", '', 4),
  question("read -rsn 4 -p 'word: ' a", '', 4, false),
  question('stty -echo; read -r a; stty echo', '', 4),
  question("read -n1 -p 'go? ' a; read -rs b", 'y', 4),
  question("read -n2 -p 'go? ' a; read -rs b", 'ye', 4),
  question("read -en1 -p 'go? ' a; read -ers b", 'y', 4),
  question(`${EDITOR_SETTINGS}; head -c1; head -c4 >/dev/null; stty sane`, 'y', 4, false),
  question("read -r -p 'name: ' a; read -rs b", 'me\r', 4),
];

const asked = fc.record({
  question: fc.constantFrom(...QUESTIONS),
  /** Milliseconds until the question. */
  busy: fc.integer({ min: 0, max: 400 }),
  /** Milliseconds before the first key, and between keys. */
  first: fc.constantFrom(0, 150, 400),
  between: fc.constantFrom(0, 20, 90, 160, 260),
});

/** Answers questions in one shell, each with letters of its own. Returns the session at its end. */
async function answer(shell: string, questions: readonly (typeof asked extends fc.Arbitrary<infer T> ? T : never)[]) {
  const session = new Session(shell);
  session.type("PS1='rea''dy> '\r");
  await session.shows('ready> ');
  let next = 0;
  for (const [index, { question: given, busy, first, between }] of questions.entries()) {
    const { program, open, hidden, enter } = given;
    const type = async (text: string, pause: number): Promise<void> => {
      for (const key of text) {
        await sleep(pause);
        session.type(key);
      }
    };
    await type(`sleep ${(busy / 1_000).toFixed(3)}; ${program}; echo do''ne ${index}\r`, 5);
    await sleep(first);
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWYZ'.slice(next, next + hidden);
    next += hidden;
    await type(`${open}${letters}${enter ? '\r' : ''}`, between);
    await session.answered(`done ${index}\n`);
  }
  await session.stop();
  return session;
}

describe.each(['plain', 'nested'] as const)('keys that a program hides, %s', (kind) => {
  itNeeding('bash', 'stty', 'script')(
    'are never shown, whenever it turns the echo off',
    async () => {
      const sessions = fc.array(fc.array(asked, { minLength: 1, maxLength: 3 }), {
        minLength: AT_ONCE,
        maxLength: AT_ONCE,
      });
      const judged = fc.asyncProperty(sessions, async (all) => {
        const ended = await Promise.all(all.map((questions) => answer(SHELLS[kind], questions)));
        for (const session of ended) {
          const echoed = new Set(lettersOf(session.bytes().toString('latin1')));
          expect(lettersOf(session.shown).filter((letter) => !echoed.has(letter))).toEqual([]);
        }
      });
      // Each run takes seconds, so the first failure is reported as it is.
      await fc.assert(judged, { numRuns: RUNS, endOnFailure: true });
    },
    600_000,
  );
});

describe('keys that a program hides behind a single one that it shows', () => {
  itNeeding('bash', 'stty')('are never shown in the terminal that the agent sees', async () => {
    const session = new Session(SHELLS.plain);
    session.type("PS1='rea''dy> '\r");
    await session.shows('ready> ');
    // One process, whose terminal always has the same reader.
    const reads = "const fs=require('fs'),b=Buffer.alloc(1),key=()=>fs.readSync(0,b);";
    const script = `${reads}fs.writeSync(1,'beg'+'un\\\\n');key();fs.writeSync(1,'go? ');key();fs.writeSync(1,b);key();key();key();key()`;
    session.type(`${EDITOR_SETTINGS}; ${process.execPath} -e "${script}"; stty sane; echo do''ne\r`);
    await session.shows('begun\n');
    // The agent has looked at a program that edits a line when the next key is typed.
    const looked = () => sleep(6 * DELAY);
    await looked();
    session.type('q');
    await session.shows('go? ');
    await looked();
    session.type('y');
    await session.shows('go? y');
    await looked();
    for (const hidden of 'HJKL') {
      session.type(hidden);
      await looked();
    }
    await session.shows('done\n');
    await session.stop();
    const echoed = new Set(lettersOf(session.bytes().toString('latin1')));
    expect(lettersOf(session.shown).filter((letter) => !echoed.has(letter))).toEqual([]);
  });
});
