import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { Rights } from '../../daemon/core/rights.js';
import type { ApiServer } from '../../daemon/http/api-server.js';
import type { Call } from '../../daemon/http/handler.js';
import { Fault } from '../../src/kernel/fault.js';
import { authenticate, send, startTiny, storedKeys, type Tiny } from '../support/http.js';

const LINES = { accept: 'application/x-ndjson' };
const RESULT = { name: 'a', size: 1 };
const answer = { status: 200 as const, body: RESULT };
const parse = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

const twoPieces = async ({ stream }: Call<Tiny['run']>) => {
  await stream?.({ event: 'piece', piece: 'one' });
  await stream?.({ event: 'piece', piece: 'zwei\nü' });
  await stream?.({ event: 'result', result: RESULT });
  return answer;
};

/** A request whose answer is not read until `read` is called. */
function open(api: ApiServer, headers: Record<string, string> = {}) {
  const client = request({
    port: api.address().port,
    method: 'POST',
    path: '/api/v1/run',
    headers: { authorization: 'Bearer operator', ...LINES, 'content-length': '0', ...headers },
  });
  client.on('error', () => {});
  client.end();
  return client;
}

/** An API whose sessions end when the test says so. */
async function startRevocable(handlers: NonNullable<Parameters<typeof startTiny>[0]>['handlers'] = {}) {
  let isOver = false;
  const api = await startTiny({
    handlers,
    limits: { streamBacklogBytes: 1024 ** 3 },
    authenticate: async (token) => (isOver ? null : await authenticate(token)),
  });
  return {
    api,
    revoke: () => {
      isOver = true;
    },
  };
}

describe('an answer without a stream to an operator with grants', () => {
  const limited = new Rights('operator', [{ rights: ['apply'], selector: 'env=dev' }]);

  it.each([
    ['comes though its session has ended meanwhile', null, 200, undefined],
    ['does not tell of a machine that has left the grants', 'not_granted', 403, 'not_granted'],
  ] as const)('%s', async (_what, lost, status, code) => {
    let isOver = false;
    const api = await startTiny({
      authenticate: async () => {
        const session = await authenticate('operator');
        return isOver || session === null ? null : { ...session, rights: limited };
      },
      handlers: {
        run: async (call) => {
          call.keepPermitted(async () => {
            if (lost !== null) throw new Fault(lost, 'it has left');
          });
          isOver = true;
          return answer;
        },
      },
    });
    const sent = await send(api, 'POST', '/api/v1/run');
    expect([sent.status, sent.json?.code]).toEqual([status, code]);
  });
});

describe('an answer that goes on', () => {
  it('is not silent while nothing happens, neither before its first line nor after it', async () => {
    let goOn = () => {};
    const told = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    let beats = '';
    const api = await startTiny({
      limits: { heartbeatMs: 30 },
      handlers: {
        run: async ({ stream }) => {
          await told;
          await stream?.({ event: 'piece', piece: 'one' });
          await stream?.({ event: 'result', result: RESULT });
          return answer;
        },
      },
    });
    const client = open(api);
    const text = await new Promise<string>((resolve) => {
      client.on('response', (response: IncomingMessage) => {
        expect(response.statusCode).toBe(200);
        let all = '';
        response.on('data', (chunk) => {
          all += chunk;
          if (beats === '' && all.length >= 2) {
            beats = all;
            goOn();
          }
        });
        response.on('end', () => resolve(all));
      });
    });
    expect(beats).toMatch(/^\n\n/);
    expect(parse(text.trimStart().replace(/\n+/g, '\n'))).toEqual([
      { event: 'piece', piece: 'one' },
      { event: 'result', result: RESULT },
    ]);
  });

  it('has its fault or its stored result as a line after a heartbeat', async () => {
    let runs = 0;
    const api = await startTiny({
      limits: { heartbeatMs: 30 },
      handlers: {
        run: async ({ signal, body: _ }) => {
          runs += 1;
          // Until the heartbeat has been sent to both requests.
          await new Promise((resolve) => setTimeout(resolve, 200));
          if (signal.aborted || runs > 1) throw new Fault('cancelled', 'too late');
          return answer;
        },
      },
    });
    const headers = { ...LINES, 'idempotency-key': 'once' };
    const both = await Promise.all([0, 1].map(() => send(api, 'POST', '/api/v1/run', { headers })));
    for (const { text } of both) expect(parse(text.trim())).toEqual([{ event: 'result', result: RESULT }]);
    expect(runs).toBe(1);
    const late = await send(api, 'POST', '/api/v1/run', { headers: LINES });
    expect(parse(late.text.trim())).toMatchObject([{ event: 'error', error: { code: 'cancelled' } }]);
  });

  it('ends with its session though nothing happens in it', async () => {
    let begun = () => {};
    const isBegun = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const quiet = async ({ stream, signal }: Call<Tiny['run']>) => {
      await stream?.({ event: 'piece', piece: 'one' });
      begun();
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      return answer;
    };
    const { api, revoke } = await startRevocable({ run: quiet });
    const sent = send(api, 'POST', '/api/v1/run', { headers: LINES });
    await isBegun;
    revoke();
    expect(parse((await sent).text)).toMatchObject([
      { event: 'piece' },
      { event: 'error', error: { code: 'unauthenticated', status: 401 } },
    ]);
  });

  it('ends with its session though the client takes nothing', async () => {
    const { api, revoke } = await startRevocable({
      run: async ({ stream, signal }) => {
        while (!signal.aborted) await stream?.({ event: 'piece', piece: 'x'.repeat(100_000) });
        return answer;
      },
    });
    const client = open(api);
    const response = await new Promise<IncomingMessage>((resolve) => client.on('response', resolve));
    response.pause();
    revoke();
    await api.stop();
    await new Promise((resolve) => response.on('error', resolve).resume());
  });

  it('ends with its session in the middle of a download', async () => {
    const endless = Readable.from(
      (function* () {
        for (;;) yield 'x'.repeat(10_000);
      })(),
    );
    const { api, revoke } = await startRevocable({
      dumpItems: async () => {
        revoke();
        return { status: 200, body: endless };
      },
    });
    await expect(send(api, 'GET', '/api/v1/dump')).rejects.toThrow();
    expect(endless.destroyed).toBe(true);
  });
});

describe('a stream of lines', () => {
  it('is what the client gets that asks for one', async () => {
    const api = await startTiny({ handlers: { run: twoPieces } });
    const { status, headers, text } = await send(api, 'POST', '/api/v1/run', { headers: LINES });
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/x-ndjson; charset=utf-8');
    expect(headers['x-request-id']).toBeDefined();
    expect(headers['cache-control']).toBe('no-store');
    expect(text.split('\n')).toHaveLength(4);
    expect(parse(text)).toEqual([
      { event: 'piece', piece: 'one' },
      { event: 'piece', piece: 'zwei\nü' },
      { event: 'result', result: RESULT },
    ]);
    expect((await send(api, 'POST', '/api/v1/run')).json).toEqual(RESULT);
    for (const accept of ['*/*', 'application/json', 'application/x-ndjson-seq']) {
      expect((await send(api, 'POST', '/api/v1/run', { headers: { accept } })).json, accept).toEqual(RESULT);
    }
  });

  it('comes line by line', async () => {
    let go = () => {};
    const wait = new Promise<void>((resolve) => {
      go = resolve;
    });
    const api = await startTiny({
      handlers: {
        run: async ({ stream }) => {
          await stream?.({ event: 'piece', piece: 'early' });
          await wait;
          return answer;
        },
      },
    });
    const first = await new Promise<string>((resolve) => {
      open(api).on('response', (response) => response.once('data', (chunk) => resolve(String(chunk))));
    });
    expect(parse(first)).toEqual([{ event: 'piece', piece: 'early' }]);
    go();
  });

  it('is an ordinary answer when the handler has no line to send', async () => {
    const api = await startTiny({ handlers: { run: async () => ({ status: 202, body: RESULT }) } });
    const { status, headers, json } = await send(api, 'POST', '/api/v1/run', { headers: LINES });
    expect([status, headers['content-type'], json]).toEqual([202, 'application/json; charset=utf-8', RESULT]);
    const refused = await send(api, 'POST', '/api/v1/run', { headers: LINES, body: { name: 5 } });
    expect(refused.json).toMatchObject({ status: 400, code: 'invalid_body' });
  });

  it('ends with the problem when the handler fails after its first line', async () => {
    const api = await startTiny({
      handlers: {
        run: async ({ stream }) => {
          await stream?.({ event: 'piece', piece: 'one' });
          throw new Fault('agent_timeout', 'the agent fell silent', { hint: 'look at it' });
        },
      },
    });
    const { status, text, headers } = await send(api, 'POST', '/api/v1/run', { headers: LINES });
    expect(status).toBe(200);
    expect(parse(text)[1]).toMatchObject({
      event: 'error',
      error: {
        status: 504,
        code: 'agent_timeout',
        request_id: headers['x-request-id'],
        detail: 'the agent fell silent; look at it',
      },
    });
    expect(parse(text)).toHaveLength(2);
  });

  it('with a line that breaks the contract is found when answers are checked', async () => {
    const api = await startTiny({
      handlers: {
        run: async ({ stream }) => {
          await stream?.(JSON.parse('{"event":"surprise"}'));
          return answer;
        },
      },
    });
    expect((await send(api, 'POST', '/api/v1/run', { headers: LINES })).status).toBe(500);
  });
});

describe('a client that goes away', () => {
  it('aborts the handler', async () => {
    let reason: unknown;
    let started = () => {};
    const begun = new Promise<void>((resolve) => {
      started = resolve;
    });
    const ended = new Promise<void>((resolve) => {
      void startTiny({
        handlers: {
          run: async ({ stream, signal }) => {
            await stream?.({ event: 'piece', piece: 'one' });
            started();
            await new Promise((done) => signal.addEventListener('abort', done, { once: true }));
            reason = signal.reason;
            // Without a reader, this is no error.
            await stream?.({ event: 'piece', piece: 'two' });
            resolve();
            throw signal.reason;
          },
        },
      }).then((api) => {
        const client = open(api);
        void begun.then(() => client.destroy());
      });
    });
    await ended;
    expect(reason).toMatchObject({ code: 'cancelled' });
  });

  it('does not abort a handler that has answered', async () => {
    let signal: AbortSignal | undefined;
    const api = await startTiny({
      handlers: {
        run: async (call) => {
          signal = call.signal;
          return answer;
        },
      },
    });
    await send(api, 'POST', '/api/v1/run');
    expect(signal?.aborted).toBe(false);
  });
});

describe('a client that reads slowly', () => {
  const piece = { event: 'piece' as const, piece: 'x'.repeat(100_000) };

  it('makes a handler wait that awaits its lines', async () => {
    let sent = 0;
    const api = await startTiny({
      handlers: {
        run: async ({ stream }) => {
          for (; sent < 400; sent += 1) await stream?.(piece);
          return answer;
        },
      },
    });
    const response = await new Promise<NodeJS.ReadableStream>((resolve) => open(api).on('response', resolve));
    // Time for the kernel's buffers to fill; too little of it makes the test weaker, not red.
    await new Promise((resolve) => setTimeout(resolve, 300));
    // The kernel's buffers take the beginning, and the rest is not even made.
    expect(sent).toBeLessThan(400);
    let bytes = 0;
    for await (const chunk of response) bytes += chunk.length;
    expect(bytes).toBe(400 * (JSON.stringify(piece).length + 1));
  });

  it('is cut off when a handler does not wait', async () => {
    let aborted = false;
    const api = await startTiny({
      limits: { streamBacklogBytes: 1_000_000 },
      handlers: {
        run: async ({ stream, signal }) => {
          for (let at = 0; at < 1000 && !signal.aborted; at += 1) {
            void stream?.(piece);
            await new Promise((resolve) => setImmediate(resolve));
          }
          aborted = signal.aborted;
          return answer;
        },
      },
    });
    const response = await new Promise<NodeJS.ReadableStream>((resolve) => open(api).on('response', resolve));
    // Time for the kernel's buffers to fill; too little of it makes the test weaker, not red.
    await new Promise((resolve) => setTimeout(resolve, 300));
    await expect(
      (async () => {
        for await (const _ of response);
      })(),
    ).rejects.toThrow(/aborted/);
    expect(aborted).toBe(true);
  });
});

describe('a stream with an Idempotency-Key', () => {
  it('is repeated as its result', async () => {
    let runs = 0;
    const idempotency = await storedKeys();
    const api = await startTiny({
      idempotency,
      handlers: {
        run: async (call) => {
          runs += 1;
          await idempotency.begin(call.context);
          return await twoPieces(call);
        },
      },
    });
    const headers = { ...LINES, 'idempotency-key': 'k' };
    expect(parse((await send(api, 'POST', '/api/v1/run', { headers })).text)).toHaveLength(3);
    const again = await send(api, 'POST', '/api/v1/run', { headers });
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(parse(again.text)).toEqual([{ event: 'result', result: RESULT }]);
    expect(runs).toBe(1);
  });
});
