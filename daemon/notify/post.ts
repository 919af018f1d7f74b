/** Sends one request of a channel and reads the status of the answer, within hard limits of time and size. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { messageOf } from '../../src/kernel/fault.js';
import { VERSION } from '../../src/kernel/version.js';
import type { Outgoing } from './channels/channel-kind.js';
import { deadlineOf } from './deadline.js';
import { DeliveryProblem } from './delivery-problem.js';
import { type DialOptions, dial } from './dial.js';

/** The answer, whatever its status. */
export interface Reply {
  readonly status: number;
  /** As it was sent. */
  readonly retryAfter: string | null;
}

/** Until the connection is there, and until everything is over. */
const CONNECT_MS = 5_000;
const TOTAL_MS = 10_000;
/** Of the answer's body, which nobody looks at. */
const BODY_BYTES = 64 * 1024;

/**
 * No redirect is followed and no proxy used. Aborting `cancel` rejects with its reason.
 * @throws DeliveryProblem
 */
export async function post(outgoing: Outgoing, options: DialOptions, cancel: AbortSignal): Promise<Reply> {
  const total = deadlineOf(TOTAL_MS, cancel);
  const connect = deadlineOf(CONNECT_MS, total.signal);
  try {
    const url = new URL(outgoing.url);
    const socket = await dial(url, options, connect.signal);
    connect.clear();
    return await exchange(url, { outgoing, socket, signal: total.signal });
  } catch (error) {
    if (error instanceof DeliveryProblem) throw error;
    cancel.throwIfAborted();
    if (total.isOver()) throw new DeliveryProblem('timeout', `there was no answer within ${TOTAL_MS / 1000} seconds`);
    if (connect.isOver()) throw new DeliveryProblem('timeout', `no connection within ${CONNECT_MS / 1000} seconds`);
    throw new DeliveryProblem('cut_off', `the connection ended before the answer: ${messageOf(error)}`);
  } finally {
    connect.clear();
    total.clear();
  }
}

interface Exchange {
  readonly outgoing: Outgoing;
  readonly socket: Socket;
  readonly signal: AbortSignal;
}

async function exchange(url: URL, { outgoing, socket, signal }: Exchange): Promise<Reply> {
  const body = Buffer.from(outgoing.body);
  const sent = request({
    method: 'POST',
    path: `${url.pathname}${url.search}`,
    setHost: false,
    headers: {
      host: url.host,
      'user-agent': `orch/${VERSION}`,
      'content-type': 'application/json',
      accept: '*/*',
      ...withoutAbsent(outgoing.headers),
      'content-length': body.length,
      connection: 'close',
    },
    createConnection: () => socket,
    signal,
  });
  try {
    const response = await answerOf(sent, body);
    const retryAfter = response.headers['retry-after'] ?? null;
    await drained(response);
    return { status: response.statusCode ?? 0, retryAfter };
  } finally {
    sent.destroy();
    socket.destroy();
  }
}

function answerOf(sent: ClientRequest, body: Buffer): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on('response', resolve);
    sent.on('error', reject);
    sent.end(body);
  });
}

/** The status has come, so it does not matter how the body ends. */
function drained(response: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > BODY_BYTES) resolve();
    });
    response.on('error', () => resolve());
    response.on('close', () => resolve());
    response.on('end', () => resolve());
  });
}

const withoutAbsent = (headers: Outgoing['headers']) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
