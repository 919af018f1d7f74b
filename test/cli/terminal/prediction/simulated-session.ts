/**
 * A session in simulated time: a terminal with predicted echo, a way that takes its time, the agent's watch, and a machine whose
 * shell edits lines itself while its commands have the system echo, or hide, what is typed. To be run with fake timers.
 */
import { Buffer } from 'node:buffer';
import xterm from '@xterm/headless';
import { EchoWatch } from '../../../../src/agent/terminal/session-io.js';
import { PredictedEcho } from '../../../../src/cli/terminal/predicted-echo.js';
import type { EchoAck, Reading } from '../../../../src/terminal/frames.js';

export interface SimulationOptions {
  /** Milliseconds each way. */
  readonly delay: number;
  readonly cols?: number;
  readonly rows?: number;
  readonly when?: 'auto' | 'always';
}

const now = (): number => performance.now();
const later = (ms: number, work: () => void): void => void setTimeout(work, ms);

/** A screen whose writes are done when they return. */
class Screen {
  readonly terminal: xterm.Terminal;

  constructor(cols: number, rows: number) {
    this.terminal = new xterm.Terminal({ cols, rows, scrollback: 0, allowProposedApi: true, logLevel: 'off' });
  }

  write(bytes: Uint8Array): void {
    (Reflect.get(this.terminal, '_core') as { _inputHandler: { parse(bytes: Uint8Array): void } })._inputHandler.parse(
      bytes,
    );
  }

  get lines(): readonly string[] {
    const { active } = this.terminal.buffer;
    return Array.from({ length: this.terminal.rows }, (_, row) => active.getLine(row)?.translateToString(true) ?? '');
  }

  get state(): { readonly lines: readonly string[]; readonly cursor: readonly number[] } {
    const { cursorX, cursorY } = this.terminal.buffer.active;
    return { lines: this.lines, cursor: [cursorX, cursorY] };
  }
}

/**
 * The machine. Its shell knows: `pass N` asks for a password after N milliseconds without what was typed before, `read N` with
 * it, `line N` takes a line that is echoed, `mask N` shows a star for each character; anything else prints its own name.
 */
class Machine {
  reading: Reading = 'keys';
  produced = 0;
  taken = 0;
  private line = '';
  private ahead = '';
  private command: 'pass' | 'read' | 'line' | 'mask' | null = null;
  private isRunning = false;
  private readonly print: (text: string) => void;

  constructor(onOutput: (bytes: Buffer) => void) {
    this.print = (text) => {
      const bytes = Buffer.from(text);
      this.produced += bytes.length;
      onOutput(bytes);
    };
  }

  begin(): void {
    this.print('$ ');
  }

  type(text: string): void {
    for (const character of text) this.key(character);
  }

  private key(character: string): void {
    if (this.command !== null) this.answer(character);
    else if (this.isRunning) {
      this.ahead += character;
      this.print(character === '\r' ? '\r\n' : character === '\x7f' ? '\b \b' : character);
    } else this.edit(character);
  }

  private edit(character: string): void {
    if (character === '\r') {
      this.print('\r\n');
      this.run();
    } else if (character === '\x7f') {
      if (this.line === '') return;
      this.line = this.line.slice(0, -1);
      this.print('\b\x1b[K');
    } else if (character === '\t') {
      this.line += 'tab';
      this.print('tab');
    } else if (character === '\x03') {
      this.line = '';
      this.print('^C\r\n$ ');
    } else if (character >= ' ') {
      this.line += character;
      this.print(character);
    }
  }

  private run(): void {
    const [, name = '', time = '0'] = /^(pass|read|line|mask) (\d+)$/.exec(this.line) ?? [];
    const ran = this.line;
    this.line = '';
    this.isRunning = true;
    this.reading = 'lines';
    later(Number(time), () => {
      if (name === '') this.finish(ran === '' ? '' : `${ran}: no\r\n`);
      else this.ask(name as 'pass' | 'read' | 'line' | 'mask');
    });
  }

  private ask(command: 'pass' | 'read' | 'line' | 'mask'): void {
    const ahead = command === 'pass' ? '' : this.ahead;
    this.ahead = '';
    this.command = command;
    this.reading = command === 'line' ? 'lines' : command === 'mask' ? 'keys' : 'hidden';
    this.print(`${command}: `);
    for (const character of ahead) this.answer(character);
  }

  private answer(character: string): void {
    if (this.command === null) {
      this.key(character);
      return;
    }
    if (character === '\r') {
      this.command = null;
      this.finish('\r\n');
    } else if (this.command === 'line') this.print(character === '\x7f' ? '\b \b' : character);
    else if (this.command === 'mask' && character >= ' ') this.print('*');
  }

  private finish(text: string): void {
    this.print(`${text}$ `);
    this.reading = 'keys';
    this.isRunning = false;
    const { ahead } = this;
    this.ahead = '';
    for (const character of ahead) this.key(character);
  }
}

export class SimulatedSession {
  /** The screen with and without predictions. */
  readonly shown: Screen;
  readonly truth: Screen;
  readonly prediction: PredictedEcho;
  /** Called after each change of what one sees. */
  onShown: () => void = () => {};
  private readonly machine: Machine;
  private readonly watch: EchoWatch;
  private readonly delay: number;
  private sent = 0;

  constructor({ delay, cols = 80, rows = 24, when = 'always' }: SimulationOptions) {
    this.delay = delay;
    this.shown = new Screen(cols, rows);
    this.truth = new Screen(cols, rows);
    this.prediction = new PredictedEcho({
      when,
      isNew: true,
      clock: { monotonic: now },
      size: () => ({ cols, rows }),
      askEcho: (end) => later(delay, () => this.watch.ask(end)),
      redraw: () => this.show(Buffer.alloc(0)),
    });
    this.machine = new Machine((bytes) => later(delay, () => this.output(bytes)));
    this.watch = new EchoWatch({
      clock: { monotonic: now },
      produced: () => this.machine.produced,
      readSettings: () => this.look(),
      send: (ack) => later(delay, () => this.acknowledged(ack)),
    });
  }

  begin(): void {
    this.prediction.measured(2 * this.delay);
    this.machine.begin();
  }

  type(text: string): void {
    const bytes = Buffer.from(text);
    this.sent += bytes.length;
    const end = this.sent;
    later(this.delay, () => {
      this.machine.type(text);
      this.watch.recordGiven(end);
    });
    this.prediction.typed(bytes, end);
  }

  end(): void {
    this.watch.stop();
    this.prediction.stop();
    this.show(Buffer.alloc(0));
  }

  /** It takes a few milliseconds, as `stty` does. */
  private look(): Promise<Reading> {
    return new Promise((resolve) => later(3, () => resolve(this.machine.reading)));
  }

  private output(bytes: Buffer): void {
    this.truth.write(bytes);
    this.prediction.follow(bytes);
    this.show(bytes);
  }

  private acknowledged(ack: EchoAck): void {
    this.prediction.acknowledged(ack);
    this.show(Buffer.alloc(0));
  }

  private show(bytes: Buffer): void {
    this.shown.write(this.prediction.wrap(bytes, true));
    this.onShown();
  }
}
