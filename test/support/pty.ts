/** A real terminal for tests: a pseudo-terminal with a program in it, and the screen that it would show. */
import xterm from '@xterm/headless';
import { type IPty, spawn } from 'node-pty';
import { refuseRuntimeWarnings } from './runtime-warnings.js';
import { until } from './until.js';

export interface PtyOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly cols?: number;
  readonly rows?: number;
}

export class Pty {
  readonly screen: xterm.Terminal;
  private readonly pty: IPty;
  private text = '';
  private status: number | null = null;
  private signal = 0;

  constructor([file = '', ...args]: readonly string[], { env, cwd, cols = 80, rows = 24 }: PtyOptions) {
    this.screen = new xterm.Terminal({ cols, rows, allowProposedApi: true });
    this.pty = spawn(file, args, { cols, rows, cwd, env: { ...env, TERM: 'xterm-256color' }, name: 'xterm-256color' });
    this.pty.onData((data) => {
      this.text += data;
      this.screen.write(data);
    });
    this.pty.onExit(({ exitCode, signal }) => {
      this.status = exitCode;
      this.signal = signal ?? 0;
    });
    // As any terminal does: it answers what programs ask it.
    this.screen.onData((answer) => this.write(answer));
  }

  get pid(): number {
    return this.pty.pid;
  }

  /** Everything that was written so far. */
  get output(): string {
    return this.text;
  }

  /** The lines of the screen, without what is empty at their ends. */
  get lines(): readonly string[] {
    const { active } = this.screen.buffer;
    const rows = Array.from({ length: this.screen.rows }, (_, row) => active.getLine(active.baseY + row));
    return rows.map((line) => line?.translateToString(true) ?? '');
  }

  write(text: string): void {
    if (this.status === null) this.pty.write(text);
  }

  resize(cols: number, rows: number): void {
    this.screen.resize(cols, rows);
    this.pty.resize(cols, rows);
  }

  /** Stops taking output of the program, until `resume`. */
  pause(): void {
    this.pty.pause();
  }

  resume(): void {
    this.pty.resume();
  }

  /** Waits until that has been written behind `from`; the match. */
  async shows(pattern: RegExp, from = 0): Promise<RegExpExecArray> {
    let match: RegExpExecArray | null = null;
    const seen = () => {
      match = pattern.exec(this.text.slice(from));
      return match !== null;
    };
    try {
      await until(() => seen() || this.status !== null, `the terminal shows ${pattern}`);
    } catch {
      throw new Error(`the terminal does not show ${pattern}:\n${JSON.stringify(this.text.slice(-2_000))}`);
    }
    if (!seen() || match === null) {
      throw new Error(`it ended without ${pattern}:\n${JSON.stringify(this.text.slice(-2_000))}`);
    }
    return match;
  }

  /** Waits until the screen holds a line that matches. */
  async displays(pattern: RegExp): Promise<void> {
    try {
      await until(() => this.lines.some((line) => pattern.test(line)), `the screen shows ${pattern}`);
    } catch {
      throw new Error(`the screen does not show ${pattern}:\n${this.lines.join('\n')}`);
    }
  }

  /** Its exit status. Throws when the runtime printed a warning. */
  async ended(): Promise<number> {
    await until(() => this.status !== null, 'the program in the terminal has ended');
    refuseRuntimeWarnings(this.text);
    return this.status ?? -1;
  }

  /** Closes the window. */
  hangUp(): void {
    Reflect.get(this.pty, 'destroy').call(this.pty);
  }

  /** Waits for the end, and returns 128 and the number for a signal, as a shell does. */
  async endedForShell(): Promise<number> {
    const status = await this.ended();
    return this.signal === 0 ? status : 128 + this.signal;
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    if (this.status === null) this.pty.kill(signal);
    refuseRuntimeWarnings(this.text);
  }
}
