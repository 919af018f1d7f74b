/** Answers of a running orchestrator that stay open: streams of lines and events, and sockets. */
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { WebSocket } from 'ws';
import { FORWARD_SUBPROTOCOL } from '../../src/terminal/forward-limits.js';
import { jsonFrame } from '../../src/terminal/frames.js';
import { TERMINAL_SUBPROTOCOL } from '../../src/terminal/limits.js';
import type { Call, World } from '../api/world.js';

export interface OpenStream {
  /** What has come so far. */
  readonly text: () => string;
  /** Resolves with everything that came when the answer has ended, for a socket with the code of its close. */
  readonly ended: Promise<string>;
  close(): void;
}

/** Sends a request as the bearer of the token. Resolves when its answer has begun, or at once with `isWaiting`. */
export async function openStream(
  world: World,
  id: string,
  { token, params, query, body }: Call,
  accept: string,
  isWaiting = false,
): Promise<OpenStream> {
  const { method, path } = world.api.operation(id);
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params?.[name] ?? 'none'));
  const headers = {
    authorization: `Bearer ${token}`,
    accept,
    ...(body === undefined ? { 'content-length': '0' } : { 'content-type': 'application/json' }),
  };
  const options = { method, headers, agent: false, rejectUnauthorized: false };
  let text = '';
  const url = `${world.base}${filled}?${new URLSearchParams(query ?? {})}`;
  const sent = request(url, options);
  const answer = new Promise<IncomingMessage>((resolve, reject) =>
    sent.once('response', resolve).once('error', reject),
  );
  const ended = answer.then(
    (response) =>
      new Promise<string>((resolve) => {
        response.setEncoding('utf8').on('data', (piece) => {
          text += piece;
        });
        response.on('error', () => undefined).on('close', () => resolve(text));
      }),
  );
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  if (!isWaiting) await answer;
  ended.catch(() => undefined);
  return { text: () => text, ended, close: () => void sent.destroy() };
}

/** Opens the socket of an answer. Resolves with the first message of the orchestrator. */
export function openSocket(url: string): Promise<OpenStream> {
  const isForward = url.includes('/forward/');
  const protocol = isForward ? FORWARD_SUBPROTOCOL : TERMINAL_SUBPROTOCOL;
  const ticket = new URL(url).searchParams.get('ticket') ?? '';
  const session_id = new URL(url).pathname.split('/').at(-2) ?? '';
  const hello = isForward ? { version: 1, session_id, ticket } : { version: 1, resume: null };
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, protocol, { rejectUnauthorized: false, perMessageDeflate: false });
    let text = '';
    const ended = new Promise<string>((end) => socket.once('close', (code) => end(`${text} close ${code}`)));
    socket.on('error', reject);
    socket.on('open', () => socket.send(jsonFrame('hello', hello)));
    socket.on('message', (data) => {
      text += data.toString();
      resolve({ text: () => text, ended, close: () => socket.terminate() });
    });
    socket.once('close', (code) => reject(new Error(`the socket was closed at once with ${code}`)));
  });
}
