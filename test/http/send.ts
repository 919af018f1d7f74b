import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import type { ApiServer } from '../../daemon/http/api-server.js';

export interface Sent {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; null when there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

export interface SendOptions {
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** A string or bytes are sent as they are, anything else as JSON with its Content-Type. */
  readonly body?: unknown;
}

/** One request on a connection of its own; the token is `operator` unless told otherwise. */
export function send(api: ApiServer, method: string, path: string, options: SendOptions = {}): Promise<Sent> {
  const { token = 'operator', body } = options;
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body);
  const payload = body === undefined ? undefined : isRaw ? body : JSON.stringify(body);
  const headers = {
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined || isRaw ? {} : { 'content-type': 'application/json' }),
    ...(payload === undefined || options.headers?.['transfer-encoding']
      ? {}
      : { 'content-length': String(Buffer.byteLength(payload)) }),
    ...Object.fromEntries(Object.entries(options.headers ?? {}).filter(([, value]) => value !== undefined)),
  };
  const start = api.fingerprint === null ? httpRequest : httpsRequest;
  return new Promise((resolve, reject) => {
    const { port } = api.address();
    const request = start(
      { host: '127.0.0.1', port, method, path, headers, agent: false, rejectUnauthorized: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = /\/(problem\+)?json(;|$)/.test(response.headers['content-type'] ?? '') && text !== '';
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            json: isJson ? JSON.parse(text) : null,
          });
        });
      },
    );
    request.on('error', reject);
    request.end(payload);
  });
}

/** Writes bytes on a bare connection and gives back everything that comes until the server closes it. */
export function sendBytes(api: ApiServer, ...parts: readonly (string | Buffer)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(api.address().port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
    socket.on('end', () => socket.end());
    for (const part of parts) socket.write(part);
  });
}
