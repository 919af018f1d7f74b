/** Requests to a running orchestrator, well-formed and not. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { gunzipSync } from 'node:zlib';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; undefined when it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

export interface ApiRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
  /** Goes away after the first piece of the answer, as from a stream that does not end by itself. */
  readonly hangsUp?: boolean;
}

/**
 * Gives up an idle connection long before the server does after 15 seconds: a request on a connection that the server
 * is just closing gets no answer, and a busy machine notices the close late.
 */
const keepAlive = new Agent({ keepAlive: true, maxSockets: 8, rejectUnauthorized: false, timeout: 4_000 });

/** Sends a request; fails when there is no answer within 40 seconds. */
export function send(base: string, { method, path, headers, body, hangsUp = false }: ApiRequest): Promise<Answer> {
  const url = new URL(base);
  const isTls = url.protocol === 'https:';
  const length = body === null ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const options = {
    host: url.hostname,
    port: url.port,
    method,
    path,
    headers: { ...length, ...headers },
    ...(isTls ? { agent: hangsUp ? false : keepAlive, rejectUnauthorized: false } : {}),
    signal: AbortSignal.timeout(40_000),
  };
  return new Promise((resolve, reject) => {
    const request = (isTls ? httpsRequest : httpRequest)(options, (response) => {
      const chunks: Buffer[] = [];
      const done = () => {
        const bytes = Buffer.concat(chunks);
        const text = (response.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: jsonOf(text) });
        if (hangsUp) response.destroy();
      };
      response.on('data', (chunk) => {
        chunks.push(chunk);
        if (hangsUp) done();
      });
      response.on('error', (error) => !hangsUp && reject(error));
      response.on('end', done);
    });
    request.on('error', reject);
    request.end(body ?? undefined);
  });
}

/** A bare connection, for what no HTTP library would send. */
export interface Wire {
  write(bytes: string | Buffer): void;
  /** Everything that has come when the server closes the connection, parsed as one answer; null for none. */
  readonly answer: Promise<Answer | null>;
  /** Sends no more, and still listens. */
  end(): void;
  close(): void;
}

export async function openWire(base: string): Promise<Wire> {
  const { hostname: host, port, protocol } = new URL(base);
  const isTls = protocol === 'https:';
  const socket = isTls
    ? connectTls({ host, port: Number(port), rejectUnauthorized: false })
    : connectPlain({ host, port: Number(port) });
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  // A server that refuses early resets what is still on its way.
  socket.on('error', () => undefined);
  const answer = new Promise<Answer | null>((resolve) => {
    socket.on('close', () => resolve(answerOf(Buffer.concat(chunks).toString())));
  });
  await new Promise((resolve, reject) => {
    socket.once(isTls ? 'secureConnect' : 'connect', resolve);
    socket.once('close', reject);
  });
  return {
    write: (bytes) => void socket.write(bytes),
    answer,
    end: () => void socket.end(),
    close: () => socket.destroy(),
  };
}

/** The head of a request on the wire, without the empty line that ends it. */
export const headOf = (method: string, path: string, headers: Readonly<Record<string, string>>): string =>
  [`${method} ${path} HTTP/1.1`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), ''].join(
    '\r\n',
  );

function answerOf(bytes: string): Answer | null {
  const [head = '', ...rest] = bytes.split('\r\n\r\n');
  const [first = '', ...lines] = head.split('\r\n');
  const status = Number(first.split(' ')[1]);
  if (!Number.isInteger(status)) return null;
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const text = rest.join('\r\n\r\n');
  return { status, headers, text, json: jsonOf(text) };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
