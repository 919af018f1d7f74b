/** The client's side of a session: an attached client, the frames it sends, and the output it is sent. */

import { Fault } from '../../../src/kernel/fault.js';
import { validator } from '../../../src/kernel/validator.js';
import type { Backlog } from '../../../src/terminal/backlog.js';
import { type Frame, jsonFrame, outputHead, placeFrame, snapshotFrame } from '../../../src/terminal/frames.js';
import type { InputGate } from '../../../src/terminal/late-input.js';
import {
  clampSize,
  TERMINAL_CLOSE,
  TERMINAL_LIMITS,
  TERMINAL_SIGNALS,
  type TerminalSignal,
} from '../../../src/terminal/limits.js';
import { type ClientNote, ClientNoteSchema, type ServerNote, type TerminalMode } from '../../../src/terminal/notes.js';
import type { RequestContext } from '../../core/domain-event.js';
import { ALL_RIGHTS } from '../../core/rights.js';
import type { Picture } from '../emulator/screens.js';
import { operatorParty } from '../session-store.js';
import type { TerminalSocket } from '../terminal-socket.js';
import type { Attacher } from '../tickets.js';
import { exitOf, type SessionCore } from './session-core.js';

export interface AttachedClient {
  readonly socket: TerminalSocket;
  readonly operator: Attacher;
  readonly address: string | null;
  /** Hash of its resume secret. */
  readonly secretHash: string;
  mode: TerminalMode;
  readonly output: ClientOutput;
  readonly gate: InputGate;
  readonly asks: AskBudget;
}

const isNote = validator(ClientNoteSchema);

interface ClientFramesOptions {
  readonly core: SessionCore;
  /** Called when a viewer asks for the pen. */
  readonly askPen: (client: AttachedClient) => void;
}

/** Handles the frames of attached clients. Input and sizes count only from the writer. */
export class ClientFrames {
  private readonly core: SessionCore;
  private readonly options: ClientFramesOptions;

  constructor(options: ClientFramesOptions) {
    this.core = options.core;
    this.options = options;
  }

  /** Handles a frame. Throws Fault `protocol_violation` for a type that clients do not send. */
  take(client: AttachedClient, frame: Frame, data: Buffer): void {
    const { agent, input, pace, participants } = this.core;
    const isWriter = client === participants.writer;
    switch (frame.type) {
      case 'ack':
        client.output.acked(frame.consumed, frame.limit);
        if (isWriter) pace();
        return;
      case 'input':
        if (isWriter) this.type(client, frame);
        return;
      case 'resize':
        if (isWriter) this.resize(clampSize(frame.cols), clampSize(frame.rows));
        return;
      case 'signal':
        if (isWriter && isSignal(frame.signal)) agent.signal(frame.signal);
        return;
      case 'eof':
        if (isWriter && this.passes(client)) input.close();
        return;
      case 'anew':
        client.gate.open(client.socket.stalls);
        return;
      case 'askEcho':
        if (isWriter) agent.send(data);
        return;
      case 'note':
        if (isNote.check(frame.value)) this.noted(client, frame.value.kind);
        return;
      case 'unknown':
        return;
      default:
        throw new Fault('protocol_violation', `the peer sent ${frame.type}`);
    }
  }

  private type(client: AttachedClient, { offset, bytes }: Extract<Frame, { readonly type: 'input' }>): void {
    const { input, clocks } = this.core;
    const { socket } = client;
    clocks.typed();
    if (!this.passes(client)) return;
    if (!input.take(offset, bytes)) socket.close(TERMINAL_CLOSE.overrun, 'more input than the credit allows');
  }

  /** Reports whether input is taken. Asks the client about input that may be old. */
  private passes({ gate, socket }: AttachedClient): boolean {
    const passage = gate.decide(socket.stalls);
    if (passage === 'ask') socket.send(placeFrame(this.core.input.end));
    return passage === 'take';
  }

  private resize(cols: number, rows: number): void {
    const { lifecycle, input, relay } = this.core;
    if (lifecycle.hasEnded) return;
    input.resize(cols, rows);
    relay.resize(cols, rows);
  }

  private noted(client: AttachedClient, kind: ClientNote['kind']): void {
    const { agent, clock, lifecycle, end, participants, relay } = this.core;
    const { asks, output, socket } = client;
    if (kind !== 'close' && !asks.take(clock.monotonic())) return;
    switch (kind) {
      case 'redraw':
        if (relay.hasScreen) output.beginWithPicture();
        return;
      case 'ask_pen':
        if (client !== participants.writer) this.options.askPen(client);
        return;
      case 'ask_latency':
        agent.measure((ms) => socket.send(noteFrame({ kind: 'latency', agent_ms: ms })));
        return;
      case 'close':
        if (client !== participants.writer || lifecycle.hasEnded) return;
        end(exitOf('closed'), contextOf(client));
    }
  }
}

const isSignal = (name: string): name is TerminalSignal => TERMINAL_SIGNALS.some((signal) => signal === name);

const contextOf = ({ operator, address }: AttachedClient): RequestContext => ({
  actor: operatorParty(operator),
  rights: ALL_RIGHTS,
  requestId: '',
  address,
});

export const noteFrame = (said: ServerNote): Buffer => jsonFrame('note', said);

interface ClientOutputOptions {
  readonly backlog: Backlog;
  /** Sends one frame, given in parts, which the caller may reuse afterwards. */
  readonly send: (...parts: readonly [Buffer, ...Buffer[]]) => void;
  /** Draws the current screen; null without an emulator. */
  readonly picture: () => Promise<Picture> | null;
  /** True if output may be skipped when the client is too far behind. */
  readonly isSkippable: () => boolean;
  /** Called when the client was sent all output and no more follows. */
  readonly onFinished: () => void;
}

/** Bytes by which a picture may lag behind the output: an incomplete character. */
const MOST_PENDING = 3;

/** `picture`: a snapshot is being drawn. `behind`: output is skipped until the client has taken what it was sent. */
type Stage = 'streaming' | 'picture' | 'behind';

export class ClientOutput {
  private readonly options: ClientOutputOptions;
  private stage: Stage = 'streaming';
  private sent = 0;
  /** True once the client knows its offset. */
  private hasBegun = false;
  private taken = 0;
  private allowed = 0;
  /** End of the output when the picture was requested. */
  private pictured = 0;
  private isLast = false;
  private isFinished = false;

  constructor(options: ClientOutputOptions) {
    this.options = options;
  }

  /** Output offset up to which the client has received. */
  get consumed(): number {
    return this.taken;
  }

  /** Output offset up to which the client accepts output. */
  get limit(): number {
    return this.allowed;
  }

  /** Offset of the first byte that the client may still need from the backlog. */
  get needs(): number {
    if (this.stage === 'picture') return this.pictured - MOST_PENDING;
    if (this.stage === 'behind') return Number.POSITIVE_INFINITY;
    return this.options.isSkippable() ? this.sent : Math.min(this.taken, this.sent);
  }

  /** Starts with the output at the offset. */
  beginAt(offset: number): void {
    this.hasBegun = true;
    this.stage = 'streaming';
    this.sent = offset;
    this.taken = offset;
    this.allowed = offset + TERMINAL_LIMITS.firstWindow;
    this.pump();
  }

  /** Starts or continues with a picture of the screen. */
  beginWithPicture(): void {
    if (this.stage === 'picture') return;
    const { backlog } = this.options;
    const picture = this.options.picture();
    if (picture === null) {
      this.continueWithoutPicture(Math.max(this.sent, backlog.start));
      return;
    }
    this.stage = 'picture';
    this.pictured = backlog.end;
    picture.then(
      (drawn) => this.draw(drawn),
      () => this.continueWithoutPicture(this.pictured),
    );
  }

  /** Forwards a frame of the agent unchanged when the client is up to date. The backlog already contains it. */
  forward(data: Buffer, offset: number): void {
    const { backlog, send } = this.options;
    if (this.stage !== 'streaming' || this.sent !== offset || backlog.end > this.allowed) return;
    this.sent = backlog.end;
    send(data);
  }

  /** Sends new output that was not forwarded, as far as the window allows. */
  catchUp(): void {
    const { backlog, isSkippable } = this.options;
    if (this.stage !== 'streaming' || this.sent === backlog.end) return;
    this.pump();
    if (isSkippable() && backlog.end - this.taken > TERMINAL_LIMITS.viewerLag) this.fallBehind();
  }

  /** Takes the client's window. An older window has no effect. */
  acked(consumed: number, limit: number): void {
    const most = Math.min(consumed, this.sent);
    this.taken = Math.max(this.taken, most);
    this.allowed = Math.max(this.allowed, Math.min(limit, this.taken + TERMINAL_LIMITS.mostWindow));
    if (this.stage === 'behind' && this.taken >= this.sent) this.beginWithPicture();
    else this.pump();
  }

  /** Sends the rest, because no more output follows. */
  finish(): void {
    this.isLast = true;
    if (this.stage === 'behind') this.beginWithPicture();
    else this.pump();
  }

  private fallBehind(): void {
    this.stage = 'behind';
    if (this.taken >= this.sent) this.beginWithPicture();
  }

  private draw({ head, bytes }: Picture): void {
    if (this.stage !== 'picture') return;
    // Skips dropped output, because a client accepts no gap.
    const offset = Math.max(head.offset, this.options.backlog.start);
    const frame = snapshotFrame({ ...head, offset }, bytes);
    // A client would close its socket over a larger frame, again and again.
    const isTaken = frame.length <= TERMINAL_LIMITS.pictureFrame;
    if (isTaken) {
      this.options.send(frame);
      this.continueAt(offset);
    } else {
      this.continueWithoutPicture(this.pictured);
    }
  }

  /** Continues without a picture. An empty snapshot tells the client about the gap. */
  private continueWithoutPicture(offset: number): void {
    const head = { cols: 0, rows: 0, offset };
    if (this.hasBegun && offset > this.sent) this.options.send(snapshotFrame(head, Buffer.alloc(0)));
    this.continueAt(offset);
  }

  private continueAt(offset: number): void {
    this.hasBegun = true;
    this.stage = 'streaming';
    this.sent = offset;
    this.taken = offset;
    this.allowed = Math.max(this.allowed, offset + TERMINAL_LIMITS.firstWindow);
    this.pump();
  }

  private pump(): void {
    if (this.stage !== 'streaming') return;
    const { backlog, send } = this.options;
    if (this.sent < backlog.start) {
      this.beginWithPicture();
      return;
    }
    for (;;) {
      const piece = backlog.read(this.sent, TERMINAL_LIMITS.swiftOutput, this.allowed);
      if (piece === null) break;
      send(outputHead(piece.stream, piece.offset), piece.bytes);
      this.sent += piece.bytes.length;
    }
    if (!this.isLast || this.isFinished || this.sent < backlog.end) return;
    this.isFinished = true;
    this.options.onFinished();
  }
}

/** Number of requests allowed at once, and per second afterwards. People do not type that fast. */
const BURST = 20;
const PER_SECOND = 5;

/** Limits how often a client may ask for a picture, the pen or the latency, which cost others. */
export class AskBudget {
  private left = BURST;
  private at: number;

  /** @param now milliseconds of the monotonic clock */
  constructor(now: number) {
    this.at = now;
  }

  /** Counts a request and returns whether it is allowed. */
  take(now: number): boolean {
    this.left = Math.min(BURST, this.left + ((now - this.at) / 1000) * PER_SECOND);
    this.at = now;
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }
}
