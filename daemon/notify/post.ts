/** Sends one channel request and reads the status of the response, within hard limits of time and size. */
import type { Socket } from 'node:net';
import { messageOf } from '../../src/kernel/fault.js';
import { VERSION } from '../../src/kernel/version.js';
import type { Outgoing } from './channels/channel-kind.js';
import { DeliveryProblem } from './delivery-log.js';
import { type DialOptions, deadlineOf, dial } from './dial.js';

/** A response of any status. */
export interface Reply {
  readonly status: number;
  /** Unparsed `Retry-After` header. */
  readonly retryAfter: string | null;
}

/** Timeouts of the connection and of the whole request, in milliseconds. */
const CONNECT_MS = 5_000;
const TOTAL_MS = 10_000;
/** Maximum bytes read of the response body, which is discarded. */
const BODY_BYTES = 64 * 1024;

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
  // Notifications are rare, so the library is loaded with the first one.
  const { Client } = await import('undici');
  const client = new Client(url.origin, {
    connect: (_options, callback) => {
      open().then(
        (socket) => callback(null, socket),
        (error) => callback(error, null),
      );
    },
    pipelining: 0,
    maxResponseSize: -1,
  });
  try {
    const { statusCode, headers, body } = await client.request({
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers: {
        'user-agent': `orch/${VERSION}`,
        'content-type': 'application/json',
        accept: '*/*',
        ...withoutAbsent(outgoing.headers),
      },
      body: outgoing.body,
      signal,
    });
    // The status decides the outcome, so an error in the body is ignored.
    await body.dump({ limit: BODY_BYTES, signal }).catch(() => undefined);
    const retryAfter = headers['retry-after'];
    return { status: statusCode, retryAfter: typeof retryAfter === 'string' ? retryAfter : null };
  } finally {
    await client.destroy();
  }
}

type Open = () => Promise<Socket>;

const withoutAbsent = (headers: Outgoing['headers']) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
