/** A person at a terminal: types keys into a program and reads its output, as fast as wanted. */
import { setTimeout as wait } from 'node:timers/promises';
import { loadNativePty } from '../../../src/agent/pty/native-pty.js';
import { Pty } from '../../../src/agent/pty/pty.js';

export interface TypistOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Bytes a second that the reader takes; no limit when absent. */
  readonly pace?: number;
}

/** Output that is kept to be looked through. */
const KEPT = 2_048;
const PATIENCE = 60_000;

const native = loadNativePty();

export class Typist {
  /** Bytes of output so far. */
  received = 0;
  private readonly pty: Pty;
  private readonly pace: number | undefined;
  private kept = '';
  private started: number | null = null;
  private heard: (() => void) | null = null;
  private hasEnded = false;

  constructor([file = '', ...args]: readonly string[], { env, pace }: TypistOptions) {
    const set = Object.entries({ ...env, TERM: 'xterm-256color' }).filter(([, value]) => value !== undefined);
    this.pace = pace;
    this.pty = new Pty({
      native,
      launch: {
        file,
        argv0: file,
        args,
        env: Object.fromEntries(set) as Record<string, string>,
        variables: [],
        directory: '/',
        user: null,
      },
      cols: 80,
      rows: 24,
      listener: {
        output: (bytes) => this.read(bytes),
        inputTaken: () => {},
        ended: () => {
          this.hasEnded = true;
          this.heard?.();
        },
      },
    });
    this.pty.resume();
  }

  type(keys: string): void {
    this.pty.write(Buffer.from(keys));
  }

  /** Types a key; milliseconds until anything is shown. */
  key(keys: string): Promise<number> {
    const start = performance.now();
    return new Promise((resolve) => {
      this.heard = () => {
        this.heard = null;
        resolve(performance.now() - start);
      };
      this.type(keys);
    });
  }

  /** Waits until that was shown after the last `forget`. Throws when it never is. */
  async shows(pattern: RegExp): Promise<void> {
    const deadline = performance.now() + PATIENCE;
    while (!pattern.test(this.kept)) {
      if (this.hasEnded || performance.now() > deadline) {
        throw new Error(`the terminal does not show ${pattern}: ${JSON.stringify(this.kept.slice(-500))}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 1_000);
        this.heard = () => {
          this.heard = null;
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** Output until now does not count. */
  forget(): void {
    this.kept = '';
  }

  /** A shell that has come to its prompt. */
  async prompt(): Promise<void> {
    await this.shows(/[#$%>] (\x1b\[\S*)*$/);
  }

  async close(): Promise<void> {
    if (this.hasEnded) return;
    this.pty.signal('HUP');
    for (let round = 0; round < 100 && !this.hasEnded; round += 1) await wait(20);
    if (!this.hasEnded) this.pty.signal('KILL');
    while (!this.hasEnded) await wait(20);
  }

  private read(bytes: Buffer): void {
    this.received += bytes.length;
    this.kept = (this.kept + bytes.toString('latin1')).slice(-KEPT);
    if (this.pace !== undefined) this.slowDown(bytes.length, this.pace);
    this.heard?.();
  }

  /** Reads no more until what was read is due. */
  private slowDown(bytes: number, pace: number): void {
    const now = performance.now();
    const due = Math.max(this.started ?? now, now - 20) + (bytes / pace) * 1_000;
    this.started = due;
    if (due - now < 1) return;
    this.pty.pause();
    setTimeout(() => this.pty.resume(), due - now);
  }
}
