/** What the operators who are attached to a session send: input and sizes count from the one who writes alone. */
import { Fault } from '../../../src/kernel/fault.js';
import { validator } from '../../../src/kernel/validator.js';
import { type Frame, placeFrame } from '../../../src/terminal/frames.js';
import { clampSize, TERMINAL_CLOSE, TERMINAL_SIGNALS, type TerminalSignal } from '../../../src/terminal/limits.js';
import { type ClientNote, ClientNoteSchema } from '../../../src/terminal/notes.js';
import type { RequestContext } from '../../core/domain-event.js';
import { operatorParty } from '../session-book.js';
import type { ClientEnd } from './client-end.js';
import { noteFrame } from './people.js';
import { exitOf, type SessionCore } from './session-core.js';

const isNote = validator(ClientNoteSchema);

export interface ClientFramesOptions {
  readonly core: SessionCore;
  /** A viewer asks for the pen. */
  readonly askPen: (client: ClientEnd) => void;
}

export class ClientFrames {
  private readonly core: SessionCore;
  private readonly options: ClientFramesOptions;

  constructor(options: ClientFramesOptions) {
    this.core = options.core;
    this.options = options;
  }

  /** @throws Fault `protocol_violation` for what a client does not send */
  take(client: ClientEnd, frame: Frame, data: Buffer): void {
    const { agent, input, pace, people } = this.core;
    const isWriter = client === people.writer;
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

  private type(client: ClientEnd, { offset, bytes }: Extract<Frame, { readonly type: 'input' }>): void {
    const { input, watch } = this.core;
    const { socket } = client;
    watch.typed();
    if (!this.passes(client)) return;
    if (!input.take(offset, bytes)) socket.close(TERMINAL_CLOSE.overrun, 'more input than was asked for');
  }

  /** Input may have been on its way for long: then the client is asked whether it is still meant. */
  private passes({ gate, socket }: ClientEnd): boolean {
    const passage = gate.passage(socket.stalls);
    if (passage === 'ask') socket.send(placeFrame(this.core.input.end));
    return passage === 'take';
  }

  private resize(cols: number, rows: number): void {
    const { course, input, relay } = this.core;
    if (course.isOver) return;
    input.resize(cols, rows);
    relay.resize(cols, rows);
  }

  private noted(client: ClientEnd, kind: ClientNote['kind']): void {
    const { agent, clock, course, end, people, relay } = this.core;
    const { asks, output, socket } = client;
    if (kind !== 'close' && !asks.take(clock.monotonic())) return;
    switch (kind) {
      case 'redraw':
        if (relay.hasScreen) output.beginWithPicture();
        return;
      case 'ask_pen':
        if (client !== people.writer) this.options.askPen(client);
        return;
      case 'ask_latency':
        agent.measure((ms) => socket.send(noteFrame({ kind: 'latency', agent_ms: ms })));
        return;
      case 'close':
        if (client !== people.writer || course.isOver) return;
        end(exitOf('closed'), contextOf(client));
    }
  }
}

const isSignal = (name: string): name is TerminalSignal => TERMINAL_SIGNALS.some((signal) => signal === name);

const contextOf = ({ operator, address }: ClientEnd): RequestContext => ({
  actor: operatorParty(operator),
  requestId: '',
  address,
});
