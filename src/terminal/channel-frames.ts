/**
 * Frames of the connections of a forward (`docs/protocols/forward.md`): type byte, number of the channel, operation, payload. The
 * relay forwards them unchanged. A channel is one connection in a session; the client gives rising numbers.
 */
import { FRAME } from './frames.js';

export const CHANNEL_OPS = {
  /** Client: connect to the target with this number. */
  open: 0,
  /** Agent: the target has accepted the connection. */
  opened: 1,
  data: 2,
  /** The receiver has consumed this much credit. */
  credit: 3,
  /** No data follows in this direction. */
  end: 4,
  /** The connection was refused or has broken; the payload is the reason. No frame of the channel follows. */
  reset: 5,
} as const;

/** Length of the head: type, channel, operation. */
export const CHANNEL_HEAD = 6;

export function channelHead(channel: number, op: number): Buffer {
  const head = Buffer.allocUnsafe(CHANNEL_HEAD);
  head[0] = FRAME.channel;
  head.writeUInt32BE(channel, 1);
  head[5] = op;
  return head;
}

function numberFrame(channel: number, op: number, value: number): Buffer {
  const frame = Buffer.allocUnsafe(CHANNEL_HEAD + 4);
  channelHead(channel, op).copy(frame);
  frame.writeUInt32BE(value, CHANNEL_HEAD);
  return frame;
}

export const openFrame = (channel: number, target: number): Buffer => numberFrame(channel, CHANNEL_OPS.open, target);
export const creditFrame = (channel: number, credit: number): Buffer =>
  numberFrame(channel, CHANNEL_OPS.credit, credit);
export const openedFrame = (channel: number): Buffer => channelHead(channel, CHANNEL_OPS.opened);
export const endFrame = (channel: number): Buffer => channelHead(channel, CHANNEL_OPS.end);
export const resetFrame = (channel: number, reason: string): Buffer =>
  Buffer.concat([channelHead(channel, CHANNEL_OPS.reset), Buffer.from(reason)]);
