/** Limits the memory that an incomplete frame of a peer can occupy, below the WebSocket's own fixed limit. */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';

/**
 * Sets the maximum frame size in bytes; null restores the WebSocket's own limit. `exceeded` must close the
 * connection; without it the connection closes with code 1009.
 */
export type FrameLimit = (bytes: number | null, exceeded?: () => void) => void;

/** Close code of RFC 6455 for a message that is too big. */
const TOO_BIG = 1009;
/** Bytes of a client's control frame besides its payload. */
const CONTROL_HEADER = 6;

/**
 * Creates the frame limit of a connection.
 * @param transport the stream below the WebSocket, to which the WebSocket must already be attached
 */
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
  // The WebSocket has already processed the chunk, so its messages and control frames are counted.
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
