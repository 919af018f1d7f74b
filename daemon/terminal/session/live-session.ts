/** A session that is open: joins its agent's socket and those of any number of operators, and knows when it is over. */
import type { Clock } from '../../../src/kernel/clock.js';
import { messageOf } from '../../../src/kernel/fault.js';
import type { Logger } from '../../../src/kernel/logger.js';
import { type Exit, type ExitReason, endedStatus } from '../../../src/terminal/exit.js';
import { TERMINAL_CLOSE } from '../../../src/terminal/limits.js';
import type { AgentHello } from '../../../src/terminal/notes.js';
import type { RequestContext } from '../../core/domain-event.js';
import type { ResumeKey, SessionBook } from '../session-book.js';
import type { TerminalSocket } from '../terminal-socket.js';
import { AgentEnd } from './agent-end.js';
import { AgentFrames } from './agent-frames.js';
import { ClientFrames } from './client-frames.js';
import { InputRelay } from './input-relay.js';
import { type Arrival, Joining } from './joining.js';
import { OutputRelay } from './output-relay.js';
import { People } from './people.js';
import { ResumeKeys } from './resume-keys.js';
import type { ResumeSecrets } from './resume-secrets.js';
import type { ClockLimits } from './session-clocks.js';
import { exitOf, type SessionCore } from './session-core.js';
import { Course } from './session-course.js';
import { SessionEnding } from './session-ending.js';
import { hasTerminal, type SessionFacts } from './session-facts.js';
import type { SessionParts, Size } from './session-parts.js';
import type { RecordingState, RecordingStop } from './session-recording.js';
import type { SessionState } from './session-state.js';
import { SessionWatch } from './session-watch.js';

export interface LiveSessionOptions {
  readonly facts: SessionFacts;
  readonly resume: ResumeKey | null;
  readonly book: SessionBook;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly resumeSecrets: ResumeSecrets;
  readonly limits: () => ClockLimits;
  /** Over for the agent: told by whatever way there is. */
  readonly dismiss: () => void;
  /** It is over and stored, and nobody is being served any more. */
  readonly onGone: () => void;
}

/** What the store knows only when it is over. */
export interface SessionNow {
  readonly recording: RecordingState;
  readonly outputBytes: number;
  readonly size: Size;
  readonly writer: string | null;
  readonly viewers: string[];
}

/** What there is of it once its program runs. */
interface Running {
  readonly core: SessionCore;
  readonly agentFrames: AgentFrames;
  readonly ending: SessionEnding;
  readonly joining: Joining;
}

/** Output that has not grown for that long is quiet, in milliseconds. */
const QUIET = 10_000;

export class LiveSession {
  readonly facts: SessionFacts;
  private readonly options: LiveSessionOptions;
  private readonly course = new Course();
  private readonly people = new People();
  private readonly agent: AgentEnd;
  private readonly input: InputRelay;
  private readonly watch: SessionWatch;
  /** Resolves when the output can be served and the agent's place in the input is known, or it is all over. */
  private readonly inStep: { readonly promise: Promise<void>; readonly resolve: () => void };
  private running: Running | null = null;
  /** People know that the agent does not answer. */
  private isSilenceTold = false;
  private storing: Promise<void> | null = null;

  constructor(options: LiveSessionOptions) {
    const { clock, facts } = options;
    this.options = options;
    this.facts = facts;
    this.agent = new AgentEnd(clock);
    this.watch = new SessionWatch(clock);
    this.input = new InputRelay({
      clock,
      send: (data) => this.agent.send(data),
      // Above what an orchestrator before this one has counted to.
      generation: Math.floor(clock.now() / 1000) % 2 ** 32,
    });
    let resolve = () => {};
    const promise = new Promise<void>((done) => {
      resolve = done;
    });
    this.inStep = { promise, resolve };
  }

  get state(): SessionState {
    return this.course.state;
  }

  /** Null before its program runs. */
  get now(): SessionNow | null {
    if (this.running === null) return null;
    const { recording, relay } = this.running.core;
    const { received: outputBytes, size } = relay;
    return { recording: recording.state, outputBytes, size, ...this.people.names };
  }

  /** Who holds the pen. */
  get writer(): string | null {
    return this.people.names.writer;
  }

  /** The agent's socket for it is open. */
  get hasAgent(): boolean {
    return this.agent.isHere;
  }

  /** Everything that the output goes to is there, and the store has the session: the agent may start the program. */
  open(parts: SessionParts): void {
    this.course.take({ type: 'opened' });
    const running = this.run(parts);
    this.running = running;
    if (parts.isInStep) this.inStep.resolve();
    if (this.agent.isHere) this.course.take({ type: 'agent_came' });
    running.agentFrames.greet();
    parts.recording.listen((stop) => this.recordingStopped(running.core, stop));
  }

  /** The agent has dialled back with a ticket for this session. */
  agentCame(socket: TerminalSocket, hello: AgentHello): void {
    if (this.course.isOver) {
      socket.close(TERMINAL_CLOSE.done, 'the session is over');
      return;
    }
    this.agent.came(socket, hello);
    this.isSilenceTold = false;
    if (this.running === null) return;
    this.course.take({ type: 'agent_came' });
    this.running.agentFrames.greet();
  }

  agentLeft(socket: TerminalSocket): void {
    if (!this.agent.left(socket) || !this.course.isActive) return;
    this.course.take({ type: 'agent_left' });
    this.people.tell({ kind: 'agent_link', connected: false });
  }

  /** Serves somebody who attaches, or comes back. */
  async join(arrival: Arrival): Promise<void> {
    await this.inStep.promise;
    if (this.running !== null) await this.running.joining.join(arrival);
    else arrival.socket.close(TERMINAL_CLOSE.unknown, 'the session is over');
  }

  /** The pen goes with it. */
  left(socket: TerminalSocket): void {
    this.running?.joining.left(socket);
  }

  /** Open, or over and not yet shown to the end to the one who wrote. */
  isServing(operatorId: string): boolean {
    return this.running?.ending.isServing(operatorId) ?? !this.course.isOver;
  }

  /** The operator may not be here any more: cuts what is open. */
  revoke(operatorId: string): void {
    const isTheirs = ({ operator }: { readonly operator: { readonly operator_id: string } }) =>
      operator.operator_id === operatorId;
    this.people.close(TERMINAL_CLOSE.revoked, 'you may not use this any more', isTheirs);
  }

  /** Ends it, unless it has ended. Resolves when that is stored. */
  end(exit: Exit, by: RequestContext | null = null): Promise<void> {
    // What an end that is decided here cuts off is no output that is missing.
    const isDecided = endedStatus(exit.reason) === 'closed';
    const received = this.running?.core.relay.received ?? null;
    const final_offset = exit.final_offset ?? (isDecided ? received : null);
    this.storing ??= this.finish({ ...exit, final_offset }, by);
    return this.storing;
  }

  /** Ends it with nobody waiting for that. */
  endSoon(reason: ExitReason): void {
    this.background(this.end({ ...exitOf(reason), final_offset: this.running?.core.relay.received ?? null }));
  }

  /** The orchestrator stops: the program goes on, everybody is told to come back. */
  leave(): void {
    this.people.close(TERMINAL_CLOSE.goingAway, 'the orchestrator stops');
    this.agent.close(TERMINAL_CLOSE.goingAway, 'the orchestrator stops');
  }

  /** Lets go of what it holds, while the session goes on. */
  async release(): Promise<void> {
    this.running?.core.relay.dropScreen();
    if (this.course.isOver) await this.storing;
    else await this.running?.core.recording.release();
  }

  /** The disk has more of the output, or the screen has shown more of it. */
  advanced(): void {
    this.pace(false);
  }

  /** To be called each second. */
  tick(): void {
    this.agent.beat();
    for (const { socket } of this.people.all) socket.beat();
    if (this.running === null) return;
    if (this.course.isOver) {
      this.running.ending.leaveWhenServed();
      return;
    }
    this.tellSilence();
    this.running.core.relay.settle(this.options.clock.monotonic(), QUIET);
    this.pace(true);
    this.look();
  }

  private run(parts: SessionParts): Running {
    const { facts, course, people, agent, input, watch } = this;
    const { book, clock, logger, resume, resumeSecrets } = this.options;
    const core: SessionCore = {
      ...{ facts, course, people, agent, input, watch, book, clock, logger },
      keys: new ResumeKeys({ sessionId: facts.id, secrets: resumeSecrets, pen: resume }),
      recording: parts.recording,
      relay: new OutputRelay({ ...parts, recorder: parts.recording.recorder, isLossless: !hasTerminal(facts) }),
      end: (exit, by) => this.background(this.end(exit, by)),
      pace: () => this.pace(false),
    };
    const ending = new SessionEnding(core, this.options);
    const frames = new ClientFrames({ core, askPen: (client) => this.background(joining.askPen(client)) });
    const joining: Joining = new Joining({ core, ending, frames });
    return { core, ending, joining, agentFrames: new AgentFrames(core, this.inStep.resolve) };
  }

  private async finish(exit: Exit, by: RequestContext | null): Promise<void> {
    this.course.take({ type: 'ended', exit });
    this.inStep.resolve();
    if (this.running !== null) return this.running.ending.store(exit, by);
    const { dismiss, onGone } = this.options;
    dismiss();
    this.course.take({ type: 'stored' });
    onGone();
  }

  private recordingStopped({ relay }: SessionCore, { reason, state, isFatal }: RecordingStop): void {
    relay.dropRecorder();
    if (this.course.isOver) return;
    if (isFatal) {
      this.endSoon('recording_failed');
      return;
    }
    this.people.tell({ kind: 'recording', recorded: false, text: `this is not recorded any more: ${reason}` });
    this.background(this.options.book.recordingStopped(this.facts, state));
    this.pace(false);
  }

  /** Unacknowledged input is the first sign that the agent's connection is dead. */
  private tellSilence(): void {
    if (!this.agent.isHere) return;
    const isSilent = this.agent.isSilent(this.input.age);
    if (isSilent === this.isSilenceTold) return;
    this.isSilenceTold = isSilent;
    this.people.tell({ kind: 'agent_link', connected: !isSilent });
  }

  /** Ends it when it is time to, and warns people before. */
  private look(): void {
    const isAway = hasTerminal(this.facts) ? this.people.count === 0 : this.people.writer === null;
    const { openedAt } = this.facts;
    const alarm = this.watch.alarm(this.options.limits(), { openedAt, isAway, agentLostAt: this.agent.lostAt });
    if (alarm === null) return;
    const { left, reason, text } = alarm;
    if (left <= 0) this.endSoon(reason);
    else this.people.tell({ kind: 'ending', seconds: Math.ceil(left / 1000), text });
  }

  /** @param isDue the agent is told even of little */
  private pace(isDue: boolean): void {
    if (this.running === null || !this.course.isActive) return;
    const { relay } = this.running.core;
    this.agent.allow(relay.credit(), relay.received, isDue);
  }

  private background(work: Promise<unknown>): void {
    const { id: session_id } = this.facts;
    work.catch((error: unknown) =>
      this.options.logger.error('something of a terminal failed', { session_id, reason: messageOf(error), error }),
    );
  }
}
