/** One HTTP request of a health check. It reads no more of the answer than the check needs. */
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { systemCodeOf } from '../../kernel/fault.js';
import { VERSION } from '../../kernel/version.js';
import { type CheckBodies, expectedStatus } from '../../resources/checks/check-kinds.js';
import {
  type Attempt,
  type AttemptContext,
  connectionProblem,
  HEALTHY,
  impossible,
  seconds,
  unhealthy,
} from './attempt-result.js';

type HttpBody = CheckBodies['http'];

/** Maximum bytes of a body in which `contains` is looked for. */
const BODY_BYTES = 1024 * 1024;
const REDIRECTS = 5;

export async function requestHttp(body: HttpBody, { signal, timeoutMs }: AttemptContext): Promise<Attempt> {
  const stopper = new AbortController();
  const stop = () => stopper.abort();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const timer = setTimeout(stop, timeoutMs);
  try {
    return await follow(body, stopper.signal);
  } catch (error) {
    if (signal.aborted) return unhealthy('was stopped');
    if (stopper.signal.aborted) return unhealthy(`${body.url} gave no whole answer within ${seconds(timeoutMs)}`);
    return unhealthy(`${body.url} ${problemOf(error)}`);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
    // Also ends an answer of which only the head was read.
    stop();
  }
}

async function follow(body: HttpBody, signal: AbortSignal): Promise<Attempt> {
  const first = new URL(body.url);
  let url = first;
  for (let hops = 0; ; hops += 1) {
    const answer = await head(url, { body, signal, isSameOrigin: url.origin === first.origin });
    const next = body.follow_redirects === true ? redirectOf(answer, url) : null;
    if (next === null) return judge(body, url, answer);
    answer.destroy();
    if (hops === REDIRECTS) return unhealthy(`${body.url} redirects more than ${REDIRECTS} times`);
    if (next.protocol !== 'http:' && next.protocol !== 'https:') {
      return impossible(`${body.url} redirects to ${next.protocol}, which a check does not follow`);
    }
    url = next;
  }
}

/** Returns the target of a redirect, or null for any other answer. */
function redirectOf({ statusCode = 0, headers: { location } }: IncomingMessage, from: URL): URL | null {
  if (![301, 302, 303, 307, 308].includes(statusCode) || location === undefined) return null;
  return URL.canParse(location, from.href) ? new URL(location, from.href) : null;
}

interface HeadRequest {
  readonly body: HttpBody;
  readonly signal: AbortSignal;
  /** False after a redirect to another server, which does not get the headers. */
  readonly isSameOrigin: boolean;
}

/** Sends a GET request and resolves with the head of the answer. */
function head(url: URL, { body, signal, isSameOrigin }: HeadRequest): Promise<IncomingMessage> {
  const options: RequestOptions & { readonly rejectUnauthorized: boolean } = {
    method: 'GET',
    // A connection of its own: one that is kept would say nothing about the next.
    agent: false,
    signal,
    headers: {
      'user-agent': `orch/${VERSION}`,
      accept: '*/*',
      'accept-encoding': 'identity',
      ...(isSameOrigin ? (body.headers ?? {}) : {}),
    },
    rejectUnauthorized: body.insecure !== true,
  };
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options, resolve);
    request.on('error', reject);
    // A server that switches protocols has answered 101.
    request.on('upgrade', (answer, socket) => {
      socket.destroy();
      resolve(answer);
    });
    request.end();
  });
}

async function judge(body: HttpBody, url: URL, answer: IncomingMessage): Promise<Attempt> {
  const status = answer.statusCode ?? 0;
  const { from, to, words } = expectedStatus(body.status);
  const place = url.href === new URL(body.url).href ? body.url : `${body.url} (redirected to ${url.origin})`;
  if (status < from || status > to) {
    answer.destroy();
    return unhealthy(`${place} answered ${status}, expected ${words}`);
  }
  if (body.contains == null || (await holds(answer, body.contains))) return HEALTHY;
  return unhealthy(`${place} answered ${status}, and the first MiB of the body does not contain the expected text`);
}

/** Reads the answer until the text was found; false when it is not in the first `BODY_BYTES`. */
async function holds(answer: IncomingMessage, text: string): Promise<boolean> {
  const wanted = Buffer.from(text);
  let read = Buffer.alloc(0);
  let total = 0;
  for await (const chunk of answer) {
    const bytes: Buffer = chunk;
    total += bytes.length;
    read = Buffer.concat([read, bytes]);
    if (read.includes(wanted)) return true;
    if (total >= BODY_BYTES) return false;
    // The text may stand across two chunks.
    read = read.subarray(Math.max(0, read.length - wanted.length + 1));
  }
  return false;
}

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/;

function problemOf(error: unknown): string {
  const code = systemCodeOf(error) ?? '';
  if (CERTIFICATE.test(code)) return `has no valid TLS certificate (${code}); insecure: true accepts it`;
  return code === 'ERR_INVALID_CHAR' ? 'cannot be requested: a header is not valid' : connectionProblem(error);
}
