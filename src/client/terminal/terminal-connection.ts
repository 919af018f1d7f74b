/** Combines the connections of a session into one stream of output and one of input. */
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import type { Check } from '../../kernel/validator.js';
import type { Exit } from '../../terminal/exit.js';
import {
  ackFrame,
  anewFrame,
  askEchoFrame,
  type EchoAck,
  eofFrame,
  type Frame,
  inputFrame,
  jsonFrame,
  resizeFrame,
  signalFrame,
} from '../../terminal/frames.js';
import { clampSize, TERMINAL_VERSION } from '../../terminal/limits.js';
import type { ClientNote, ServerNote, TerminalMode, TerminalSignal } from '../../terminal/notes.js';
import type { Credit } from '../../terminal/window.js';
import type { ApiClient } from '../api-client.js';
import { InputOutbox } from './input-outbox.js';
import { OutputIntake } from './output-intake.js';
import { exits, serverNotes, snapshotHeads } from './server-checks.js';
import { type Gone, TerminalLink } from './terminal-link.js';
import type { ConnectTerminalOptions, TerminalEnd, TerminalSession } from './terminal-session.js';

const PATIENCE = 30 * 60_000;
/** Milliseconds of silence after which delivered output is acknowledged. */
const REST_PAUSE = 200;
const LATE_EXIT_DEADLINE = 30_000;
/** Maximum age in milliseconds of input that is resent after a reconnect. */
const INPUT_LIFE = 10_000;

type OutputFrame = Extract<Frame, { readonly type: 'output' }>;
type SnapshotFrame = Extract<Frame, { readonly type: 'snapshot' }>;

export class TerminalConnection implements TerminalSession {
  readonly sessionId: string;
  mode: TerminalMode | null = null;
  roundTrip: number | null = null;
  private readonly options: ConnectTerminalOptions;
  private readonly link: TerminalLink;
  private readonly intake: OutputIntake;
  private readonly outbox: InputOutbox;
  /** True after the welcome of the current connection. */
  private connected = false;
  /** True after the first `place` on the current connection. */
  private isPlaced = false;
  /** True after the first welcome. */
  private wasConnected = false;
  private secret: string | null = null;
  private size: { readonly cols: number; readonly rows: number } | null = null;
  private generation = 0;
  private isFull = false;
  private exit: Exit | null = null;
  private isFinished = false;
  private restTimer: NodeJS.Timeout | null = null;
  /** Answer about output that has not arrived yet. */
  private earlyEcho: EchoAck | null = null;

  constructor(options: ConnectTerminalOptions) {
    const { api, sessionId, clock, random, events, reconnectMs = PATIENCE } = options;
    this.options = options;
    this.sessionId = sessionId;
    this.intake = new OutputIntake(clock);
    this.outbox = new InputOutbox({
      clock,
      life: options.queueInput ? null : INPUT_LIFE,
      send: (offset, bytes) => this.link.send(inputFrame(offset, bytes)),
      sendEof: () => this.link.send(eofFrame()),
      sendAnew: () => this.link.send(anewFrame()),
      onDropped: (bytes) => events.inputDropped(bytes),
    });
    this.link = new TerminalLink({
      api,
      sessionId,
      clock,
      random: () => random(),
      reconnectMs,
      hello: () => ({ version: TERMINAL_VERSION, resume: this.resumption() }),
      inputAge: () => this.outbox.age,
      attachAs: () => this.attachAs(),
      onFrame: (frame) => this.receive(frame),
      onRoundTrip: (ms) => this.measured(ms),
      onSilence: (silent) => events.state(silent ? { kind: 'silent' } : { kind: 'connected', resumed: true }),
      onLost: (cause) => {
        this.disconnect();
        events.state({ kind: 'lost', cause });
      },
      onClosed: (gone) => void this.onClosed(gone),
    });
  }

  get inputAge(): number {
    return this.outbox.age;
  }

  begin(wsUrl: string): void {
    this.link.begin(wsUrl);
  }

  sendInput(bytes: Uint8Array): boolean {
    if (this.isFinished || this.mode === 'read') return true;
    this.outbox.add(Buffer.from(bytes));
    this.isFull = !this.outbox.hasRoom || (!this.connected && this.outbox.pending > 0);
    return !this.isFull;
  }

  get inputEnd(): number | null {
    return this.connected && this.mode === 'write' ? this.outbox.end : null;
  }

  askEcho(offset: number): void {
    if (this.connected) this.link.send(askEchoFrame(offset));
  }

  sendEof(): void {
    this.outbox.finish();
  }

  resize(cols: number, rows: number): void {
    this.size = { cols: clampSize(cols), rows: clampSize(rows) };
    this.sendSize();
  }

  signal(name: TerminalSignal): void {
    if (this.connected) this.link.send(signalFrame(name));
  }

  redraw(): void {
    this.sendNote({ kind: 'redraw' });
  }

  askPen(): void {
    this.sendNote({ kind: 'ask_pen' });
  }

  askLatency(): void {
    this.link.ping();
    this.sendNote({ kind: 'ask_latency' });
  }

  close(): void {
    if (this.connected) this.sendNote({ kind: 'close' });
    else if (!this.isFinished) void this.closeFromOutside();
  }

  detach(): void {
    this.finish({ kind: 'detached' });
  }

  private receive(frame: Frame): void {
    const note = frame.type === 'note' && serverNotes.check(frame.value) ? frame.value : null;
    if (!this.connected && note?.kind !== 'welcome') {
      throw new Fault('protocol_violation', 'the peer sent something before the welcome');
    }
    // Unknown notes belong to a later version.
    if (note !== null) this.noted(note);
    else if (frame.type === 'output') this.output(frame);
    else if (frame.type === 'snapshot') this.snapshot(frame);
    else if (frame.type === 'ack') this.acknowledged(frame);
    else if (frame.type === 'place') this.placed(frame.offset);
    else if (frame.type === 'echo') this.echoed(frame);
    else if (frame.type === 'exit') this.exited(checked(exits, frame.value));
  }

  private noted(note: ServerNote): void {
    if (note.kind === 'welcome') this.onWelcome(note);
    if (note.kind === 'people') this.changeMode(note.mode, note.taken);
    this.options.events.note(note);
    if (note.kind !== 'welcome') return;
    this.options.events.state({ kind: 'connected', resumed: this.wasConnected });
    this.wasConnected = true;
    this.refill();
  }

  private onWelcome({ mode, taken, secret }: Extract<ServerNote, { readonly kind: 'welcome' }>): void {
    this.connected = true;
    this.isPlaced = false;
    this.secret = secret;
    this.link.resetPause();
    const { credit } = this.intake;
    if (credit !== null) this.grant(credit);
    if (mode === 'write' && this.mode === 'write') {
      this.outbox.resume(taken);
      this.sendSize();
    } else this.changeMode(mode, taken);
  }

  private changeMode(mode: TerminalMode, taken: number): void {
    if (mode === this.mode) return;
    this.mode = mode;
    if (mode === 'write') {
      this.outbox.restart(taken);
      this.sendSize();
    } else {
      this.outbox.pause();
      this.outbox.clear();
    }
  }

  private output({ stream, offset, bytes }: OutputFrame): void {
    const isFirst = this.intake.received === null;
    const fresh = this.intake.take(offset, bytes);
    if (isFirst && this.intake.credit !== null) this.grant(this.intake.credit);
    this.link.progressed();
    if (fresh.length === 0) return;
    this.options.events.output(stream, fresh, this.trackDelivery());
    if (this.earlyEcho !== null) this.echoed(this.earlyEcho);
  }

  private echoed(ack: EchoAck): void {
    const isEarly = ack.output > (this.intake.received ?? 0);
    this.earlyEcho = isEarly ? ack : null;
    if (!isEarly) this.options.events.echo?.(ack);
  }

  private snapshot({ head, bytes }: SnapshotFrame): void {
    const known = checked(snapshotHeads, head);
    const skipped = this.intake.gapTo(known.offset);
    this.grant(this.intake.jump(known.offset));
    this.link.progressed();
    this.options.events.snapshot({ head: known, bytes, skipped }, this.trackDelivery());
  }

  private trackDelivery(): () => void {
    return this.intake.trackDelivery((credit) => {
      if (credit !== null) this.grant(credit);
      else if (this.intake.isDelivered) this.acknowledgeRest();
      this.finishWhenDelivered();
    });
  }

  /** Acknowledges the last output, for which no later frame would. */
  private acknowledgeRest(): void {
    this.restTimer ??= setTimeout(() => {
      this.restTimer = null;
      const { credit } = this.intake;
      if (credit !== null && this.connected) this.grant(credit);
    }, REST_PAUSE);
  }

  private grant({ consumed, limit }: Credit): void {
    this.link.send(ackFrame(consumed, limit));
  }

  private acknowledged({ consumed, limit }: Extract<Frame, { readonly type: 'ack' }>): void {
    this.outbox.acknowledge(consumed, limit);
    this.refill();
  }

  private placed(offset: number): void {
    const isFirst = !this.isPlaced;
    this.isPlaced = true;
    if (this.mode === 'write') this.outbox.placed(offset, isFirst);
  }

  private refill(): void {
    if (!this.isFull || !this.outbox.hasRoom) return;
    this.isFull = false;
    this.options.events.drain();
  }

  private exited(exit: Exit): void {
    this.exit = exit;
    const received = this.intake.received ?? 0;
    if (exit.final_offset !== null && received < exit.final_offset) {
      throw new Fault('protocol_violation', `output from ${received} to ${exit.final_offset} is missing`);
    }
    this.leave();
  }

  /** Leaves a session that is over after all output was received. */
  private leave(): void {
    this.disconnect();
    this.link.drop();
    this.finishWhenDelivered();
  }

  private finishWhenDelivered(): void {
    const { exit } = this;
    if (exit === null || this.connected || !this.intake.isDelivered) return;
    const complete = exit.final_offset === (this.intake.received ?? 0);
    this.finish({ kind: 'exit', exit, complete });
  }

  private async onClosed(gone: Gone): Promise<void> {
    this.disconnect();
    if (gone.kind === 'replaced') this.finish({ kind: 'replaced' });
    else if (gone.kind === 'refused') this.finish({ kind: 'failed', fault: gone.fault });
    else await this.fetchExit();
  }

  private async fetchExit(): Promise<void> {
    const { api, sessionId } = this.options;
    try {
      this.exit ??= await lateExit(api, sessionId, AbortSignal.timeout(LATE_EXIT_DEADLINE));
      this.leave();
    } catch (error) {
      this.finish({ kind: 'failed', fault: faultOf(error) });
    }
  }

  private async closeFromOutside(): Promise<void> {
    const { api, sessionId } = this.options;
    try {
      await api.call('closeTerminal', { params: { session_id: sessionId } });
    } catch (error) {
      if (!isFault(error, 'terminal_over')) this.finish({ kind: 'failed', fault: faultOf(error) });
    }
  }

  private finish(end: TerminalEnd): void {
    if (this.isFinished) return;
    this.isFinished = true;
    this.disconnect();
    this.outbox.clear();
    if (this.restTimer !== null) clearTimeout(this.restTimer);
    this.link.drop();
    queueMicrotask(() => this.options.events.ended(end));
  }

  private disconnect(): void {
    this.earlyEcho = null;
    this.connected = false;
    this.outbox.pause();
  }

  private measured(ms: number): void {
    this.roundTrip = ms;
    this.intake.measured(ms);
  }

  private sendNote(note: ClientNote): void {
    if (this.connected) this.link.send(jsonFrame('note', note));
  }

  private sendSize(): void {
    if (!this.connected || this.mode !== 'write' || this.size === null) return;
    this.generation += 1;
    this.link.send(resizeFrame(this.size.cols, this.size.rows, this.generation));
  }

  /** Returns what to resume with; null before any output. */
  private resumption(): { readonly secret: string; readonly received: number } | null {
    const { received } = this.intake;
    return this.secret === null || received === null ? null : { secret: this.secret, received };
  }

  private attachAs(): { readonly mode: TerminalMode; readonly take?: boolean } {
    if (this.resumption() !== null) return { mode: 'read' };
    const mode = this.mode ?? this.options.mode;
    // The lost connection may still hold the pen.
    return mode === 'write' ? { mode, take: true } : { mode };
  }
}

/** Returns the value. Throws `protocol_violation` when it does not match the schema. */
function checked<T>(schema: Check<T>, value: unknown): T {
  if (schema.check(value)) return value;
  throw new Fault('protocol_violation', 'the peer sent what this version does not know');
}

const faultOf = (error: unknown): Fault =>
  isFault(error) ? error : new Fault('internal', messageOf(error), { cause: error });

/** Connects in the background. Calls `events` only after it has returned. */
export function connectTerminal(options: ConnectTerminalOptions): TerminalSession {
  const connection = new TerminalConnection(options);
  connection.begin(options.wsUrl);
  return connection;
}

/** Returns the exit of a session that ended before its client was back. Throws the request's error, and `unreachable` for a session without a valid exit. */
export async function lateExit(api: ApiClient, sessionId: string, signal: AbortSignal): Promise<Exit> {
  const session = await api.call('getTerminal', { params: { session_id: sessionId }, signal });
  const { exit_code: code, exit_signal, reason, output_bytes: final_offset } = session;
  const exit = { code, signal: exit_signal, reason, final_offset };
  if (exits.check(exit)) return exit;
  throw new Fault('unreachable', `the orchestrator does not say how terminal ${sessionId} ended`, {
    hint: `see: orch term show ${sessionId}`,
  });
}
