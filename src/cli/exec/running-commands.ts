/** The commands that run now, and what interrupts make of them: Ctrl-C is theirs, twice kills them, three times leaves. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TerminalSession } from '../../client/terminal/terminal-session.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { count } from '../format.js';
import type { Interrupt } from '../interrupts.js';

/** How long commands have to end that were told to, in milliseconds: an agent kills what does not hang up after 5 s. */
const GRACE = 7_000;

type Controls = Pick<TerminalSession, 'signal' | 'close' | 'detach'>;

export class RunningCommands {
  /** Why no further command is to start; null while they may. */
  halted: string | null = null;
  /** Ctrl-C was pressed. */
  interrupted = false;
  private readonly context: Context;
  /** Several agents: the person is told what the keys do. */
  private readonly several: boolean;
  private readonly sessions = new Set<Controls>();
  /** Agents that are worked on, those whose session is still being opened among them. */
  private active = 0;
  private readonly requests = new AbortController();
  private readonly stopListening: () => void;
  private presses = 0;
  private reject: (reason: Fault) => void = () => {};
  /** Rejects with Fault `cancelled` when the person leaves; never resolves. */
  readonly left: Promise<never>;

  constructor(context: Context, several: boolean) {
    this.context = context;
    this.several = several;
    setMaxListeners(0, this.requests.signal);
    this.left = new Promise<never>((_resolve, reject) => {
      this.reject = reject;
    });
    // It may be rejected when nobody races against it any more.
    this.left.catch(() => {});
    this.stopListening = context.onInterrupt((by) => this.hear(by));
  }

  /** Ends the requests that are under way. */
  get signal(): AbortSignal {
    return this.requests.signal;
  }

  /** One more agent is worked on, until the returned function is called. */
  begin(): () => void {
    this.active += 1;
    return () => {
      this.active -= 1;
    };
  }

  add(session: Controls): void {
    this.sessions.add(session);
    if (this.halted !== null) session.close();
  }

  /** It is connected, for the first time or again: what was pressed meanwhile reaches it now. */
  connected(session: Controls): void {
    if (this.presses > 0) session.signal(this.presses === 1 ? 'INT' : 'KILL');
  }

  delete(session: Controls): void {
    this.sessions.delete(session);
  }

  /** Has all of them end, and no further one start; leaves those that do not end in time. */
  async end(why: string): Promise<void> {
    this.halted ??= why;
    for (const session of this.sessions) session.close();
    const { clock } = this.context;
    const deadline = clock.monotonic() + GRACE;
    while (this.active > 0 && clock.monotonic() < deadline) await sleep(20);
    this.reject(new Fault('cancelled', why));
  }

  /** Lets go of whatever is still there. */
  stop(): void {
    this.stopListening();
    this.requests.abort();
    for (const session of this.sessions) session.detach();
  }

  private hear(by: Interrupt): void {
    if (by !== 'SIGINT') {
      // From now on the next signal ends the process as the system does.
      this.context.interrupt(by);
      void this.end('told to end');
      return;
    }
    this.presses += 1;
    this.interrupted = true;
    this.halted ??= 'interrupted';
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
