/**
 * Reads the response to one request from a connection that is closed afterwards. Only the status, a few headers and a
 * short body matter, so how the body is framed does not: a receiver that has taken a message must not get it again
 * because of an unusual answer.
 */
import type { Socket } from 'node:net';

/** A response of any status. */
export interface Reply {
  readonly status: number;
  /** Headers by lower-case name; the first one of each name. */
  readonly headers: ReadonlyMap<string, string>;
  /** Beginning of the body, undecoded; empty unless the status is a refusal that may explain itself. */
  readonly body: string;
}

/** Maximum bytes of all heads of a response, interim ones included. */
const HEAD_BYTES = 64 * 1024;
/** Maximum bytes read of a body. */
const BODY_BYTES = 8 * 1024;
/** Milliseconds to wait for a body after its head. */
const BODY_MS = 1_000;
/** Status whose body can say how long to wait. */
const TOO_MANY_REQUESTS = 429;

/** Returns the final response. Rejects when the connection ends before its head is complete. */
export async function readResponse(socket: Socket, signal: AbortSignal): Promise<Reply> {
  const received = new Received(socket, signal);
  try {
    const { status, headers } = await received.finalHead();
    const body = status === TOO_MANY_REQUESTS ? await received.body(lengthOf(headers)) : '';
    return { status, headers, body };
  } finally {
    received.release();
  }
}

type Head = Pick<Reply, 'status' | 'headers'>;

/** Bytes of a connection, as they arrive. */
class Received {
  private readonly socket: Socket;
  private readonly signal: AbortSignal;
  private bytes = Buffer.alloc(0);
  private end: Error | null = null;
  private wake: () => void = () => undefined;

  constructor(socket: Socket, signal: AbortSignal) {
    this.socket = socket;
    this.signal = signal;
    socket.on('data', this.add).on('error', this.stop).on('close', this.close);
    signal.addEventListener('abort', this.abort);
    if (signal.aborted) this.abort();
  }

  release(): void {
    this.socket.off('data', this.add).off('error', this.stop).off('close', this.close);
    this.socket.on('error', () => undefined);
    this.signal.removeEventListener('abort', this.abort);
  }

  /** Returns the first head that is not an interim one (RFC 9110, 15.2). */
  async finalHead(): Promise<Head> {
    let passed = 0;
    while (true) {
      const end = endOfHead(this.bytes);
      if (end === null) {
        if (passed + this.bytes.length > HEAD_BYTES) throw new Error('its headers are too long');
        if (this.end !== null) throw this.end;
        await this.more();
        continue;
      }
      const head = parseHead(this.bytes.subarray(0, end).toString('latin1'));
      this.bytes = this.bytes.subarray(end);
      passed += end;
      if (head.status >= 200) return head;
      if (passed > HEAD_BYTES) throw new Error('its headers are too long');
    }
  }

  /** Returns at most `BODY_BYTES` of the body; less when it ends, fails or takes too long. */
  async body(length: number): Promise<string> {
    const wanted = Math.min(length, BODY_BYTES);
    const timer = setTimeout(() => this.stop(new Error('the body takes too long')), BODY_MS);
    while (this.bytes.length < wanted && this.end === null) await this.more();
    clearTimeout(timer);
    return this.bytes.subarray(0, wanted).toString();
  }

  private readonly add = (chunk: Buffer): void => {
    this.bytes = Buffer.concat([this.bytes, chunk]);
    this.wake();
  };

  private readonly stop = (error: Error): void => {
    this.end ??= error;
    this.wake();
  };

  private readonly close = (): void => this.stop(new Error('it was closed'));

  private readonly abort = (): void => this.stop(new Error('it was given up'));

  private more(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }
}

/** Returns the length of the first head with its empty line; null while that line is missing. */
function endOfHead(bytes: Buffer): number | null {
  const ends = ['\r\n\r\n', '\n\n', '\n\r\n'].flatMap((mark) => {
    const at = bytes.indexOf(mark);
    return at < 0 ? [] : [at + mark.length];
  });
  return ends.length === 0 ? null : Math.min(...ends);
}

function parseHead(text: string): Head {
  const [first = '', ...lines] = text.split(/\r?\n/);
  const [, status] = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(first) ?? [];
  if (status === undefined || Number(status) < 100) throw new Error('it is not an answer of HTTP/1.1');
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(colon, 0)).toLowerCase();
    if (name !== '' && !headers.has(name)) headers.set(name, line.slice(colon + 1).trim());
  }
  return { status: Number(status), headers };
}

/** Returns the declared length of the body; infinite when it ends with the connection or in chunks. */
function lengthOf(headers: Reply['headers']): number {
  const length = headers.get('content-length');
  return length !== undefined && /^\d{1,9}$/.test(length) ? Number(length) : Number.POSITIVE_INFINITY;
}
