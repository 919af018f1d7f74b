/** What the relay and each end of a forward refuse of a hostile peer, and what bounds their memory. */
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { ChannelRelay, type RelayEnd, type Transfer } from '../../daemon/forward/channel-relay.js';
import { Channel } from '../../src/terminal/channel.js';
import {
  CHANNEL_OPS,
  channelHead,
  creditFrame,
  endFrame,
  openedFrame,
  openFrame,
  resetFrame,
} from '../../src/terminal/channel-frames.js';
import { FORWARD_LIMITS } from '../../src/terminal/forward-limits.js';
import { readFrame } from '../../src/terminal/frames.js';

/** An end that takes frames and gives nothing back, so that what is sent to it stays unsent. */
class StuckEnd implements RelayEnd {
  unsent = 0;
  isHeld = false;
  readonly sent: Buffer[] = [];

  send(...parts: readonly [Buffer, ...Buffer[]]): void {
    const frame = Buffer.concat(parts);
    this.sent.push(frame);
    this.unsent += frame.length;
  }

  hold(): void {
    this.isHeld = true;
  }

  release(): void {
    this.isHeld = false;
  }

  /** The peer reads everything. */
  drain(): void {
    this.unsent = 0;
  }
}

function relaying() {
  const client = new StuckEnd();
  const agent = new StuckEnd();
  const transfers: Transfer[] = [{ connections: 0, sent: 0, received: 0 }];
  const relay = new ChannelRelay({ client, agent }, transfers);
  return {
    client,
    agent,
    transfers,
    relay,
    byClient: (data: Buffer) => relay.fromClient(readFrame(data), data),
    byAgent: (data: Buffer) => relay.fromAgent(readFrame(data), data),
  };
}

const data = (channel: number, bytes: number): Buffer =>
  Buffer.concat([channelHead(channel, CHANNEL_OPS.data), Buffer.alloc(bytes)]);

/** Opens a connection that nothing has answered, and returns data for it. */
function openAndSend(channel: number, byClient: (data: Buffer) => void): Buffer {
  byClient(openFrame(channel, 0));
  return data(channel, 1);
}

describe('the relay of a forward', () => {
  it.each<readonly [string, (peers: ReturnType<typeof relaying>) => void]>([
    ['a target that was not agreed', ({ byClient }) => byClient(openFrame(0, 1))],
    ['a number that was used', ({ byClient }) => byClient(openFrame(0, 0))],
    ['data of a connection that was not opened', ({ byClient }) => byClient(data(7, 1))],
    ['data of an agent for a connection that was not opened', ({ byAgent }) => byAgent(data(7, 1))],
    ['a client that answers itself', ({ byClient }) => byClient(openedFrame(0))],
    ['an agent that opens', ({ byAgent }) => byAgent(openFrame(1, 0))],
    ['data before the target has answered', ({ byClient }) => byClient(openAndSend(1, byClient))],
    ['data of an agent before it has answered', ({ byClient, byAgent }) => byAgent(openAndSend(1, byClient))],
    ['an agent that answers twice', ({ byAgent }) => byAgent(openedFrame(0))],
  ])('refuses %s', (_, act) => {
    const peers = relaying();
    peers.byClient(openFrame(0, 0));
    peers.byAgent(openedFrame(0));
    expect(() => act(peers)).toThrow(expect.objectContaining({ code: 'protocol_violation' }));
  });

  it('passes and counts nothing of a connection that has ended', () => {
    const { byClient, byAgent, agent, client, transfers } = relaying();
    byClient(openFrame(0, 0));
    byAgent(openedFrame(0));
    byClient(data(0, 5));
    byAgent(resetFrame(0, 'ECONNRESET'));
    const passed = [agent.sent.length, client.sent.length];
    byClient(data(0, 9));
    byAgent(data(0, 9));
    expect([agent.sent.length, client.sent.length]).toEqual(passed);
    expect(transfers).toEqual([{ connections: 1, sent: 5, received: 0 }]);
  });

  it('counts no connection that the target has refused', () => {
    const { byClient, byAgent, transfers } = relaying();
    byClient(openFrame(0, 0));
    byAgent(resetFrame(0, 'nothing listens there'));
    expect(transfers).toEqual([{ connections: 0, sent: 0, received: 0 }]);
  });

  it.each(['client', 'agent'] as const)('stops reading from one end while the %s does not read', (slow) => {
    const peers = relaying();
    peers.byClient(openFrame(0, 0));
    peers.byAgent(openedFrame(0));
    const [from, send] = slow === 'agent' ? [peers.client, peers.byClient] : [peers.agent, peers.byAgent];
    for (let frames = 0; !from.isHeld; frames += 1) {
      expect(frames * FORWARD_LIMITS.data).toBeLessThan(2 * FORWARD_LIMITS.unsent);
      send(data(0, FORWARD_LIMITS.data));
    }
    peers[slow].drain();
    if (slow === 'agent') peers.relay.agentDrained();
    else peers.relay.clientDrained();
    expect(from.isHeld).toBe(false);
  });

  it('stops reading from a client that opens without end and does not read the answers', () => {
    const { byClient, client, agent, relay } = relaying();
    for (let id = 0; !client.isHeld; id += 1) {
      expect(client.unsent).toBeLessThan(2 * FORWARD_LIMITS.unsent);
      byClient(openFrame(id, 0));
    }
    expect(agent.sent).toHaveLength(FORWARD_LIMITS.channels);
    // It stays held while its own queue is full, whatever the agent reads.
    agent.drain();
    relay.agentDrained();
    expect(client.isHeld).toBe(true);
    client.drain();
    relay.clientDrained();
    expect(client.isHeld).toBe(false);
  });

  it.each(['client', 'agent'] as const)('is stalled when the %s reads nothing for five minutes', (slow) => {
    const peers = relaying();
    const { relay } = peers;
    const drained = () => (slow === 'client' ? relay.clientDrained() : relay.agentDrained());
    const fill = () => {
      peers[slow].unsent = FORWARD_LIMITS.unsent + 1;
    };
    fill();
    expect(relay.isStalled(1_000)).toBe(false);
    expect(relay.isStalled(1_000 + FORWARD_LIMITS.stall - 1)).toBe(false);
    // It empties its queue, which fills again before the next look.
    drained();
    expect(relay.isStalled(1_000 + FORWARD_LIMITS.stall)).toBe(false);
    expect(relay.isStalled(1_000 + 2 * FORWARD_LIMITS.stall)).toBe(true);
    peers[slow].drain();
    expect(relay.isStalled(1_000 + 3 * FORWARD_LIMITS.stall)).toBe(false);
  });
});

describe('an end of a forwarded connection', () => {
  const opened = () => {
    const sent: Buffer[] = [];
    const local = { source: new PassThrough(), sink: new PassThrough({ highWaterMark: 1 }) };
    const gone: (string | null)[] = [];
    const channel = new Channel({
      id: 0,
      link: { send: (...parts) => void sent.push(Buffer.concat(parts)), hasRoom: true },
      local: { ...local, destroy: () => [local.source, local.sink].map((stream) => stream.destroy()) },
      onGone: (reason) => void gone.push(reason),
    });
    channel.start();
    return { channel, sent, gone, ...local };
  };
  const bodyOf = (frame: Buffer) => frame.subarray(channelHead(0, 0).length);
  const receive = (channel: Channel, frame: Buffer) => channel.receive(frame[5] ?? 0, bodyOf(frame));

  it.each<readonly [string, readonly Buffer[]]>([
    ['data without bytes', [data(0, 0)]],
    ['a frame above the bound', [data(0, FORWARD_LIMITS.data + 1)]],
    ['data after the end', [endFrame(0), data(0, 1)]],
    ['a second end', [endFrame(0), endFrame(0)]],
    ['credit that was not used', [creditFrame(0, 1)]],
    ['credit without a number', [channelHead(0, CHANNEL_OPS.credit)]],
    ['an unknown operation', [channelHead(0, 9)]],
    ['a second answer', [openedFrame(0)]],
    [
      'more data than it had credit for',
      Array.from({ length: 2 * Math.ceil(FORWARD_LIMITS.window / FORWARD_LIMITS.data) }, () =>
        data(0, FORWARD_LIMITS.data),
      ),
    ],
  ])('refuses %s', (_, frames) => {
    const { channel } = opened();
    expect(() => {
      for (const frame of frames) receive(channel, frame);
    }).toThrow(expect.objectContaining({ code: 'protocol_violation' }));
  });

  it('reads from its stream only as much as the peer has given credit for', async () => {
    const { source, sent } = opened();
    source.write(Buffer.alloc(4 * FORWARD_LIMITS.window));
    await new Promise((resolve) => setImmediate(resolve));
    const bytes = sent.reduce((sum, frame) => sum + bodyOf(frame).length, 0);
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThanOrEqual(FORWARD_LIMITS.window);
  });

  it('shows the reason of a reset without characters that act on a terminal', () => {
    const { channel, gone } = opened();
    receive(channel, resetFrame(0, 'no\x1b]0;title\x07 \u202edrow'));
    expect(gone).toEqual(['no?]0;title? ?drow']);
  });
});
