/** Bounds what a peer can make us hold in memory while a frame is incomplete, below the WebSocket's own fixed limit. */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';

/**
 * The largest frame in bytes from now on, or null for the WebSocket's own limit. Whoever gives `exceeded` closes the
 * connection in it; else it is closed with 1009.
 */
export type FrameLimit = (bytes: number | null, exceeded?: () => void) => void;

/** Close code of RFC 6455 for a message that is too big. */
const TOO_BIG = 1009;
/** Bytes of a control frame around its payload, as clients send it. */
const CONTROL_HEADER = 6;

/** @param transport the stream below the WebSocket; called after the WebSocket has attached itself to it */
export function limitFrames(transport: Duplex, socket: WebSocket): FrameLimit {
  let limit = Number.POSITIVE_INFINITY;
  const tooBig = () => socket.close(TOO_BIG, 'the frame is too large');
  let refuse = tooBig;
  let unfinished = 0;
  let control = 0;
  let completed = false;
  const onMessage = () => {
    completed = true;
  };
  const onControl = (payload: Buffer) => {
    control += payload.length + CONTROL_HEADER;
  };
  // The WebSocket has already taken the chunk: what it made of it is known.
  const onData = (chunk: Buffer) => {
    unfinished = completed ? 0 : Math.max(0, unfinished + chunk.length - control);
    completed = false;
    control = 0;
    if (unfinished <= limit) return;
    if (socket.readyState === socket.OPEN) refuse();
    else socket.terminate();
  };
  const watch = (attach: 'on' | 'off') => {
    transport[attach]('data', onData);
    socket[attach]('message', onMessage);
    socket[attach]('ping', onControl);
    socket[attach]('pong', onControl);
  };
  return (bytes, exceeded) => {
    refuse = exceeded ?? tooBig;
    if (limit !== Number.POSITIVE_INFINITY) watch('off');
    limit = bytes ?? Number.POSITIVE_INFINITY;
    unfinished = 0;
    if (bytes !== null) watch('on');
  };
}
