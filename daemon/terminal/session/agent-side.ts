/** The agent's side of a session: its socket, the credit it was given, and the frames it sends. */
import type { Clock } from '../../../src/kernel/clock.js';
import { Fault } from '../../../src/kernel/fault.js';
import { validator } from '../../../src/kernel/validator.js';
import { ExitSchema } from '../../../src/terminal/exit.js';
import { ackFrame, type Frame, placeFrame, signalFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_CLOSE, TERMINAL_LIMITS, type TerminalSignal } from '../../../src/terminal/limits.js';
import type { AgentHello } from '../../../src/terminal/notes.js';
import type { Credit } from '../../../src/terminal/window.js';
import type { OnFrame, TerminalSocket } from '../terminal-socket.js';
import type { SessionCore } from './session-core.js';
import { BY_AGENT } from './session-lifecycle.js';

/** Milliseconds of untaken input after which the agent is pinged, and after which an unanswered ping counts as silence. */
const PROBE_AFTER = 900;
const INPUT_TIMEOUT = 1_900;
const ANSWER_TIMEOUT = 900;
/** Milliseconds without an answer that count as silence while no input waits. */
const WATCHED_ANSWER_TIMEOUT = 2_000;
const NO_CREDIT: Credit = { consumed: -1, limit: -1 };
/** Minimum bytes of new credit that are worth a frame. */
const MIN_GROWTH = TERMINAL_LIMITS.leastWindow / 4;

export class AgentSide {
  private readonly clock: Pick<Clock, 'monotonic'>;
  private socket: TerminalSocket | null = null;
  private lastHello: AgentHello | null = null;
  private sentCredit = NO_CREDIT;
  private lostSince: number | null;
  private isQuiet = false;
  /** Signals that arrived while the agent was away, without duplicates. */
  private readonly waiting = new Set<TerminalSignal>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock;
    this.lostSince = clock.monotonic();
  }

  get isConnected(): boolean {
    return this.socket !== null;
  }

  /** Monotonic time in milliseconds at which the socket was lost; null while it is open. */
  get lostAt(): number | null {
    return this.lostSince;
  }

  /** Latest hello; null before the first. */
  get hello(): AgentHello | null {
    return this.lastHello;
  }

  /** Output offset up to which the agent may send. */
  get allowed(): number {
    return this.sentCredit.limit;
  }

  attach(socket: TerminalSocket, hello: AgentHello): void {
    const before = this.socket;
    this.socket = socket;
    this.lastHello = hello;
    this.lostSince = null;
    this.isQuiet = false;
    before?.close(TERMINAL_CLOSE.replaced, 'another socket has taken the place of this one');
  }

  /** Handles the loss of a socket. Returns false when another socket replaced it before. */
  detach(socket: TerminalSocket): boolean {
    if (this.socket !== socket) return false;
    this.socket = null;
    this.lostSince = this.clock.monotonic();
    return true;
  }

  /** Forgets the credit, because a new socket starts without any. */
  resetCredit(): void {
    this.sentCredit = NO_CREDIT;
  }

  listen(onFrame: OnFrame): void {
    this.socket?.listen(onFrame);
  }

  send(data: Buffer): void {
    this.socket?.send(data);
  }

  /** Sends a signal now, or when the agent is back. */
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
   * Reports whether the agent is silent although input waits for it, or a client watches.
   * @param inputAge age in milliseconds of the oldest input that the agent has not taken
   */
  isSilent(inputAge: number, isWatched: boolean): boolean {
    if (this.socket === null) return false;
    // Read before the next ping, which would look unanswered at once.
    const { roundTrip, unanswered } = this.socket;
    if (inputAge > PROBE_AFTER || (isWatched && this.socket.isQuiet)) this.socket.probe();
    const isUrgent = this.isQuiet || inputAge > INPUT_TIMEOUT;
    const patience = isUrgent ? ANSWER_TIMEOUT : WATCHED_ANSWER_TIMEOUT;
    this.isQuiet = unanswered > patience + (roundTrip ?? 0);
    return this.isQuiet;
  }

  /** Measures the round trip. @param onLatency receives milliseconds, or null when the agent is away */
  measure(onLatency: (ms: number | null) => void): void {
    if (this.socket === null) onLatency(null);
    else this.socket.measure(onLatency);
  }

  /**
   * Sends the credit when it is worth a frame.
   * @param received end of the received output
   * @param isDue whether any new credit is worth a frame
   */
  allow(credit: Credit, received: number, isDue: boolean): void {
    const { socket, sentCredit } = this;
    if (socket === null) return;
    const consumed = Math.max(credit.consumed, sentCredit.consumed);
    const limit = Math.max(credit.limit, sentCredit.limit);
    const grown = limit - sentCredit.limit;
    const isNews = isDue
      ? grown > 0 || consumed > sentCredit.consumed
      : sentCredit.limit < 0 ||
        grown >= MIN_GROWTH ||
        (grown > 0 && sentCredit.limit - received < TERMINAL_LIMITS.leastWindow);
    const isStored = consumed - sentCredit.consumed >= TERMINAL_LIMITS.leastWindow;
    if (!isNews && !isStored) return;
    this.sentCredit = { consumed, limit };
    socket.send(ackFrame(consumed, limit));
  }
}

const isExit = validator(ExitSchema);

/** Handles the frames of the agent: output, acknowledgements and the exit. */
export class AgentFrames {
  private readonly core: SessionCore;
  private readonly onReady: () => void;

  /** @param onInStep called when the agent has sent its offsets */
  constructor(core: SessionCore, onInStep: () => void) {
    this.core = core;
    this.onReady = onInStep;
  }

  /** Starts the exchange with an agent that has connected: sends credit, input and signals, then reads its frames. */
  start(): void {
    const { agent, input, pace, participants, relay } = this.core;
    if (!agent.isConnected || agent.hello === null) return;
    const { kept_from: keptFrom, taken: hasTaken } = agent.hello;
    if (keptFrom > relay.received) this.skipLost(keptFrom);
    relay.rewindTo(keptFrom);
    agent.resetCredit();
    pace();
    input.agentAttached(hasTaken);
    agent.sendWaiting();
    agent.listen((frame, data) => this.take(frame, data));
    this.onReady();
    const { taken } = input;
    participants.writer?.socket.send(ackFrame(taken, taken + TERMINAL_LIMITS.inputBacklog));
    participants.broadcast({ kind: 'agent_link', connected: true });
  }

  /** Skips output that the agent no longer has. */
  private skipLost(from: number): void {
    const { facts, logger, recording, relay } = this.core;
    logger.warn('output of a terminal was lost', { session_id: facts.id, from: relay.received, to: from });
    relay.mark(`${from - relay.received} bytes of output were lost`);
    relay.skipTo(from);
    recording.stop('truncated', 'output was lost');
  }

  /** Forwards the agent's `place` to the writer, who decides about input that waited too long. */
  private placed(offset: number): void {
    const { input, participants } = this.core;
    const { writer } = participants;
    const place = input.placed(offset, writer?.gate.canAsk ?? true);
    if (place === null || writer === null) return;
    writer.gate.close();
    writer.socket.send(placeFrame(place));
  }

  private take(frame: Frame, data: Buffer): void {
    const { agent, clock, lifecycle, end, input, pace, participants, relay } = this.core;
    if (lifecycle.hasEnded) return;
    switch (frame.type) {
      case 'output':
        relay.take(frame, data, clock.monotonic());
        if (relay.received > agent.allowed) agent.close(TERMINAL_CLOSE.overrun, 'more output than the credit allows');
        pace();
        return;
      case 'ack':
        input.acked(frame.consumed);
        participants.writer?.socket.send(data);
        return;
      case 'place':
        this.placed(frame.offset);
        return;
      case 'echo':
        participants.writer?.socket.send(data);
        return;
      case 'exit':
        if (!isExit.check(frame.value)) throw new Fault('protocol_violation', 'the peer sent an exit that is none');
        if (!BY_AGENT.has(frame.value.reason)) {
          const { reason } = frame.value;
          throw new Fault('protocol_violation', `the peer sent the end ${reason}, which is not for it to tell`);
        }
        if (frame.value.output_open === true)
          relay.mark('a process that the command left behind still had its output open');
        end({ ...frame.value, final_offset: relay.received });
        return;
      case 'note':
      case 'eof':
      case 'unknown':
        return;
      default:
        throw new Fault('protocol_violation', `the peer sent ${frame.type}`);
    }
  }
}
