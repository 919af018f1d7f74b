/** A forward while it exists: its two sockets and the relay between them. */
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import { validator } from '../../src/kernel/validator.js';
import { FORWARD_LIMITS } from '../../src/terminal/forward-limits.js';
import { type Frame, jsonFrame } from '../../src/terminal/frames.js';
import { TERMINAL_CLOSE } from '../../src/terminal/limits.js';
import { type CopiedNote, CopiedNoteSchema } from '../../src/terminal/notes.js';
import type { TerminalSocket } from '../terminal/terminal-socket.js';
import { ChannelRelay, type Transfer } from './channel-relay.js';
import { FORWARD_ENDS, type ForwardEnd, type ForwardFacts } from './forward-facts.js';

interface LiveForwardOptions {
  readonly facts: ForwardFacts;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Called once when the forward has ended. */
  readonly onEnded: (end: ForwardEnd) => void;
}

const isCopied = validator(CopiedNoteSchema);

export class LiveForward {
  readonly facts: ForwardFacts;
  readonly transfers: readonly Transfer[];
  private readonly options: LiveForwardOptions;
  private readonly begunAt: number;
  private client: TerminalSocket | null = null;
  private agent: TerminalSocket | null = null;
  private relay: ChannelRelay | null = null;
  private openedAt: number | null = null;
  private endedBy: ForwardEnd | null = null;
  private latest: CopiedNote | null = null;

  constructor(options: LiveForwardOptions) {
    this.options = options;
    this.facts = options.facts;
    this.transfers = options.facts.targets.map(() => ({ connections: 0, sent: 0, received: 0 }));
    this.begunAt = options.clock.monotonic();
  }

  get isOver(): boolean {
    return this.endedBy !== null;
  }

  /** Why it has ended; null while it exists. */
  get reason(): ForwardEnd | null {
    return this.endedBy;
  }

  /** What the agent of a copy has reported last; null before that, and for other sessions. */
  get copied(): CopiedNote | null {
    return this.latest;
  }

  /** Seconds since the request. */
  get seconds(): number {
    return Math.round((this.options.clock.monotonic() - this.begunAt) / 1000);
  }

  /** The agent permits it: both ends have `attachDeadline` from now on. */
  opened(): void {
    this.openedAt = this.options.clock.monotonic();
  }

  /** Takes the socket of the client or the agent. Returns false when there is one already. */
  attach(end: 'client' | 'agent', socket: TerminalSocket): boolean {
    if (this.isOver || this[end] !== null) return false;
    this[end] = socket;
    const { client, agent } = this;
    if (client === null || agent === null) return true;
    const relay = new ChannelRelay({ client, agent }, this.transfers);
    this.relay = relay;
    agent.listen((frame, data) => {
      if (frame.type === 'note') this.note(frame);
      else relay.fromAgent(frame, data);
    });
    client.listen((frame, data) => relay.fromClient(frame, data));
    client.send(jsonFrame('note', { kind: 'ready' }));
    return true;
  }

  private note({ value }: Extract<Frame, { type: 'note' | 'hello' | 'exit' }>): void {
    if (this.facts.kind !== 'copy') return;
    if (!isCopied.check(value)) throw new Fault('protocol_violation', 'the peer sent a note that is none');
    this.latest = value;
  }

  /** Handles the end of one of its sockets. */
  detached(socket: TerminalSocket): void {
    if (socket === this.client) this.end(socket.hasClosedByPeer ? 'closed' : 'client_lost');
    else if (socket === this.agent) this.end('agent_lost');
  }

  drained(end: 'client' | 'agent'): void {
    if (end === 'client') this.relay?.clientDrained();
    else this.relay?.agentDrained();
  }

  /** Sends pings, and ends a forward to which the agent or the client does not attach, or of which an end stops reading. */
  tick(): void {
    this.client?.beat();
    this.agent?.beat();
    const now = this.options.clock.monotonic();
    if (this.relay?.isStalled(now)) this.end('stalled');
    const waited = now - (this.openedAt ?? now);
    if (this.relay === null && waited > FORWARD_LIMITS.attachDeadline) this.end('not_attached');
  }

  end(end: ForwardEnd): void {
    if (this.isOver) return;
    this.endedBy = end;
    this.client?.close(CLOSE_CODES[end] ?? TERMINAL_CLOSE.failed, FORWARD_ENDS[end]);
    this.agent?.close(TERMINAL_CLOSE.done, FORWARD_ENDS[end]);
    this.options.onEnded(end);
  }
}

const CLOSE_CODES: Readonly<Partial<Record<ForwardEnd, number>>> = {
  orchestrator_stopped: TERMINAL_CLOSE.goingAway,
  operator_removed: TERMINAL_CLOSE.revoked,
};
