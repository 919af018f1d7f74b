/** One session in the terminal host: its program, its unacknowledged output, and its socket while it has one. */

import { messageOf } from '../../kernel/fault.js';
import type { Exit, ExitReason } from '../../terminal/exit.js';
import { ackFrame, echoFrame, type Frame, jsonFrame, type OutputStream, placeFrame } from '../../terminal/frames.js';
import { InputGate } from '../../terminal/late-input.js';
import {
  TERMINAL_CLOSE,
  TERMINAL_LIMITS,
  TERMINAL_SIGNALS,
  TERMINAL_VERSION,
  type TerminalSignal,
} from '../../terminal/limits.js';
import { type SessionMark, sessionMembers, signalSession } from '../pty/process-table.js';
import type { Program, ProgramEnd, ProgramListener } from '../pty/program.js';
import { systemMonotonic } from './host-messages.js';
import { EchoWatch, InputIntake, OutputSender } from './session-io.js';
import { SessionSocket, type SessionSocketOptions } from './session-socket.js';

export interface HostedSessionOptions {
  readonly id: string;
  readonly socket: Pick<SessionSocketOptions, 'privateKey' | 'clock' | 'pace'>;
  /** Time of `systemMonotonic` after which the program never starts. */
  readonly startBy: number;
  /** True if the orchestrator knows of output that a process still has open. */
  readonly reportsOpenOutput: boolean;
  /** Starts the program; called at most once. */
  readonly start: (listener: ProgramListener) => Promise<Program>;
  readonly onStarted: (mark: SessionMark) => void;
  readonly onFailed: (reason: string) => void;
  readonly onLost: (reason: string) => void;
  readonly onEnded: () => void;
  readonly onDone: () => void;
}

/** Milliseconds between SIGHUP and SIGKILL. */
const HANG_UP = 5_000;
const LOOK = 50;
/** Milliseconds without the orchestrator after which a session ends. */
const ABANDONED = 12 * 60 * 60 * 1000;
/** Milliseconds between the loss of a socket that never worked and its report. */
const FIRST_PAUSE = 250;
const MAX_PAUSE = 30_000;
/** Milliseconds after which taken input is acknowledged. */
const ACK_PAUSE = 20;
/** Maximum bytes of output that is sent at once when nothing else waits: the echo of a key or a short paste. */
const ECHO = 256;
/** Bytes of output in one event-loop turn that make it a burst. */
const BURST = 2_048;

export class HostedSession implements ProgramListener {
  private readonly options: HostedSessionOptions;
  private program: Program | null = null;
  /** `waiting`: before the first acknowledgement, which says that the session is recorded, listed and audited. */
  private stage: 'waiting' | 'starting' | 'started' = 'waiting';
  private starting: NodeJS.Immediate | undefined;
  private readonly deadline: NodeJS.Timeout;
  /** Frames for a program that is being started. */
  private early: Frame[] = [];
  private socket: SessionSocket | null = null;
  private readonly sender = new OutputSender();
  private readonly intake = new InputIntake();
  private gate = new InputGate();
  private readonly echo: EchoWatch;
  /** True when the orchestrator has sent its offsets on this socket. */
  private hasOffsets = false;
  private flushing: NodeJS.Immediate | undefined;
  /** Bytes of output that waited at the last turn. */
  private gathered = 0;
  private generation: number | null = null;
  private end: Exit | null = null;
  private isExitSent = false;
  /** Reason of an end that was decided on this machine. */
  private ending: ExitReason | null = null;
  /** True when the orchestrator wants no more output. */
  private isClosing = false;
  private isGone = false;
  private isKilled = false;
  private failures = 0;
  private killing: NodeJS.Timeout | undefined;
  private waiting: NodeJS.Timeout | undefined;
  private acknowledging: NodeJS.Timeout | undefined;

  constructor(options: HostedSessionOptions) {
    this.options = options;
    this.echo = new EchoWatch({
      clock: options.socket.clock,
      produced: () => (this.sender.isWanted ? this.sender.produced : null),
      readSettings: async () => this.program?.readSettings() ?? 'unknown',
      send: (ack) => {
        if (this.hasOffsets) this.socket?.send(echoFrame(ack));
      },
    });
    this.deadline = setTimeout(() => this.drop(), Math.max(0, options.startBy - systemMonotonic()));
  }

  /** Dials the orchestrator and replaces the earlier socket. */
  attach(place: SessionSocketOptions['place'], ticket: string): void {
    if (this.isGone || this.isClosing) return;
    this.dropSocket(TERMINAL_CLOSE.replaced);
    clearTimeout(this.waiting);
    const socket = new SessionSocket({
      ...this.options.socket,
      place,
      hello: () => ({
        version: TERMINAL_VERSION,
        session_id: this.options.id,
        ticket,
        produced: this.sender.produced,
        kept_from: this.sender.keptFrom,
        taken: this.intake.taken,
      }),
      onFrame: (frame) => this.receive(frame),
      onDrain: () => this.flushSoon(),
      onClosed: (code, reason) => this.onLost(code, reason),
    });
    this.socket = socket;
    this.gate = new InputGate();
    // An orchestrator whose clock went back counts from a lower generation.
    this.generation = null;
  }

  /** Ends the program and then forgets the session, which the orchestrator no longer wants. */
  close(): void {
    if (this.isClosing) return;
    this.isClosing = true;
    this.dropSocket(TERMINAL_CLOSE.done);
    clearTimeout(this.waiting);
    if (this.end !== null || this.stage === 'waiting') {
      this.forget();
      return;
    }
    this.sender.discard();
    this.pace();
    this.hangUp(HANG_UP);
  }

  /** Ends the program. The orchestrator gets `reason` after the output that it still takes. */
  endFor(reason: ExitReason, killAfter = HANG_UP): void {
    if (this.isClosing || this.end !== null || this.ending !== null) return;
    this.ending = reason;
    this.pace();
    if (this.stage === 'waiting') this.settle({ code: null, signal: null, timedOut: false });
    else this.hangUp(killAfter);
  }

  /** Reports the end now, after the output sent so far. */
  reportEnd(): void {
    this.killRemaining();
    if (this.isExitSent || this.socket === null || !this.hasOffsets) return;
    this.isExitSent = true;
    const { code = null, signal = null, reason: known = 'agent_stopped' } = this.end ?? {};
    const reason = this.sender.isAllSent ? known : 'agent_stopped';
    this.socket.send(jsonFrame('exit', { code, signal, reason, final_offset: this.sender.sent } satisfies Exit));
  }

  /** Kills the remaining processes. */
  killRemaining(): void {
    clearTimeout(this.killing);
    this.isKilled = true;
    // Background processes of a program that exited by itself may stay.
    const isOver = this.end !== null && this.ending === null;
    if (this.program !== null && !isOver) signalSession(this.program.mark, 'SIGKILL');
  }

  output(bytes: Buffer, stream: OutputStream): void {
    if (this.isClosing) return;
    // A program that is being ended may write more than the orchestrator accepts.
    if (this.ending !== null && !this.sender.isWanted) return;
    this.sender.append(bytes, stream);
    const isAlone = this.flushing === undefined && this.sender.unsent === bytes.length;
    if (isAlone && bytes.length <= ECHO) this.flush();
    else this.flushSoon();
    this.pace();
  }

  inputTaken(total: number): void {
    this.echo.recordGiven(total);
    if (this.intake.recordTaken(total)) this.acknowledge();
    else this.acknowledging ??= setTimeout(() => this.acknowledge(), ACK_PAUSE);
  }

  ended(end: ProgramEnd): void {
    if (this.isClosing || this.ending !== null) this.waitForHangup(end);
    else this.settle(end);
  }

  /** Gives all processes of a session that was ended time to hang up. */
  private waitForHangup(end: ProgramEnd): void {
    const isLeft = !this.isKilled && this.program !== null && sessionMembers(this.program.mark).length > 0;
    if (isLeft) setTimeout(() => this.waitForHangup(end), LOOK);
    else this.settle(end);
  }

  /**
   * Starts the program after the event loop has polled once more. While this process was stopped, an order to end the session may
   * have come in on the other connection; the list of events that the loop is working on can be older than that.
   */
  private startSoon(): void {
    if (this.stage !== 'waiting' || this.end !== null) return;
    this.starting ??= setImmediate(() => {
      this.starting = setImmediate(() => void this.start());
    });
  }

  private async start(): Promise<void> {
    this.starting = undefined;
    if (this.stage !== 'waiting' || this.end !== null || !this.hasOffsets || this.isGone) return;
    if (systemMonotonic() >= this.options.startBy) {
      this.drop();
      return;
    }
    this.stage = 'starting';
    clearTimeout(this.deadline);
    try {
      this.program = await this.options.start(this);
    } catch (error) {
      this.failed(messageOf(error));
      return;
    }
    this.stage = 'started';
    this.options.onStarted(this.program.mark);
    this.pace();
    // The end may have been decided during the start.
    if (this.isClosing || this.ending !== null) this.hangUp(HANG_UP);
    for (const frame of this.early.splice(0)) this.handle(frame);
  }

  /** Reports a failed start. The operator reads the reason as output. */
  private failed(reason: string): void {
    this.stage = 'started';
    this.early = [];
    this.ending ??= 'failed';
    this.options.onFailed(reason);
    this.sender.append(Buffer.from(`orch: the program did not start: ${reason}\r\n`), 'err');
    this.settle({ code: null, signal: null, timedOut: false });
  }

  /** Drops a session that the orchestrator did not serve in time. */
  private drop(): void {
    if (this.stage === 'waiting') this.close();
  }

  private settle({ code, signal, timedOut, isOutputOpen = false }: ProgramEnd): void {
    this.echo.stop();
    clearTimeout(this.killing);
    const reason = this.ending ?? (timedOut ? 'timed_out' : 'exited');
    const open = isOutputOpen && this.options.reportsOpenOutput ? { output_open: true } : {};
    this.end = { code, signal, reason, final_offset: this.sender.produced, ...open };
    if (this.isClosing) {
      this.forget();
      return;
    }
    this.options.onEnded();
    this.flushSoon();
  }

  private hangUp(killAfter: number): void {
    if (this.program === null) return;
    const { mark } = this.program;
    signalSession(mark, 'SIGHUP');
    signalSession(mark, 'SIGCONT');
    this.program.stopWaiting();
    this.killing = setTimeout(() => this.killRemaining(), killAfter);
  }

  /** Reads the program while its output is wanted. */
  private pace(): void {
    const isWanted = this.isClosing || this.ending !== null || this.sender.isWanted;
    if (isWanted) this.program?.resume();
    else this.program?.pause();
  }

  private receive(frame: Frame): void {
    if (frame.type === 'ack') {
      this.credited(frame.consumed, frame.limit);
      return;
    }
    if (frame.type === 'anew') {
      this.gate.open(this.socket?.stalls ?? 0);
      return;
    }
    if ((frame.type === 'input' || frame.type === 'eof') && !this.passes()) return;
    this.handle(frame);
  }

  /** Reports whether input is taken. Asks the orchestrator about input that may be old. */
  private passes(): boolean {
    const passage = this.gate.decide(this.socket?.stalls ?? 0);
    if (passage === 'ask') this.socket?.send(placeFrame(this.intake.end));
    return passage === 'take';
  }

  private handle(frame: Frame): void {
    if (this.program === null) {
      if (this.end === null) this.early.push(frame);
      return;
    }
    switch (frame.type) {
      case 'input':
        this.input(frame.offset, frame.bytes);
        return;
      case 'askEcho':
        this.echo.ask(frame.offset);
        return;
      case 'eof':
        this.program?.endInput();
        return;
      case 'resize':
        this.resize(frame);
        return;
      case 'signal':
        if (isSignal(frame.signal)) this.program?.signal(frame.signal);
        return;
      default:
        return;
    }
  }

  private credited(consumed: number, limit: number): void {
    this.sender.credited(consumed, limit);
    if (!this.hasOffsets) {
      this.hasOffsets = true;
      this.failures = 0;
      this.sender.rewind();
      this.socket?.send(placeFrame(this.intake.end));
      // The writer needs to know its limit.
      this.acknowledge();
      this.startSoon();
    }
    this.pace();
    this.flush();
  }

  private input(offset: number, bytes: Buffer): void {
    if (this.end !== null) return;
    const fresh = this.intake.accept(offset, bytes);
    if (fresh.length > 0) this.program?.write(fresh);
  }

  /** Applies the newest size. The generation wraps around. */
  private resize({ cols, rows, generation }: Extract<Frame, { type: 'resize' }>): void {
    if (this.generation !== null && !isNewer(generation, this.generation)) return;
    this.generation = generation;
    this.program?.resize(cols, rows);
  }

  private acknowledge(): void {
    clearTimeout(this.acknowledging);
    this.acknowledging = undefined;
    if (!this.hasOffsets) return;
    const { consumed, limit } = this.intake.acknowledge();
    this.socket?.send(ackFrame(consumed, limit));
  }

  private flushSoon(): void {
    this.flushing ??= setImmediate(() => this.gather());
  }

  /**
   * Collects a burst while each turn brings more, up to a frame, because small frames cost as much as large ones. It uses no timer,
   * and no key waits.
   */
  private gather(): void {
    const before = this.sender.unsent;
    const isGrowing = before - this.gathered >= BURST;
    if (isGrowing && before >= TERMINAL_LIMITS.swiftOutput) this.sendFrames(TERMINAL_LIMITS.swiftOutput);
    const { unsent } = this.sender;
    const mayWait = isGrowing && unsent > 0 && unsent < TERMINAL_LIMITS.swiftOutput && this.end === null;
    this.gathered = mayWait ? unsent : 0;
    if (mayWait) this.flushing = setImmediate(() => this.gather());
    else this.flush();
  }

  private flush(): void {
    clearImmediate(this.flushing);
    this.flushing = undefined;
    this.sendFrames(1);
    if (this.socket === null || !this.hasOffsets) return;
    if (this.end === null || this.isExitSent || !this.sender.isAllSent) return;
    this.isExitSent = true;
    this.socket.send(jsonFrame('exit', this.end));
  }

  /** Sends frames while at least `least` bytes wait. */
  private sendFrames(least: number): void {
    if (this.socket === null || !this.hasOffsets) return;
    while (this.sender.unsent >= least && this.socket.hasRoom) {
      const frame = this.sender.frame();
      if (frame === null) break;
      this.socket.send(...frame);
    }
  }

  private dropSocket(code: number): void {
    this.socket?.close(code);
    this.onDisconnected();
  }

  private onDisconnected(): void {
    this.socket = null;
    this.hasOffsets = false;
    clearImmediate(this.flushing);
    this.flushing = undefined;
  }

  private onLost(code: number | null, reason: string): void {
    const isTold = this.isExitSent;
    const wasLive = this.hasOffsets;
    this.onDisconnected();
    // A program that did not start on this socket is unwanted or too late.
    const isUnwanted = this.stage === 'waiting' && code !== null;
    if (isUnwanted || (isTold && code === TERMINAL_CLOSE.done)) {
      this.forget();
      return;
    }
    this.isExitSent = false;
    // Waits before asking for a ticket after a failure.
    const pause = wasLive ? 0 : Math.min(MAX_PAUSE, FIRST_PAUSE * 2 ** this.failures);
    if (!wasLive) this.failures += 1;
    this.waiting = setTimeout(() => {
      this.options.onLost(reason);
      this.waiting = setTimeout(() => this.close(), ABANDONED);
    }, pause);
  }

  private forget(): void {
    if (this.isGone) return;
    this.isGone = true;
    clearTimeout(this.waiting);
    clearTimeout(this.acknowledging);
    clearTimeout(this.killing);
    clearTimeout(this.deadline);
    clearImmediate(this.starting);
    this.options.onDone();
  }
}

const isNewer = (generation: number, before: number): boolean => {
  const ahead = (generation - before) >>> 0;
  return ahead > 0 && ahead < 2 ** 31;
};

const isSignal = (name: string): name is TerminalSignal => (TERMINAL_SIGNALS as readonly string[]).includes(name);
