/**
 * Relays the channels of a forward between its client and its agent, and counts their bytes. It keeps no data: it reads from one end
 * only while the other end takes what it sends, and the ends bound each connection by credit.
 */
import { Fault } from '../../src/kernel/fault.js';
import { CHANNEL_OPS, resetFrame } from '../../src/terminal/channel-frames.js';
import { FORWARD_LIMITS } from '../../src/terminal/forward-limits.js';
import type { Frame } from '../../src/terminal/frames.js';

/** One end of the relay. */
export interface RelayEnd {
  send(...parts: readonly [Buffer, ...Buffer[]]): void;
  /** Bytes that the peer has not received. */
  readonly unsent: number;
  /** Stops reading until `release`. */
  hold(): void;
  release(): void;
}

/** Connections that a target has accepted so far, and the bytes that passed the relay: `sent` to the target, `received` from it. */
export interface Transfer {
  connections: number;
  sent: number;
  received: number;
}

interface OpenChannel {
  readonly transfer: Transfer;
  /** True once the target has accepted the connection. */
  isOpen: boolean;
  hasClientEnded: boolean;
  hasAgentEnded: boolean;
}

interface RelayEnds {
  readonly client: RelayEnd;
  readonly agent: RelayEnd;
}

export class ChannelRelay {
  private readonly ends: RelayEnds;
  private readonly transfers: readonly Transfer[];
  private readonly channels = new Map<number, OpenChannel>();
  /** Highest number of a channel so far. */
  private last = -1;
  /** Time since which the queue of an end is full. */
  private readonly fullSince: Record<keyof RelayEnds, number | null> = { client: null, agent: null };

  /** @param transfers counted here, one for each target */
  constructor(ends: RelayEnds, transfers: readonly Transfer[]) {
    this.ends = ends;
    this.transfers = transfers;
  }

  /** Relays a frame of the client. Throws `protocol_violation`. */
  fromClient(frame: Frame, data: Buffer): void {
    if (frame.type !== 'channel') return;
    if (frame.op === CHANNEL_OPS.open) {
      this.open(frame.channel, frame.bytes, data);
      return;
    }
    if (frame.op === CHANNEL_OPS.opened) throw violation('an answer to its own request');
    const channel = this.find(frame.channel);
    if (channel === undefined) return;
    if (!channel.isOpen && frame.op !== CHANNEL_OPS.reset) throw violation(EARLY);
    if (frame.op === CHANNEL_OPS.data) channel.transfer.sent += frame.bytes.length;
    if (frame.op === CHANNEL_OPS.end) channel.hasClientEnded = true;
    this.pass(frame, channel, data, this.ends.client, this.ends.agent);
  }

  /** Relays a frame of the agent. Throws `protocol_violation`. */
  fromAgent(frame: Frame, data: Buffer): void {
    if (frame.type !== 'channel') return;
    if (frame.op === CHANNEL_OPS.open) throw violation('a request that only clients send');
    const channel = this.find(frame.channel);
    if (channel === undefined) return;
    if (frame.op === CHANNEL_OPS.opened) accept(channel);
    else if (!channel.isOpen && frame.op !== CHANNEL_OPS.reset) throw violation(EARLY);
    if (frame.op === CHANNEL_OPS.data) channel.transfer.received += frame.bytes.length;
    if (frame.op === CHANNEL_OPS.end) channel.hasAgentEnded = true;
    this.pass(frame, channel, data, this.ends.agent, this.ends.client);
  }

  /** The client has received everything: reads from the agent again, and from a client that was held for its own answers. */
  clientDrained(): void {
    this.fullSince.client = null;
    this.ends.agent.release();
    if (this.ends.agent.unsent <= FORWARD_LIMITS.unsent) this.ends.client.release();
  }

  agentDrained(): void {
    this.fullSince.agent = null;
    if (this.ends.client.unsent <= FORWARD_LIMITS.unsent) this.ends.client.release();
  }

  /**
   * Reports whether an end has not emptied its full queue for `FORWARD_LIMITS.stall`. The other end is not read meanwhile, so the relay
   * would not notice that it has gone. @param now monotonic milliseconds
   */
  isStalled(now: number): boolean {
    return (['client', 'agent'] as const).some((name) => {
      const isFull = this.ends[name].unsent > FORWARD_LIMITS.unsent;
      this.fullSince[name] = isFull ? (this.fullSince[name] ?? now) : null;
      return now - (this.fullSince[name] ?? now) >= FORWARD_LIMITS.stall;
    });
  }

  private open(id: number, bytes: Buffer, data: Buffer): void {
    const transfer = bytes.length === 4 ? this.transfers[bytes.readUInt32BE(0)] : undefined;
    if (id <= this.last || transfer === undefined) throw violation('a connection with a wrong number or target');
    this.last = id;
    if (this.channels.size >= FORWARD_LIMITS.channels) {
      const { client } = this.ends;
      // A client that opens and never reads must not fill the memory with answers.
      this.forward(resetFrame(id, `more than ${FORWARD_LIMITS.channels} connections at the same time`), client, client);
      return;
    }
    this.channels.set(id, { transfer, isOpen: false, hasClientEnded: false, hasAgentEnded: false });
    this.forward(data, this.ends.client, this.ends.agent);
  }

  /** Returns undefined for a channel that has ended, whose last frames may be on their way. */
  private find(id: number): OpenChannel | undefined {
    if (id > this.last) throw violation('a frame of a connection that was not opened');
    return this.channels.get(id);
  }

  private pass(
    { channel: id, op }: Extract<Frame, { type: 'channel' }>,
    channel: OpenChannel,
    data: Buffer,
    from: RelayEnd,
    to: RelayEnd,
  ): void {
    if (op === CHANNEL_OPS.reset || (channel.hasClientEnded && channel.hasAgentEnded)) this.channels.delete(id);
    this.forward(data, from, to);
  }

  private forward(data: Buffer, from: RelayEnd, to: RelayEnd): void {
    to.send(data);
    if (to.unsent > FORWARD_LIMITS.unsent) from.hold();
  }
}

const EARLY = 'a frame of a connection before it was open';

function accept(channel: OpenChannel): void {
  if (channel.isOpen) throw violation('a second answer');
  channel.isOpen = true;
  channel.transfer.connections += 1;
}

const violation = (what: string): Fault => new Fault('protocol_violation', `the peer sent ${what}`);
