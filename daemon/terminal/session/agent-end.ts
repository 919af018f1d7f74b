/** The agent's end of a session: its socket while it has one, and how much output it was told that it may send. */
import type { Clock } from '../../../src/kernel/clock.js';
import { ackFrame, signalFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_CLOSE, TERMINAL_LIMITS, type TerminalSignal } from '../../../src/terminal/limits.js';
import type { AgentHello } from '../../../src/terminal/notes.js';
import type { Credit } from '../../../src/terminal/window.js';
import type { OnFrame, TerminalSocket } from '../terminal-socket.js';

/** Input that it has not taken asks for a sign of life after that, and makes a silence of what is not answered then. Milliseconds. */
const INPUT_ASKS = 900;
const INPUT_PATIENCE = 1_900;
const ANSWER_WITHIN = 900;
const UNTOLD: Credit = { consumed: -1, limit: -1 };
/** Credit that is worth a frame of its own, in bytes. */
const WORTH = TERMINAL_LIMITS.leastWindow / 4;

export class AgentEnd {
  private readonly clock: Pick<Clock, 'monotonic'>;
  private socket: TerminalSocket | null = null;
  private said: AgentHello | null = null;
  private told = UNTOLD;
  private awaySince: number | null;
  private isQuiet = false;
  /** Signals that came while it was away, each once. */
  private readonly waiting = new Set<TerminalSignal>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock;
    this.awaySince = clock.monotonic();
  }

  get isHere(): boolean {
    return this.socket !== null;
  }

  /** Since when its socket is gone, by the monotonic clock; null while it is here. */
  get lostAt(): number | null {
    return this.awaySince;
  }

  /** With which it came last; null before it has come. */
  get hello(): AgentHello | null {
    return this.said;
  }

  /** It was told that it may send output up to here. */
  get allowed(): number {
    return this.told.limit;
  }

  came(socket: TerminalSocket, hello: AgentHello): void {
    const before = this.socket;
    this.socket = socket;
    this.said = hello;
    this.awaySince = null;
    this.isQuiet = false;
    before?.close(TERMINAL_CLOSE.replaced, 'another socket has taken the place of this one');
  }

  /** False when another socket has taken the place of this one. */
  left(socket: TerminalSocket): boolean {
    if (this.socket !== socket) return false;
    this.socket = null;
    this.awaySince = this.clock.monotonic();
    return true;
  }

  /** It knows of no credit, and waits for it with its frames unread. */
  startOver(): void {
    this.told = UNTOLD;
  }

  listen(onFrame: OnFrame): void {
    this.socket?.listen(onFrame);
  }

  send(data: Buffer): void {
    this.socket?.send(data);
  }

  /** Sent now, or when it is back: nobody presses Ctrl-C twice because the agent was a moment late. */
  signal(name: TerminalSignal): void {
    if (this.socket === null) this.waiting.add(name);
    else this.send(signalFrame(name));
  }

  sendWaiting(): void {
    for (const name of this.waiting) this.send(signalFrame(name));
    this.waiting.clear();
  }

  close(code: number, reason: string): void {
    this.socket?.close(code, reason);
  }

  beat(): void {
    this.socket?.beat();
  }

  /**
   * Whether it is silent although input waits for it.
   * @param inputAge milliseconds since the first input that it has not taken
   */
  isSilent(inputAge: number): boolean {
    if (this.socket === null) return false;
    // Before the next question, which would look unanswered at once and keep the silence up for as long as input waits.
    const { roundTrip, unanswered } = this.socket;
    if (inputAge > INPUT_ASKS) this.socket.probe();
    const isLate = inputAge > INPUT_PATIENCE && unanswered > ANSWER_WITHIN + (roundTrip ?? 0);
    this.isQuiet = unanswered > 0 && (this.isQuiet || isLate);
    return this.isQuiet;
  }

  /** @param onLatency is given the milliseconds there and back, or null at once when it is not here */
  measure(onLatency: (ms: number | null) => void): void {
    if (this.socket === null) onLatency(null);
    else this.socket.measure(onLatency);
  }

  /**
   * Sends the credit when that is worth a frame.
   * @param received where the output ends that has come
   * @param isDue any news is worth one
   */
  allow(credit: Credit, received: number, isDue: boolean): void {
    const { socket, told } = this;
    if (socket === null) return;
    const consumed = Math.max(credit.consumed, told.consumed);
    const limit = Math.max(credit.limit, told.limit);
    const grown = limit - told.limit;
    const isNews = isDue
      ? grown > 0 || consumed > told.consumed
      : told.limit < 0 || grown >= WORTH || (grown > 0 && told.limit - received < TERMINAL_LIMITS.leastWindow);
    const isStored = consumed - told.consumed >= TERMINAL_LIMITS.leastWindow;
    if (!isNews && !isStored) return;
    this.told = { consumed, limit };
    socket.send(ackFrame(consumed, limit));
  }
}
