/** One session of forwarded connections in the process of the forwards: its socket, and the connections to its targets. */
import type { Socket } from 'node:net';
import { CopyTally } from '../../copy/copy-tally.js';
import { Fault, messageOf } from '../../kernel/fault.js';
import type { SessionTarget } from '../../kernel/forward-target.js';
import { breakSocket, Channel, type LocalStream, pumpInTurn } from '../../terminal/channel.js';
import { CHANNEL_OPS, openedFrame, resetFrame } from '../../terminal/channel-frames.js';
import {
  AGENT_FORWARD_PATH,
  FORWARD_LIMITS,
  FORWARD_SUBPROTOCOL,
  FORWARD_VERSION,
} from '../../terminal/forward-limits.js';
import { type Frame, jsonFrame } from '../../terminal/frames.js';
import { TERMINAL_CLOSE } from '../../terminal/limits.js';
import type { CopiedNote } from '../../terminal/notes.js';
import type { KeptParts } from '../copy/kept-parts.js';
import { serveCopy } from '../copy/serve-copy.js';
import type { DialOrder } from '../terminal/host-messages.js';
import { SessionSocket, type SessionSocketOptions } from '../terminal/session-socket.js';
import { connectTarget } from './connect-target.js';

export interface ForwardSessionOptions {
  readonly id: string;
  readonly targets: readonly SessionTarget[];
  /** Paths that the settings permit copies; empty for other sessions. */
  readonly permitted: readonly string[];
  readonly parts: KeptParts;
  readonly dial: DialOrder;
  readonly socket: Pick<SessionSocketOptions, 'privateKey' | 'clock' | 'pace'>;
  /** Returns the number of connections of all sessions. */
  readonly load: () => number;
  /** Called once when the session has ended. */
  readonly onGone: (reason: string) => void;
}

export class ForwardSession {
  private readonly options: ForwardSessionOptions;
  private readonly socket: SessionSocket;
  /** Attempts to connect, by channel. */
  private readonly connecting = new Map<number, AbortController>();
  private readonly channels = new Map<number, Channel>();
  private readonly tally = new CopyTally();
  private report: NodeJS.Timeout | undefined;
  /** Highest number of a channel so far. */
  private last = -1;
  private isGone = false;

  /** Dials back. */
  constructor(options: ForwardSessionOptions) {
    const { id, dial, socket } = options;
    this.options = options;
    this.socket = new SessionSocket({
      ...socket,
      place: dial.place,
      endpoint: { path: AGENT_FORWARD_PATH, subprotocol: FORWARD_SUBPROTOCOL },
      mostUnsent: FORWARD_LIMITS.unsent,
      hello: () => ({ version: FORWARD_VERSION, session_id: id, ticket: dial.ticket }),
      onFrame: (frame) => this.handle(frame),
      onDrain: () => pumpInTurn(this.channels),
      onClosed: (_, reason) => this.gone(reason || 'the orchestrator has ended it'),
    });
  }

  /** Number of connections, including attempts. */
  get connections(): number {
    return this.channels.size + this.connecting.size;
  }

  /** Ends the session and its connections. */
  close(reason: string): void {
    if (this.isGone) return;
    this.socket.close(TERMINAL_CLOSE.done);
    this.gone(reason);
  }

  private handle(frame: Frame): void {
    if (frame.type !== 'channel') return;
    const { channel: id, op, bytes } = frame;
    if (op === CHANNEL_OPS.open) {
      this.open(id, bytes);
      return;
    }
    // Frames of a channel that has ended here may be on their way.
    if (id > this.last) throw violation('a frame of a connection that was not opened');
    const channel = this.channels.get(id);
    if (channel !== undefined) channel.receive(op, bytes);
    else if (this.connecting.has(id)) {
      if (op !== CHANNEL_OPS.reset) throw violation('a frame of a connection before it was open');
      this.connecting.get(id)?.abort();
    }
  }

  private open(id: number, bytes: Buffer): void {
    const target = bytes.length === 4 ? this.options.targets[bytes.readUInt32BE(0)] : undefined;
    if (id <= this.last || target === undefined) throw violation('a connection with a wrong number or target');
    this.last = id;
    const refusal = this.refusal();
    if (refusal !== null) {
      this.socket.send(resetFrame(id, refusal));
      return;
    }
    if ('copy' in target) {
      const { permitted, parts } = this.options;
      const onTally = (isFinal?: boolean) => (isFinal === true ? this.tell() : this.tellSoon());
      this.begin(id, serveCopy({ target, permitted, parts, tally: this.tally, onTally }));
      return;
    }
    const attempt = new AbortController();
    this.connecting.set(id, attempt);
    connectTarget(target, attempt.signal).then(
      (local) => this.connected(id, local),
      (error: unknown) => {
        if (this.connecting.delete(id) && !attempt.signal.aborted) this.socket.send(resetFrame(id, messageOf(error)));
      },
    );
  }

  private refusal(): string | null {
    const { channels, agentChannels } = FORWARD_LIMITS;
    if (this.connections >= channels) return `more than ${channels} connections at the same time`;
    return this.options.load() >= agentChannels ? `the agent has ${agentChannels} connections open` : null;
  }

  private connected(id: number, local: Socket): void {
    if (!this.connecting.delete(id)) {
      local.on('error', () => undefined);
      local.destroy();
      return;
    }
    this.begin(id, { source: local, sink: local, destroy: () => breakSocket(local) });
  }

  private begin(id: number, local: LocalStream): void {
    const channel = new Channel({
      id,
      link: this.socket,
      local,
      onGone: () => this.channels.delete(id),
    });
    this.channels.set(id, channel);
    this.socket.send(openedFrame(id));
    channel.start();
  }

  /** Reports what was copied to the orchestrator, for its audit log, at most once in `REPORT_EVERY`. */
  private tellSoon(): void {
    this.report ??= setTimeout(() => this.tell(), REPORT_EVERY);
  }

  private tell(): void {
    clearTimeout(this.report);
    this.report = undefined;
    const { sum, refusals } = this.tally;
    const note: CopiedNote = {
      kind: 'copied',
      ...sum,
      ...(refusals.length > 0 && { refusals: [...refusals] }),
    };
    this.socket.send(jsonFrame('note', note));
  }

  private gone(reason: string): void {
    if (this.isGone) return;
    this.isGone = true;
    clearTimeout(this.report);
    for (const [id, attempt] of [...this.connecting]) {
      this.connecting.delete(id);
      attempt.abort();
    }
    for (const channel of [...this.channels.values()]) channel.abandon(reason);
    this.options.onGone(reason);
  }
}

/** Milliseconds between two reports of what was copied. */
const REPORT_EVERY = 500;

const violation = (what: string): Fault => new Fault('protocol_violation', `the peer sent ${what}`);
