/** Runs a session at this terminal: connects keys, output, notices and prediction until it ends. */

import { setTimeout as pause } from 'node:timers/promises';
import { connectTerminal } from '../../client/terminal/terminal-connection.js';
import type { LinkState, Snapshot, TerminalEnd, TerminalSession } from '../../client/terminal/terminal-session.js';
import type { ServerNote, TerminalMode } from '../../terminal/notes.js';
import type { TerminalApi, WithTerminal } from '../connect-api.js';
import type { Context } from '../context.js';
import { type ExecEnd, exitStatusOfEnd, wordsOfEnd } from '../exec/exec-end.js';
import { EXIT } from '../exit-status.js';
import type { Interrupt } from '../interrupts.js';
import type { Outcome } from '../outcome.js';
import { LinkNotices, Notices } from './notices.js';
import { PredictedEcho } from './predicted-echo.js';
import { type SessionSettings, type Size, shownCharacter, sizeOf, watchSize } from './session-options.js';
import { ShownOutput, SkippedOutput } from './shown-output.js';
import { TerminalOutput } from './terminal-output.js';
import { type Escape, EscapeReader, escapeHelp, PipedInput, RawMode } from './typed-input.js';

/** Runs a session and reports its end. Ends with the status of the remote program. Throws the fault that ended the connection. */
export async function runTerminal(context: Context, options: TerminalRunOptions): Promise<Outcome> {
  const run = new TerminalRun(context, options);
  const end = await run.run().finally(() => options.connection.api.close());
  const back = `orch term attach ${options.sessionId}`;
  const exitStatus = end.kind === 'exit' ? exitStatusOfEnd(end) : run.isHungUp ? EXIT.hungUp : EXIT.lost;
  // A stuck terminal would block the process.
  if (run.isBlocked) process.exit(exitStatus);
  if (end.kind === 'failed') {
    context.note(`The session may go on: ${back}`);
    throw end.fault;
  }
  if (end.kind === 'detached') context.note(`Detached. The session goes on: ${back}`);
  else if (end.kind === 'replaced') context.note('Another connection of yours has taken this session over.');
  else sayEnd(context, end);
  return { exitStatus };
}

function sayEnd({ note, streams }: Context, end: Extract<ExecEnd, { readonly kind: 'exit' }>): void {
  const words = wordsOfEnd(end);
  if (words !== '') note(`The session is over: ${words}.`);
  else if (streams.stdin.isTTY === true) note('The session is over.');
}

export interface TerminalRunOptions extends SessionSettings {
  readonly connection: TerminalApi;
  readonly sessionId: string;
  readonly wsUrl: string;
  readonly mode: TerminalMode;
  /** Requested size, in place of the terminal's own. */
  readonly size?: Size;
  /** True for a new session, whose output starts without a screen picture. */
  readonly isNew: boolean;
  /** True with --read-only. */
  readonly isReadOnly?: boolean;
  /** Receives a function that shows a notice beside the program's output. */
  readonly onNotices?: (show: (text: string) => void) => void;
}

/** Milliseconds to flush the last output. */
const LAST_WORDS = 1_000;
/** Milliseconds between latency measurements while keys are typed. */
const MEASURE_EVERY = 10_000;

export class TerminalRun {
  private readonly context: Context;
  private readonly options: TerminalRunOptions;
  private readonly output: TerminalOutput;
  private readonly shown: ShownOutput;
  private readonly skipped: SkippedOutput;
  private readonly notices: Notices;
  private readonly link: LinkNotices;
  private readonly escapes: EscapeReader;
  private readonly raw: RawMode | null;
  private readonly piped: PipedInput | null;
  private readonly session: TerminalSession;
  private readonly ended: Promise<TerminalEnd>;
  private end: (end: TerminalEnd) => void = () => {};
  private suspended = false;
  private isConnected = false;
  /** True if the screen is garbled and must be redrawn on the next connection. */
  private isGarbled = false;
  private isWelcomed = false;
  /** Notices that wait for the first screen picture. */
  private pendingNotices: readonly string[] = [];
  /** Sizes of the last notice about a cropped screen. */
  private croppedTo: string | null = null;
  private readonly prediction: PredictedEcho | null;
  /** Number of latency requests whose answer is shown. */
  private questions = 0;
  private askedAt = Number.NEGATIVE_INFINITY;
  private hinted = false;
  private hintedAtClipboard = false;
  /** Mode of this client in the last note; null before the first. */
  private mode: TerminalMode | null = null;
  private interrupted = false;
  /** True after the window was closed. */
  isHungUp = false;

  constructor(context: Context, options: TerminalRunOptions) {
    const { stdin, stdout, stderr } = context.streams;
    const typing = stdin.isTTY === true;
    const character = typing ? options.escapeCharacter : null;
    this.context = context;
    this.options = options;
    const isDumb = context.env.TERM === 'dumb';
    this.output = new TerminalOutput({
      stdout,
      stderr,
      isDumb,
      onClosed: () => this.leave(),
      onCursorLost: () => this.redrawGarbled(),
    });
    this.shown = new ShownOutput({
      isTerminal: stdout.isTTY === true,
      clipboard: options.clipboard,
      onClipboardBlocked: () => this.hintAtClipboard(),
    });
    this.skipped = new SkippedOutput(options.sessionId);
    this.notices = new Notices({
      output: this.output,
      shared: stdout.isTTY === true && stderr.isTTY === true,
      isDumb,
      redraw: () => this.session.redraw(),
      size: () => sizeOf([stdout, stderr]),
    });
    options.onNotices?.((text) => this.notices.show(text));
    const leave = character === null ? null : `${shownCharacter(character)}.`;
    const queueInput = options.queueInput || !typing;
    this.link = new LinkNotices({
      notices: this.notices,
      leave,
      queueInput,
      inputAge: () => this.session.inputAge,
    });
    this.escapes = new EscapeReader(character);
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
    this.session = connectTerminal({
      ...options,
      api: options.connection.api,
      queueInput,
      clock: context.clock,
      random: Math.random,
      events: {
        output: (_stream, bytes, done) => this.output.show(this.shown.take(bytes), done),
        snapshot: (snapshot, done) => this.picture(snapshot, done),
        note: (note) => this.noted(note),
        state: (state) => this.linked(state),
        echo: (ack) => this.output.afterOutput(() => this.prediction?.acknowledged(ack)),
        drain: () => this.piped?.drain(),
        inputDropped: (bytes) => this.dropped(bytes),
        ended: (end) => this.end(end),
      },
    });
    this.prediction = typing && stdout.isTTY === true && !isDumb ? this.predict() : null;
    this.output.overlay = this.prediction;
    this.raw = typing ? new RawMode(stdin) : null;
    this.piped = typing ? null : new PipedInput(stdin, this.session);
  }

  /** Runs the session to its end, and restores the terminal. */
  async run(): Promise<TerminalEnd> {
    const { stdin, stdout, stderr } = this.context.streams;
    const terminals = [stdout, stderr];
    const stops = [
      watchSize(terminals, () => {
        this.prediction?.resized();
        this.sendSize();
      }),
      this.context.onInterrupt((interrupt) => this.interrupt(interrupt)),
      onProcess('SIGCONT', () => void this.resume()),
      // Restores the terminal on an unexpected exit.
      onProcess('exit', () => this.emergency()),
    ];
    this.sendSize();
    this.output.hold();
    if (this.raw !== null) this.options.connection.setQuestionRoute(this.lendTerminal);
    try {
      await this.raw?.enter();
      this.output.go();
      if (this.piped === null) {
        stdin.on('data', this.typed);
        stdin.once('end', this.onHangup);
        // A command that used the terminal before has paused its input.
        stdin.resume();
      } else this.piped.begin();
      return await this.ended;
    } finally {
      stdin.off('data', this.typed);
      stdin.off('end', this.onHangup);
      this.piped?.stop();
      stdin.pause();
      this.link.stop();
      this.notices.stop();
      this.raw?.leave();
      this.prediction?.stop();
      this.output.go();
      this.output.restore();
      this.output.stopped = !(await this.output.flush(LAST_WORDS));
      this.output.release();
      for (const stop of stops) stop();
    }
  }

  /** True if the terminal did not accept the last output; it would block the process. */
  get isBlocked(): boolean {
    return this.output.stopped;
  }

  private readonly typed = (bytes: Buffer): void => {
    this.notices.clear();
    for (const typed of this.escapes.read(bytes, this.session.mode === 'read')) {
      if (typed.kind === 'escape') this.handleEscape(typed.escape);
      else if (this.session.mode !== 'read') this.send(typed.bytes);
      else this.hintReadOnly();
    }
  };

  private dropped(bytes: number): void {
    this.prediction?.reset();
    this.notices.show(
      `${bytes === 1 ? '1 byte' : `${bytes} bytes`} that you typed without a connection came too late and were dropped`,
      'what was typed before may stand there still: look before you press Enter',
    );
  }

  private send(bytes: Buffer): void {
    const before = this.session.inputEnd;
    this.session.sendInput(bytes);
    const end = this.session.inputEnd;
    const isOnItsWay = before !== null && end === before + bytes.length;
    this.prediction?.typed(bytes, isOnItsWay ? end : null);
    if (this.context.clock.monotonic() - this.askedAt >= MEASURE_EVERY) this.measure();
  }

  private readonly onHangup = (): void => {
    this.isHungUp = this.piped === null;
    this.leave();
  };

  private handleEscape(wish: Escape): void {
    if (wish === 'detach') this.leave();
    else if (wish === 'close') this.session.close();
    else if (wish === 'redraw') this.session.redraw();
    else if (wish === 'speed') this.askLatency();
    else if (wish === 'askPen') this.askPen();
    else if (wish === 'suspend') void this.suspend();
    else this.notices.show(...escapeHelp(this.options.escapeCharacter ?? '~'));
  }

  private askLatency(): void {
    this.questions += 1;
    this.session.askLatency();
  }

  private askPen(): void {
    if (this.session.mode === 'write') this.notices.show('it is you who types here');
    else if (this.options.isReadOnly) this.notices.show('with --read-only you never type; attach without it to type');
    else {
      this.session.askPen();
      this.notices.show('asked for the pen; to take it from its writer: orch term attach --take');
    }
  }

  private hintReadOnly(): void {
    if (this.hinted) return;
    this.hinted = true;
    const { escapeCharacter } = this.options;
    const shown = escapeCharacter === null ? null : shownCharacter(escapeCharacter);
    const keys = shown === null ? '' : `; ${shown}. leaves, ${shown}w asks for the pen`;
    this.notices.show(`you only watch, so keys are not sent${keys}`);
  }

  private hintAtClipboard(): void {
    if (this.hintedAtClipboard) return;
    this.hintedAtClipboard = true;
    const how = this.options.clipboard === 'never' ? '; --clipboard copy lets programs set it' : '';
    this.notices.show(`kept a program from your clipboard${how}`);
  }

  private picture({ head, bytes, skipped }: Snapshot, done: () => void): void {
    const { cols, rows } = sizeOf([this.context.streams.stdout, this.context.streams.stderr]);
    const isCropped = this.session.mode === 'read' && (head.cols > cols || head.rows > rows);
    // Without wrapping, wide lines are cut off at the edge.
    const picture = Buffer.concat([this.shown.takePicture(bytes), Buffer.from(isCropped ? '\x1b[?7l' : '')]);
    const { isAlternate } = this.output.modes;
    this.skipped.add(skipped + this.output.redraw(picture, done), isAlternate);
    const sizes = `${head.cols}x${head.rows} and yours ${cols}x${rows}`;
    const isNews = isCropped && sizes !== this.croppedTo;
    this.croppedTo = isCropped ? sizes : null;
    const cropped = `the writer's terminal is ${sizes}: the rest is cut off`;
    // The picture overwrites earlier notices.
    const words = [...this.pendingNotices, ...(isNews ? [cropped] : [])];
    this.pendingNotices = [];
    if (words.length > 0) this.notices.show(...words);
    this.notices.showAfterOutput(() => this.skipped.words(this.output.modes.isAlternate));
  }

  private noted(note: ServerNote): void {
    const { notices } = this;
    if (note.kind === 'welcome' || note.kind === 'people') this.follow(note.mode);
    if (note.kind === 'welcome' || note.kind === 'recording') this.skipped.isRecorded = note.recorded;
    if (note.kind === 'agent_link') this.link.agentLink(note.connected);
    else if (note.kind === 'people') this.onParticipants(note.text);
    else if (note.kind === 'pen_wanted') notices.show(`${note.by} asks to type here; detach and they can take it`);
    else if (note.kind === 'latency') this.measured(note.agent_ms);
    else if (note.kind === 'recording' || note.kind === 'ending') notices.show(note.text);
    else this.onWelcome(note);
  }

  /** Follows a change of mode. A viewer's terminal must not keep the modes of the program. */
  private follow(mode: TerminalMode): void {
    if (this.mode === mode) return;
    const isChange = this.mode !== null;
    this.mode = mode;
    this.shown.mode = mode;
    this.prediction?.reset();
    if (!isChange) return;
    this.output.resetModes();
    this.session.redraw();
  }

  private onParticipants(text: string): void {
    this.hinted = false;
    this.notices.show(text);
  }

  private onWelcome({ mode, writer, recorded }: Extract<ServerNote, { readonly kind: 'welcome' }>): void {
    if (this.raw === null || this.isWelcomed) return;
    this.isWelcomed = true;
    const { escapeCharacter } = this.options;
    const help = escapeCharacter === null ? '' : `; ${shownCharacter(escapeCharacter)}? for help`;
    if (mode === 'read') this.showWelcome(`${writer === null ? 'no operator' : writer} types, you watch${help}`);
    else if (recorded) this.showWelcome(`this session is recorded${help}`);
  }

  private showWelcome(text: string): void {
    if (this.options.isNew) this.notices.show(text);
    else this.pendingNotices = [text];
  }

  private predict(): PredictedEcho | null {
    const { predict: when, isNew } = this.options;
    const { stdout, stderr } = this.context.streams;
    if (when === 'never') return null;
    return new PredictedEcho({
      when,
      isNew,
      clock: this.context.clock,
      size: () => sizeOf([stdout, stderr]),
      askEcho: (end) => this.session.askEcho(end),
      redraw: () => this.output.afterOutput(() => {}),
    });
  }

  private measure(): void {
    if (this.prediction === null) return;
    this.askedAt = this.context.clock.monotonic();
    this.session.askLatency();
  }

  private measured(agent: number | null): void {
    const { roundTrip } = this.session;
    if (agent !== null && roundTrip !== null) this.prediction?.measured(roundTrip + agent);
    if (this.questions === 0) return;
    this.questions -= 1;
    this.showLatency(agent);
  }

  private showLatency(agent: number | null): void {
    const own = this.session.roundTrip;
    const shown = (ms: number | null) => (ms === null ? 'unknown' : `${ms.toFixed(1)} ms`);
    this.notices.show(`to the orchestrator ${shown(own)}, from there to the agent ${shown(agent)}`);
  }

  private sendSize(): void {
    const { stdout, stderr } = this.context.streams;
    const { cols, rows } = this.options.size ?? sizeOf([stdout, stderr]);
    this.session.resize(cols, rows);
  }

  private interrupt(interrupt: Interrupt): void {
    // A piped session has no operator to come back to it.
    if (interrupt === 'SIGHUP') this.onHangup();
    else if (interrupt !== 'SIGINT' || this.piped === null || this.interrupted) this.leave();
    else this.session.close();
    this.interrupted = true;
  }

  private linked(state: LinkState): void {
    this.link.state(state);
    if (state.kind === 'lost') {
      this.prediction?.reset();
      this.questions = 0;
    }
    this.isConnected = state.kind === 'connected';
    if (!this.isConnected) return;
    this.measure();
    if (this.isGarbled) this.redrawGarbled();
  }

  /** Redraws a garbled screen, now or on the next connection. */
  private redrawGarbled(): void {
    this.isGarbled = !this.isConnected;
    if (this.isConnected) this.session.redraw();
  }

  /** Lends the terminal, as for a question. */
  private readonly lendTerminal: WithTerminal = async (ask) => {
    const { stdin } = this.context.streams;
    stdin.off('data', this.typed);
    this.raw?.leave();
    this.output.hold();
    this.output.restoreNow();
    try {
      return await ask();
    } finally {
      this.isGarbled = true;
      await this.raw?.enter();
      this.output.go();
      stdin.on('data', this.typed);
      stdin.resume();
    }
  };

  private leave(): void {
    this.session.detach();
  }

  private async suspend(): Promise<void> {
    this.suspended = true;
    this.raw?.leave();
    this.output.hold();
    this.output.restoreNow();
    await pause(0);
    // Suspends the whole process group, like Ctrl-Z. Returns once it is continued.
    process.kill(0, 'SIGTSTP');
    await this.resume();
  }

  private async resume(): Promise<void> {
    if (!this.suspended && this.raw === null) return;
    this.suspended = false;
    await this.raw?.enter();
    this.output.go();
    this.sendSize();
    this.session.redraw();
  }

  private emergency(): void {
    this.raw?.leave();
    this.output.restoreNow();
  }
}

function onProcess(event: 'SIGCONT' | 'exit', listener: () => void): () => void {
  process.on(event, listener);
  return () => process.off(event, listener);
}
