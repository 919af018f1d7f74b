/** Checks that every request must pass before routing. */
import type { IncomingMessage } from 'node:http';
import { Fault } from '../../src/kernel/fault.js';

interface GateOptions {
  readonly urlBytes: number;
  /** True when clients use TLS, here or at the proxy. */
  readonly isTls: boolean;
}

/** Returns the fault `url_too_long`, `bad_request` or `origin_forbidden`, or undefined when the request may pass. */
export function gateRefusal(request: IncomingMessage, { urlBytes, isTls }: GateOptions): Fault | undefined {
  if ((request.url?.length ?? 0) > urlBytes) {
    return new Fault('url_too_long', `the URL is longer than ${urlBytes} bytes`, { hint: 'shorten the query' });
  }
  const { host, origin } = request.headers;
  if (host === undefined && request.httpVersion === '1.1')
    return new Fault('bad_request', 'the Host header is missing');
  if (origin === undefined || isSameOrigin(origin, `${isTls ? 'https' : 'http'}://${host ?? ''}`)) return undefined;
  return new Fault('origin_forbidden', `pages of ${JSON.stringify(origin)} may not use this API`, {
    hint: 'call it from a program, without an Origin header',
  });
}

function isSameOrigin(origin: string, own: string): boolean {
  if (!URL.canParse(origin) || !URL.canParse(own)) return false;
  return new URL(origin).origin !== 'null' && new URL(origin).origin === new URL(own).origin;
}
