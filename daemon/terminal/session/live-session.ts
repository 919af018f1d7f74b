/** An open session: connects the agent's socket with the sockets of any number of clients until the session ends. */

import { messageOf } from '../../../src/kernel/fault.js';
import { type Exit, type ExitReason, endedStatus } from '../../../src/terminal/exit.js';
import { TERMINAL_CLOSE } from '../../../src/terminal/limits.js';
import type { AgentHello, TerminalMode } from '../../../src/terminal/notes.js';
import type { Core } from '../../core/core.js';
import type { RequestContext } from '../../core/domain-event.js';
import type { SessionParts, Size } from '../session-factory.js';
import type { ResumeKey, SessionStore } from '../session-store.js';
import type { TerminalSocket } from '../terminal-socket.js';
import { AgentFrames, AgentSide } from './agent-side.js';
import { ClientFrames } from './client-side.js';
import { InputRelay } from './input-relay.js';
import { OutputRelay } from './output-relay.js';
import { Admission, type JoinRequest, Participants } from './participants.js';
import { ResumeKeys, type ResumeSecrets } from './resume.js';
import { exitOf, hasTerminal, type SessionCore, type SessionFacts } from './session-core.js';
import {
  type ClockLimits,
  SessionClocks,
  SessionEnding,
  SessionLifecycle,
  type SessionState,
} from './session-lifecycle.js';
import type { RecordingState, RecordingStop } from './session-recording.js';

interface LiveSessionOptions extends Pick<Core, 'clock' | 'logger'> {
  readonly facts: SessionFacts;
  readonly resume: ResumeKey | null;
  readonly store: SessionStore;
  readonly resumeSecrets: ResumeSecrets;
  readonly limits: () => ClockLimits;
  /** Returns true if the operator may type in the session now. */
  readonly mayType: (operatorId: string) => Promise<boolean>;
  /** Tells the agent over its link that the session is over. */
  readonly dismiss: () => void;
  /** Called when the end is stored and no client is served. */
  readonly onDone: () => void;
}

/** Current state of an open session, which the store gets at the end. */
export interface SessionNow {
  readonly recording: RecordingState;
  readonly outputBytes: number;
  readonly size: Size;
  readonly writer: string | null;
  readonly viewers: string[];
}

/** Parts that exist while the program runs. */
interface Running {
  readonly core: SessionCore;
  readonly agentFrames: AgentFrames;
  readonly ending: SessionEnding;
  readonly joining: Admission;
}

/** Milliseconds without output after which less output is kept. */
const QUIET = 10_000;

export class LiveSession {
  readonly facts: SessionFacts;
  private readonly options: LiveSessionOptions;
  private readonly lifecycle = new SessionLifecycle();
  private readonly participants = new Participants();
  private readonly agent: AgentSide;
  private readonly input: InputRelay;
  private readonly clocks: SessionClocks;
  /** Resolves when clients can be served: output and input offsets are known, or the session is over. */
  private readonly ready: { readonly promise: Promise<void>; readonly resolve: () => void };
  private running: Running | null = null;
  /** True once the agent has said that it holds the session. From then on, its lists name it. */
  isHeld = false;
  /** True when the clients know that the agent is silent. */
  private isSilenceAnnounced = false;
  private storing: Promise<void> | null = null;

  constructor(options: LiveSessionOptions) {
    const { clock, facts } = options;
    this.options = options;
    this.facts = facts;
    this.agent = new AgentSide(clock);
    this.clocks = new SessionClocks(clock);
    this.input = new InputRelay({
      clock,
      send: (data) => this.agent.send(data),
      // Higher than the generations of an earlier run of the orchestrator.
      generation: Math.floor(clock.now() / 1000) % 2 ** 32,
    });
    let resolve = () => {};
    const promise = new Promise<void>((done) => {
      resolve = done;
    });
    this.ready = { promise, resolve };
  }

  get state(): SessionState {
    return this.lifecycle.state;
  }

  /** Current state; null before the program runs. */
  get now(): SessionNow | null {
    if (this.running === null) return null;
    const { recording, relay } = this.running.core;
    const { received: outputBytes, size } = relay;
    return { recording: recording.state, outputBytes, size, ...this.participants.names };
  }

  /** Username of the writer; null without one. */
  get writer(): string | null {
    return this.participants.names.writer;
  }

  /** True if the agent's socket for this session is open. */
  get hasAgent(): boolean {
    return this.agent.isConnected;
  }

  /** Opens the session once recording, screen and row exist. The first acknowledgement lets the agent start the program. */
  open(parts: SessionParts): void {
    this.lifecycle.take({ type: 'opened' });
    this.isHeld = true;
    const running = this.run(parts);
    this.running = running;
    if (parts.isReady) this.ready.resolve();
    if (this.agent.isConnected) this.lifecycle.take({ type: 'agent_came' });
    running.agentFrames.start();
    parts.recording.listen((stop) => this.recordingStopped(running.core, stop));
  }

  /** Takes the socket of the agent, which redeemed a ticket for this session. */
  attachAgent(socket: TerminalSocket, hello: AgentHello): void {
    if (this.lifecycle.hasEnded) {
      socket.close(TERMINAL_CLOSE.done, 'the session is over');
      return;
    }
    this.agent.attach(socket, hello);
    this.isSilenceAnnounced = false;
    if (this.running === null) return;
    this.lifecycle.take({ type: 'agent_came' });
    this.running.agentFrames.start();
  }

  detachAgent(socket: TerminalSocket): void {
    if (!this.agent.detach(socket) || !this.lifecycle.isActive) return;
    this.lifecycle.take({ type: 'agent_left' });
    this.participants.broadcast({ kind: 'agent_link', connected: false });
  }

  /** Serves a client that attaches or resumes. */
  async join(request: JoinRequest): Promise<void> {
    await this.ready.promise;
    if (this.running !== null) await this.running.joining.join(request);
    else request.socket.close(TERMINAL_CLOSE.unknown, 'the session is over');
  }

  /** Handles the loss of a client's socket, and frees the pen if it was the writer's. */
  left(socket: TerminalSocket): void {
    this.running?.joining.left(socket);
  }

  /** Reports whether the session is open, or over and not yet fully shown to the writer. */
  isServing(operatorId: string): boolean {
    return this.running?.ending.isServing(operatorId) ?? !this.lifecycle.hasEnded;
  }

  /** Operators of the attached clients, and whether they watch or type. */
  get attached(): readonly { readonly operatorId: string; readonly mode: TerminalMode }[] {
    return this.participants.all.map(({ operator, mode }) => ({ operatorId: operator.operator_id, mode }));
  }

  /** Closes the sockets of an operator who lost access. */
  revoke(operatorId: string): void {
    const isTheirs = ({ operator }: { readonly operator: { readonly operator_id: string } }) =>
      operator.operator_id === operatorId;
    this.participants.close(TERMINAL_CLOSE.revoked, 'you are no longer allowed to use this terminal', isTheirs);
  }

  /** Ends the session unless it has ended. Resolves when the end is stored. */
  end(exit: Exit, by: RequestContext | null = null): Promise<void> {
    // When the orchestrator ends the session, later output does not count as missing.
    const isDecided = endedStatus(exit.reason) === 'closed';
    const received = this.running?.core.relay.received ?? null;
    const final_offset = exit.final_offset ?? (isDecided ? received : null);
    this.storing ??= this.finish({ ...exit, final_offset }, by);
    return this.storing;
  }

  /** Ends the session in the background. */
  endInBackground(reason: ExitReason): void {
    this.background(this.end({ ...exitOf(reason), final_offset: this.running?.core.relay.received ?? null }));
  }

  /** Tells all peers to reconnect, because the orchestrator stops. The program continues. */
  leave(): void {
    this.participants.close(TERMINAL_CLOSE.goingAway, 'the orchestrator stops');
    this.agent.close(TERMINAL_CLOSE.goingAway, 'the orchestrator stops');
  }

  /** Releases screen and recording while the session continues. */
  async release(): Promise<void> {
    this.running?.core.relay.dropScreen();
    if (this.lifecycle.hasEnded) await this.storing;
    else await this.running?.core.recording.release();
  }

  /** Called when more output is durable or parsed. */
  advanced(): void {
    this.pace(false);
  }

  /** Checks heartbeats, silence and time limits. Call it each second. */
  tick(): void {
    this.agent.beat();
    for (const { socket } of this.participants.all) socket.beat();
    if (this.running === null) return;
    if (this.lifecycle.hasEnded) {
      this.running.ending.finishWhenDelivered();
      return;
    }
    this.announceSilence();
    this.running.core.relay.shrinkWhenQuiet(this.options.clock.monotonic(), QUIET);
    this.pace(true);
    this.enforceLimits();
  }

  private run(parts: SessionParts): Running {
    const { facts, lifecycle, participants, agent, input, clocks } = this;
    const { store, clock, logger, mayType, resume, resumeSecrets } = this.options;
    const core: SessionCore = {
      ...{ facts, lifecycle, participants, agent, input, clocks, store, clock, logger, mayType },
      keys: new ResumeKeys({ sessionId: facts.id, secrets: resumeSecrets, writer: resume }),
      recording: parts.recording,
      relay: new OutputRelay({ ...parts, recorder: parts.recording.recorder, isLossless: !hasTerminal(facts) }),
      end: (exit, by) => this.background(this.end(exit, by)),
      pace: () => this.pace(false),
    };
    const ending = new SessionEnding(core, this.options);
    const frames = new ClientFrames({ core, askPen: (client) => this.background(joining.askPen(client)) });
    const joining: Admission = new Admission({ core, ending, frames });
    return { core, ending, joining, agentFrames: new AgentFrames(core, this.ready.resolve) };
  }

  private async finish(exit: Exit, by: RequestContext | null): Promise<void> {
    this.lifecycle.take({ type: 'ended', exit });
    this.ready.resolve();
    if (this.running !== null) return this.running.ending.store(exit, by);
    const { dismiss, onDone } = this.options;
    dismiss();
    this.lifecycle.take({ type: 'stored' });
    onDone();
  }

  private recordingStopped({ relay }: SessionCore, { reason, state, isFatal }: RecordingStop): void {
    relay.dropRecorder();
    if (this.lifecycle.hasEnded) return;
    if (isFatal) {
      this.endInBackground('recording_failed');
      return;
    }
    this.participants.broadcast({
      kind: 'recording',
      recorded: false,
      text: `this session is no longer recorded: ${reason}`,
    });
    this.background(this.options.store.recordingStopped(this.facts, state));
    this.pace(false);
  }

  /** Tells clients about a silent agent. Unacknowledged input is the first sign of a dead connection. */
  private announceSilence(): void {
    if (!this.agent.isConnected) return;
    const isSilent = this.agent.isSilent(this.input.age, this.participants.count > 0);
    if (isSilent === this.isSilenceAnnounced) return;
    this.isSilenceAnnounced = isSilent;
    this.participants.broadcast({ kind: 'agent_link', connected: !isSilent });
  }

  /** Ends the session when a time limit is reached, and warns clients before. */
  private enforceLimits(): void {
    const isDetached = hasTerminal(this.facts) ? this.participants.count === 0 : this.participants.writer === null;
    const { openedAt } = this.facts;
    const alarm = this.clocks.check(this.options.limits(), { openedAt, isDetached, agentLostAt: this.agent.lostAt });
    if (alarm === null) return;
    const { left, reason, text } = alarm;
    if (left <= 0) this.endInBackground(reason);
    else this.participants.broadcast({ kind: 'ending', seconds: Math.ceil(left / 1000), text });
  }

  /** Sends credit to the agent. @param isDue whether a small amount is sent too */
  private pace(isDue: boolean): void {
    if (this.running === null || !this.lifecycle.isActive) return;
    const { relay } = this.running.core;
    this.agent.allow(relay.credit(), relay.received, isDue);
  }

  private background(work: Promise<unknown>): void {
    const { id: session_id } = this.facts;
    work.catch((error: unknown) =>
      this.options.logger.error('a background task of a terminal session failed', {
        session_id,
        reason: messageOf(error),
        error,
      }),
    );
  }
}
