/** Real programs on real terminals and pipes, and what comes out of them. */
import { setImmediate } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { Launch } from '../../src/agent/pty/launch.js';
import { loadNativePty, type NativePty } from '../../src/agent/pty/native-pty.js';
import { type PipedCommandOptions, startCommand } from '../../src/agent/pty/piped-command.js';
import { signalSession } from '../../src/agent/pty/process-table.js';
import type { Program, ProgramEnd, ProgramListener } from '../../src/agent/pty/program.js';
import { Pty } from '../../src/agent/pty/pty.js';
import type { OutputStream } from '../../src/terminal/frames.js';
import { until } from './orch.js';

export const launchOf = (script: string, more: Partial<Launch> = {}): Launch => ({
  file: '/bin/sh',
  argv0: 'sh',
  args: ['-c', script],
  env: { PATH: '/usr/bin:/bin', HOME: '/', TERM: 'xterm' },
  variables: [],
  directory: '/',
  user: null,
  ...more,
});

/** Listens to a program and keeps everything. */
export class Running implements ProgramListener {
  readonly pieces: { readonly stream: OutputStream; readonly bytes: Buffer }[] = [];
  readonly whenEnded: Promise<ProgramEnd>;
  taken = 0;
  end: ProgramEnd | null = null;
  private settle: (end: ProgramEnd) => void = () => undefined;
  private given: Program | null = null;

  constructor() {
    this.whenEnded = new Promise((resolve) => {
      this.settle = resolve;
    });
  }

  get program(): Program {
    if (this.given === null) throw new Error('it is not started');
    return this.given;
  }

  watch(program: Program): this {
    this.given = program;
    onTestFinished(() => void signalSession(program.mark, 'SIGKILL'));
    return this;
  }

  output(bytes: Buffer, stream: OutputStream): void {
    this.pieces.push({ stream, bytes: Buffer.from(bytes) });
  }

  inputTaken(total: number): void {
    this.taken = total;
  }

  ended(end: ProgramEnd): void {
    this.end = end;
    this.settle(end);
  }

  bytes(stream?: OutputStream): Buffer {
    return Buffer.concat(
      this.pieces.filter((piece) => stream === undefined || piece.stream === stream).map((piece) => piece.bytes),
    );
  }

  text(stream?: OutputStream): string {
    return this.bytes(stream).toString('latin1').replaceAll('\r\n', '\n');
  }

  shows(text: string): Promise<void> {
    return until(
      () => this.text().includes(text),
      () => `${JSON.stringify(text)} is shown, not ${JSON.stringify(this.text())}`,
    );
  }
}

/** Runs no timer and reads nothing for so many milliseconds, as under load: due timers run before anything is read then. */
export async function keepBusy(milliseconds: number): Promise<void> {
  await setImmediate();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

export interface PtyStart {
  readonly launch?: Partial<Launch>;
  readonly cols?: number;
  readonly rows?: number;
  /** Left stopped. */
  readonly paused?: boolean;
  /** Sees each change of the size just before the system is asked for it. */
  readonly onResize?: (size: string) => void;
}

export function startPty(
  script: string,
  { launch = {}, cols = 80, rows = 24, paused = false, onResize }: PtyStart = {},
): Running {
  const running = new Running();
  const real = loadNativePty();
  const resize: NativePty['resize'] = (fd, newCols, newRows) => {
    onResize?.(`${newCols}x${newRows}`);
    real.resize(fd, newCols, newRows);
  };
  const native: NativePty = { fork: real.fork, resize };
  const pty = new Pty({ native, launch: launchOf(script, launch), cols, rows, listener: running });
  if (!paused) pty.resume();
  return running.watch(pty);
}

export async function startPiped(
  script: string,
  { paused = false, ...more }: Partial<PipedCommandOptions> & { readonly paused?: boolean } = {},
): Promise<Running> {
  const running = new Running();
  const given = { launch: launchOf(script), stdin: false, timeoutSecs: null, wait: false, listener: running, ...more };
  const program = await startCommand(given);
  if (!paused) program.resume();
  return running.watch(program);
}
