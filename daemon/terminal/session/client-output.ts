/** How far one attached operator is in a session's output: what it is sent next, as far as its window goes. */
import type { Backlog } from '../../../src/terminal/backlog.js';
import { outputHead, snapshotFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import type { Picture } from '../screen.js';

export interface ClientOutputOptions {
  readonly backlog: Backlog;
  /** One frame, in as many parts as it has; they are not looked at any more when this returns. */
  readonly send: (...parts: readonly [Buffer, ...Buffer[]]) => void;
  /** The screen as it is now; null when there is none, so that only the output itself can be shown. */
  readonly picture: () => Promise<Picture> | null;
  /** It may be skipped when it is too far behind. */
  readonly isSkippable: () => boolean;
  /** It was sent all there is, and there will be no more. */
  readonly onFinished: () => void;
}

/** A picture may end so many bytes before the output that was there for it: before the beginning of a character. */
const MOST_PENDING = 3;

/** `streaming`; `picture` while a snapshot is made; `behind` until it has taken what it was sent. */
type Stage = 'streaming' | 'picture' | 'behind';

export class ClientOutput {
  private readonly options: ClientOutputOptions;
  private stage: Stage = 'streaming';
  private sent = 0;
  /** The client knows where it is in the output. */
  private hasBegun = false;
  private taken = 0;
  private allowed = 0;
  /** Where the output ended when the picture was asked for. */
  private pictured = 0;
  private isLast = false;
  private isFinished = false;

  constructor(options: ClientOutputOptions) {
    this.options = options;
  }

  /** Output up to here has reached the client. */
  get consumed(): number {
    return this.taken;
  }

  /** The client takes output up to here. */
  get limit(): number {
    return this.allowed;
  }

  /** The first byte that it may still need from the backlog. */
  get needs(): number {
    if (this.stage === 'picture') return this.pictured - MOST_PENDING;
    if (this.stage === 'behind') return Number.POSITIVE_INFINITY;
    return this.options.isSkippable() ? this.sent : Math.min(this.taken, this.sent);
  }

  /** Begins with the output from that offset. */
  beginAt(offset: number): void {
    this.hasBegun = true;
    this.stage = 'streaming';
    this.sent = offset;
    this.taken = offset;
    this.allowed = offset + TERMINAL_LIMITS.firstWindow;
    this.pump();
  }

  /** Begins, or goes on, with a picture of the screen. */
  beginWithPicture(): void {
    if (this.stage === 'picture') return;
    const { backlog } = this.options;
    const picture = this.options.picture();
    if (picture === null) {
      this.goOnWithout(Math.max(this.sent, backlog.start));
      return;
    }
    this.stage = 'picture';
    this.pictured = backlog.end;
    picture.then(
      (drawn) => this.draw(drawn),
      () => this.goOnWithout(this.pictured),
    );
  }

  /** A frame of the agent has come; it is in the backlog already. Passes it on as it is, when nothing speaks against it. */
  forward(data: Buffer, offset: number): void {
    const { backlog, send } = this.options;
    if (this.stage !== 'streaming' || this.sent !== offset || backlog.end > this.allowed) return;
    this.sent = backlog.end;
    send(data);
  }

  /** Output has come that the recording and the screen have too; sends what was not passed on, as far as it may. */
  catchUp(): void {
    const { backlog, isSkippable } = this.options;
    if (this.stage !== 'streaming' || this.sent === backlog.end) return;
    this.pump();
    if (isSkippable() && backlog.end - this.taken > TERMINAL_LIMITS.viewerLag) this.fallBehind();
  }

  /** The client's window; an older one than it has told already changes nothing. */
  acked(consumed: number, limit: number): void {
    const most = Math.min(consumed, this.sent);
    this.taken = Math.max(this.taken, most);
    this.allowed = Math.max(this.allowed, Math.min(limit, this.taken + TERMINAL_LIMITS.mostWindow));
    if (this.stage === 'behind' && this.taken >= this.sent) this.beginWithPicture();
    else this.pump();
  }

  /** No more output comes. */
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
    // What is not kept any more is left out: a client takes no gap.
    const offset = Math.max(head.offset, this.options.backlog.start);
    const frame = snapshotFrame({ ...head, offset }, bytes);
    // One that the client does not take would cost it its socket, again and again.
    const isTaken = frame.length <= TERMINAL_LIMITS.pictureFrame;
    if (isTaken) {
      this.options.send(frame);
      this.goOnAt(offset);
    } else {
      this.goOnWithout(this.pictured);
    }
  }

  /** There is no picture. An empty one tells a client how much output it misses; else it would take the gap for a mistake. */
  private goOnWithout(offset: number): void {
    const head = { cols: 0, rows: 0, offset };
    if (this.hasBegun && offset > this.sent) this.options.send(snapshotFrame(head, Buffer.alloc(0)));
    this.goOnAt(offset);
  }

  private goOnAt(offset: number): void {
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
