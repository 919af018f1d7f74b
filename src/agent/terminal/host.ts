/** All sessions in the terminal host, controlled by the agent's messages. */
import { setTimeout as delay } from 'node:timers/promises';
import { Fault, type FaultCode, isFault, messageOf } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import { loadNativePty, type NativePty } from '../pty/native-pty.js';
import { startCommand } from '../pty/piped-command.js';
import type { Program, ProgramListener } from '../pty/program.js';
import { Pty } from '../pty/pty.js';
import type { FromHost, ProgramOrder, ToHost } from './host-messages.js';
import { HostedSession, type HostedSessionOptions } from './hosted-session.js';

export type TerminalHostOptions = HostedSessionOptions['socket'] & {
  readonly logger: Logger;
  readonly post: (message: FromHost) => void;
};

/** Milliseconds that programs have after SIGHUP when the agent stops, and that the orchestrator has to receive the rest. */
const STOP_GRACE = 1_000;
const STOP_WITHIN = 2_000;
const LAST_WORD = 200;
const LOOK = 20;

export class TerminalHost {
  private readonly options: TerminalHostOptions;
  private readonly sessions = new Map<string, HostedSession>();
  private native: NativePty | null = null;
  private isStopping = false;

  constructor(options: TerminalHostOptions) {
    this.options = options;
  }

  take(message: Exclude<ToHost, { do: 'stop' }>): void {
    switch (message.do) {
      case 'open':
        this.open(message);
        return;
      case 'attach':
        this.sessions.get(message.sessionId)?.attach(message.dial.place, message.dial.ticket);
        return;
      case 'close':
        this.sessions.get(message.sessionId)?.close();
        return;
      case 'end-all':
        for (const session of this.sessions.values()) session.endFor(message.reason);
    }
  }

  /** Ends all sessions and reports to the orchestrator, within about two seconds. */
  async stop(): Promise<void> {
    this.isStopping = true;
    for (const session of this.sessions.values()) session.endFor('agent_stopped', STOP_GRACE);
    await this.waitUntilEmpty(STOP_WITHIN);
    if (this.sessions.size === 0) return;
    for (const session of this.sessions.values()) session.reportEnd();
    await delay(LAST_WORD);
  }

  /** Kills everything, because the agent is gone. */
  async abandon(): Promise<void> {
    this.isStopping = true;
    for (const session of this.sessions.values()) session.close();
    await this.waitUntilEmpty(STOP_GRACE);
    for (const session of this.sessions.values()) session.killRemaining();
  }

  private async waitUntilEmpty(milliseconds: number): Promise<void> {
    for (let spent = 0; this.sessions.size > 0 && spent < milliseconds; spent += LOOK) await delay(LOOK);
  }

  /** Checks the order and dials back. The program starts later. */
  private open({ sessionId, order, dial, startBy }: Extract<ToHost, { do: 'open' }>): void {
    const { post: say, logger, privateKey, clock, pace } = this.options;
    try {
      if (this.isStopping) throw new Fault('shutting_down', 'the agent stops');
      if (order.size !== null) this.native ??= loadNativePty();
    } catch (error) {
      say({ is: 'refused', sessionId, ...refusalOf(error) });
      return;
    }
    const session = new HostedSession({
      id: sessionId,
      socket: { privateKey, clock, pace },
      startBy,
      reportsOpenOutput: order.wait !== null,
      start: (listener) => this.start(order, listener),
      onStarted: (mark) => say({ is: 'started', sessionId, mark }),
      onFailed: (reason) => logger.error('the program of a terminal did not start', { session: sessionId, reason }),
      onLost: (reason) => {
        logger.debug('a terminal has lost its connection', { session: sessionId, reason });
        say({ is: 'lost', sessionId });
      },
      onEnded: () => say({ is: 'ended', sessionId }),
      onDone: () => {
        this.sessions.delete(sessionId);
        say({ is: 'gone', sessionId });
      },
    });
    this.sessions.set(sessionId, session);
    say({ is: 'opened', sessionId });
    session.attach(dial.place, dial.ticket);
  }

  private async start(
    { launch, size, stdin, timeoutSecs, wait }: ProgramOrder,
    listener: ProgramListener,
  ): Promise<Program> {
    if (size === null) return startCommand({ launch, stdin, timeoutSecs, wait: wait === true, listener });
    this.native ??= loadNativePty();
    return new Pty({ native: this.native, launch, ...size, listener });
  }
}

/** Puts the hint about a missing library into the message, because operators only see the message of an agent's fault. */
function refusalOf(error: unknown): { readonly code: FaultCode; readonly message: string } {
  if (!isFault(error)) return { code: 'internal', message: messageOf(error) };
  if (error.code !== 'native_module_missing') return { code: error.code, message: error.message };
  return { code: 'terminal_unsupported', message: `${error.message}: ${error.hint}` };
}
