/** The running commands of `orch exec`, and its interrupts: Ctrl-C interrupts them, twice kills them, three times leaves them. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TerminalSession } from '../../client/terminal/terminal-session.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { count } from '../format.js';
import type { Interrupt } from '../interrupts.js';

/** Milliseconds that closed commands have to end. An agent kills a command 5 s after the hangup. */
const GRACE = 7_000;

type Controls = Pick<TerminalSession, 'signal' | 'close' | 'detach'>;

export class RunningCommands {
  /** Reason why no further command starts; null while they may. */
  stopReason: string | null = null;
  /** True after Ctrl-C. */
  interrupted = false;
  private readonly context: Context;
  /** True to explain the keys, as for several agents. */
  private readonly several: boolean;
  private readonly sessions = new Set<Controls>();
  /** Number of agents at work, including those whose session is being opened. */
  private active = 0;
  private readonly requests = new AbortController();
  private readonly stopListening: () => void;
  private presses = 0;
  private reject: (reason: Fault) => void = () => {};
  /** Rejects with `cancelled` when the operator leaves; never resolves. */
  readonly left: Promise<never>;

  constructor(context: Context, several: boolean) {
    this.context = context;
    this.several = several;
    setMaxListeners(0, this.requests.signal);
    this.left = new Promise<never>((_resolve, reject) => {
      this.reject = reject;
    });
    // It may be rejected after the race against it has ended.
    this.left.catch(() => {});
    this.stopListening = context.onInterrupt((by) => this.onInterrupt(by));
  }

  /** Aborts the requests in flight. */
  get signal(): AbortSignal {
    return this.requests.signal;
  }

  /** Counts an agent as at work until the returned function is called. */
  begin(): () => void {
    this.active += 1;
    return () => {
      this.active -= 1;
    };
  }

  add(session: Controls): void {
    this.sessions.add(session);
    if (this.stopReason !== null) session.close();
  }

  /** Sends the signal of earlier Ctrl-C presses to a session that has connected or reconnected. */
  connected(session: Controls): void {
    if (this.presses > 0) session.signal(this.presses === 1 ? 'INT' : 'KILL');
  }

  delete(session: Controls): void {
    this.sessions.delete(session);
  }

  /** Closes all commands and starts no further one. Abandons those that do not end in time. */
  async end(why: string): Promise<void> {
    this.stopReason ??= why;
    for (const session of this.sessions) session.close();
    const { clock } = this.context;
    const deadline = clock.monotonic() + GRACE;
    while (this.active > 0 && clock.monotonic() < deadline) await sleep(20);
    this.reject(new Fault('cancelled', why));
  }

  /** Detaches from the remaining sessions. */
  stop(): void {
    this.stopListening();
    this.requests.abort();
    for (const session of this.sessions) session.detach();
  }

  private onInterrupt(by: Interrupt): void {
    if (by !== 'SIGINT') {
      // After this the next signal ends the process.
      this.context.interrupt(by);
      void this.end('terminated');
      return;
    }
    this.presses += 1;
    this.interrupted = true;
    this.stopReason ??= 'interrupted';
    if (this.presses === 1) this.pass('INT', 'Interrupted');
    else if (this.presses === 2) this.pass('KILL', 'Killed');
    else this.leave(by);
  }

  private pass(signal: 'INT' | 'KILL', word: string): void {
    for (const session of this.sessions) session.signal(signal);
    if (!this.several) return;
    this.context.progress.end();
    const next = signal === 'INT' ? 'kill them' : 'leave';
    this.context.note(`${word} on ${count(this.sessions.size, 'agent')}. Press Ctrl-C again to ${next}.`);
  }

  private leave(by: Interrupt): void {
    for (const session of this.sessions) session.close();
    this.reject(new Fault('cancelled', 'interrupted'));
    this.context.interrupt(by);
  }
}
