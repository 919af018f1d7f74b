/** Downloads from the addresses that modules name, with redirects within one scheme. */
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Fault } from '../../kernel/fault.js';

interface UrlOptions {
  /** Position of the first byte. */
  readonly from: number;
  readonly signal: AbortSignal;
}

const MAX_REDIRECTS = 5;
const REDIRECTS: readonly (number | undefined)[] = [301, 302, 303, 307, 308];
/** Milliseconds without a byte after which a download has failed. */
const SILENCE_MS = 60_000;

/**
 * Requests an address and passes the last answer on, whose connection ends when `take` has settled. Rejects with
 * `content_unavailable` for redirects that are refused, and with the error of the connection.
 */
export async function downloadUrl<T>(
  address: string,
  { from, signal }: UrlOptions,
  take: (answer: IncomingMessage) => Promise<T>,
): Promise<T> {
  if (!URL.canParse(address)) throw refused('it is no address');
  let url = new URL(address);
  for (let redirects = 0; ; redirects += 1) {
    const answer = await get(url, { from, signal });
    try {
      const { location } = answer.headers;
      if (!REDIRECTS.includes(answer.statusCode) || location === undefined) return await take(answer);
      if (redirects === MAX_REDIRECTS) throw refused(`${url.host} redirects more than ${MAX_REDIRECTS} times`);
      url = redirected(url, location);
    } finally {
      answer.destroy();
    }
  }
}

function redirected(url: URL, location: string): URL {
  if (!URL.canParse(location, url.href)) throw refused(`${url.host} redirects to what is no address`);
  const next = new URL(location, url);
  if (next.protocol === url.protocol) return next;
  throw refused(
    `${url.host} redirects from ${url.protocol}// to ${next.protocol}//; write the address that it leads to`,
  );
}

const refused = (why: string): Fault => new Fault('content_unavailable', why);

function get(url: URL, { from, signal }: UrlOptions): Promise<IncomingMessage> {
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  const headers = { 'Accept-Encoding': 'identity', ...(from > 0 && { Range: `bytes=${from}-` }) };
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers, signal, agent: false, timeout: SILENCE_MS });
    asked.once('timeout', () => asked.destroy(new Error(`${url.host} is silent`)));
    asked.once('response', resolve);
    asked.on('error', reject);
    asked.end();
  });
}
