/** A forward, as the client uses it: one socket to the orchestrator, and any number of connections to the targets over it. */
import type { Clock } from '../../kernel/clock.js';
import { Fault } from '../../kernel/fault.js';
import { Channel, type LocalStream, pumpInTurn, reasonOf } from '../../terminal/channel.js';
import { CHANNEL_OPS, openFrame, resetFrame } from '../../terminal/channel-frames.js';
import { FORWARD_LIMITS, FORWARD_SUBPROTOCOL, FORWARD_VERSION } from '../../terminal/forward-limits.js';
import type { Frame } from '../../terminal/frames.js';
import { TERMINAL_CLOSE } from '../../terminal/limits.js';
import type { ApiClient } from '../api-client.js';
import { streamAddress } from '../terminal/terminal-link.js';
import { TerminalSocket } from '../terminal/terminal-socket.js';

export interface ForwardConnectionOptions {
  readonly api: ApiClient;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Session and its fresh URL, from `openForward` or `openSshProxy`. */
  readonly opened: { readonly session_id: string; readonly ws_url: string };
  /** Called once when the session has ended, unless `close` ended it. Its connections are broken then. */
  readonly onLost: (cause: Fault) => void;
}

/** A connection that waits for the target's answer. */
interface Pending {
  readonly local: LocalStream;
  readonly onEnd: (reason: string | null) => void;
}

export class ForwardConnection {
  /** Resolves when connections may be opened; rejects when the session ends before. */
  readonly ready: Promise<void>;
  private readonly options: ForwardConnectionOptions;
  private readonly socket: TerminalSocket;
  private readonly pending = new Map<number, Pending>();
  private readonly channels = new Map<number, Channel>();
  private readonly link;
  private settle: { readonly resolve: () => void; readonly reject: (cause: Fault) => void } | null = null;
  private next = 0;
  private isOver = false;

  constructor(options: ForwardConnectionOptions) {
    const { api, clock, opened } = options;
    this.options = options;
    this.ready = new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    this.ready.catch(() => undefined);
    const socket = new TerminalSocket({
      address: streamAddress(api.url, opened.ws_url),
      connections: api.connections,
      clock,
      subprotocol: FORWARD_SUBPROTOCOL,
      hello: { version: FORWARD_VERSION, session_id: opened.session_id, ticket: '' },
      inputAge: () => 0,
      onFrame: (frame) => this.handle(frame),
      onRoundTrip: () => undefined,
      onSilence: () => undefined,
      onClosed: (code, cause, reason) => this.lost(code, cause, reason),
      onDrain: () => pumpInTurn(this.channels),
    });
    this.socket = socket;
    this.link = {
      send: (...parts: readonly [Buffer, ...Buffer[]]) => socket.send(...parts),
      get hasRoom() {
        return socket.unsent < FORWARD_LIMITS.unsent;
      },
    };
  }

  /**
   * Connects a local stream to the target with this number.
   * @param onEnd receives null after a complete end, else why the connection was refused or broke
   */
  connect(target: number, local: LocalStream, onEnd: (reason: string | null) => void): void {
    if (this.isOver) {
      local.destroy();
      onEnd('the connection to the orchestrator is lost');
      return;
    }
    const id = this.next;
    this.next += 1;
    this.pending.set(id, { local, onEnd });
    local.source.once('close', () => {
      if (!this.pending.delete(id)) return;
      this.socket.send(resetFrame(id, 'the client has gone'));
      onEnd('the local end has gone');
    });
    this.socket.send(openFrame(id, target));
  }

  /** Ends the session and breaks its connections. */
  close(): void {
    if (this.isOver) return;
    this.socket.drop(TERMINAL_CLOSE.done);
    this.end('the forward was closed');
  }

  private handle(frame: Frame): void {
    if (frame.type === 'note') this.settle?.resolve();
    if (frame.type !== 'channel') return;
    const { channel: id, op, bytes } = frame;
    const pending = this.pending.get(id);
    if (pending === undefined) {
      if (id >= this.next) throw new Fault('protocol_violation', 'the peer sent a frame of an unknown connection');
      this.channels.get(id)?.receive(op, bytes);
      return;
    }
    this.pending.delete(id);
    if (op === CHANNEL_OPS.opened) this.opened(id, pending);
    else if (op === CHANNEL_OPS.reset) {
      pending.local.destroy();
      pending.onEnd(reasonOf(bytes));
    } else throw new Fault('protocol_violation', 'the peer sent a frame of a connection before it was open');
  }

  private opened(id: number, { local, onEnd }: Pending): void {
    const channel = new Channel({
      id,
      link: this.link,
      local,
      onGone: (reason) => {
        this.channels.delete(id);
        onEnd(reason);
      },
    });
    this.channels.set(id, channel);
    channel.start();
  }

  private lost(code: number | null, cause: Fault, reason: string): void {
    if (this.isOver) return;
    const fault = lossOf(code, cause, reason);
    this.end(fault.message);
    this.settle?.reject(fault);
    this.options.onLost(fault);
  }

  private end(reason: string): void {
    this.isOver = true;
    for (const [id, { local, onEnd }] of [...this.pending]) {
      this.pending.delete(id);
      local.destroy();
      onEnd(reason);
    }
    for (const channel of [...this.channels.values()]) channel.abandon(reason);
  }
}

function lossOf(code: number | null, cause: Fault, reason: string): Fault {
  if (code === TERMINAL_CLOSE.revoked) {
    return new Fault('role_forbidden', 'the orchestrator has ended this forward: you are no longer allowed to use it');
  }
  if (code === TERMINAL_CLOSE.goingAway) return new Fault('shutting_down', 'the orchestrator is stopping');
  if (code === null || reason === '') return cause;
  return new Fault('agent_not_connected', `the forward has ended: ${reason.replace(/[^\x20-\x7e]/g, '?')}`);
}
