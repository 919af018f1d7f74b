/** Sends one channel request and reads the response, within hard limits of time and size. */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { Socket } from 'node:net';
import { messageOf } from '../../src/kernel/fault.js';
import { VERSION } from '../../src/kernel/version.js';
import type { Outgoing } from './channels/channel-kind.js';
import { DeliveryProblem } from './delivery-log.js';
import { type DialOptions, deadlineOf, dial } from './dial.js';
import { type Reply, readResponse } from './response-reader.js';

/** Timeouts of the connection and of the whole request, in milliseconds. */
const CONNECT_MS = 5_000;
const TOTAL_MS = 10_000;

/**
 * Sends the request and returns the response. Follows no redirect and uses no proxy: both would bypass the address policy.
 * Rejects with the reason of `cancel` when it is aborted.
 * @throws DeliveryProblem
 */
export async function post(outgoing: Outgoing, options: DialOptions, cancel: AbortSignal): Promise<Reply> {
  const total = deadlineOf(TOTAL_MS, cancel);
  const connect = deadlineOf(CONNECT_MS, total.signal);
  try {
    const url = new URL(outgoing.url);
    const open = async () => {
      const socket = await dial(url, options, connect.signal);
      connect.clear();
      return socket;
    };
    return await exchange(url, outgoing, open, total.signal);
  } catch (error) {
    if (error instanceof DeliveryProblem) throw error;
    cancel.throwIfAborted();
    if (total.hasExpired())
      throw new DeliveryProblem('timeout', `there was no answer within ${TOTAL_MS / 1000} seconds`);
    if (connect.hasExpired()) throw new DeliveryProblem('timeout', `no connection within ${CONNECT_MS / 1000} seconds`);
    throw new DeliveryProblem('cut_off', `the connection ended before the answer: ${messageOf(error)}`);
  } finally {
    connect.clear();
    total.clear();
  }
}

/** Sends the request over a new connection that `open` returns, and destroys the connection afterwards. */
async function exchange(url: URL, outgoing: Outgoing, open: Open, signal: AbortSignal): Promise<Reply> {
  const request = requestOf(url, outgoing);
  const socket = await open();
  try {
    socket.write(request);
    return await readResponse(socket, signal);
  } finally {
    socket.destroy();
  }
}

type Open = () => Promise<Socket>;

/** Returns the bytes of the request. Throws for a header that could end its line. */
function requestOf(url: URL, { headers, body }: Outgoing): string {
  const all = {
    host: url.host,
    connection: 'close',
    'user-agent': `orch/${VERSION}`,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    accept: '*/*',
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => {
    if (value === undefined) return [];
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return [`${name}: ${value}`];
  });
  return [`POST ${url.pathname}${url.search} HTTP/1.1`, ...lines, '', body].join('\r\n');
}
