import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { followEvents } from '../../src/client/follow-events.js';
import { readServerSentEvents } from '../../src/client/streamed-body.js';
import { clientOf, faultOf } from '../support/client.js';

const ids = (number: number): string => `01JQ2Z6T0V5X8Y4M3N7P9R1S${String(number).padStart(2, '0')}`;

async function read(text: string, cuts: readonly number[] = []) {
  const bytes = Buffer.from(text);
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  async function* chunks() {
    for (const [index, place] of places.slice(1).entries()) yield bytes.subarray(places[index], place);
  }
  const events = [];
  for await (const event of readServerSentEvents(chunks())) events.push(event);
  return events;
}

const message = (data: string | null, id = '', type = 'message') => ({ type, data, id });

describe('a stream of server-sent events', () => {
  it.each([
    ['one line of data', 'data: a\n\n', [message('a')]],
    ['data of several lines', 'data: a\ndata\ndata:  b\n\n', [message('a\n\n b')]],
    ['types and IDs that stay', 'id: 1\nevent: x\ndata: a\n\ndata: b\n\n', [message('a', '1', 'x'), message('b', '1')]],
    ['an ID alone', ': hello\nretry: 5\nid: 7\n\n:\n\nid: 7\n\n', [message(null, '7')]],
    ['comments and unknown fields', ': data: a\nfoo: b\ndata:c\n\n', [message('c')]],
    [
      'every kind of line end',
      '\ufeffdata: a\r\rdata: b\r\n\r\ndata: c\n\n',
      [message('a'), message('b'), message('c')],
    ],
    ['an event that is not whole', 'data: a\n\ndata: b\n', [message('a')]],
    ['nothing', '', []],
  ])('may hold %s', async (_what, text, expected) => {
    expect(await read(text)).toEqual(expected);
  });

  it('may come in any pieces (property)', async () => {
    const text = 'id: 1\r\ndata: größer 🎉\r\n\r\n: x\nevent: e\ndata: a\ndata: b\n\nid: 2\rdata: c\r\r';
    const expected = await read(text);
    expect(expected).toHaveLength(3);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(200), { maxLength: 30 }), async (cuts) => {
        expect(await read(text, cuts)).toEqual(expected);
      }),
    );
  });
});

type Turn = (response: ServerResponse, request: IncomingMessage) => void;

/** A server that answers one request after the other as ordered, and what it was asked to go on behind. */
async function serve(...turns: readonly Turn[]) {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    const turn = turns[asked.length];
    asked.push(request.headers['last-event-id']?.toString());
    if (turn) turn(response, request);
    else response.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const client = clientOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { token: 'orch_st_test' });
  return { asked, client };
}

const open = (response: ServerResponse, ...texts: readonly string[]): ServerResponse => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(texts.join(''));
  return response;
};
/** Ends the connection in the middle of an answer, once what there is of it has left. */
const cut = ({ socket }: ServerResponse): void => void setImmediate(() => socket?.end());
const told = (number: number): string => `id: ${ids(number)}\ndata: {"n":${number}}\n\n`;
const problem = (code: string, status: number, more: object = {}): string =>
  JSON.stringify({ code, status, detail: `it is ${code}`, ...more });
const refuse =
  (code: string, status: number, more: object = {}): Turn =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/problem+json' });
    response.end(problem(code, status, more));
  };

async function take(events: AsyncIterable<unknown>, count: number): Promise<unknown[]> {
  const taken: unknown[] = [];
  for await (const event of events) if (taken.push(event) === count) break;
  return taken;
}

describe('following events', () => {
  it('goes on behind the last one when the connection breaks, ends or the server stops', async () => {
    const notes: string[] = [];
    const { asked, client } = await serve(
      (response) => cut(open(response, told(1), told(2))),
      refuse('shutting_down', 503),
      (response) => void open(response, told(3), `event: error\ndata: ${problem('shutting_down', 503)}\n\n`).end(),
      (response) => void open(response, told(4)).end(),
      (response) => void open(response, told(5)),
    );
    const events = followEvents(
      client,
      'streamEvents',
      { query: {} },
      { onLost: () => notes.push('lost'), onResumed: () => notes.push('resumed') },
    );
    expect(await take(events, 5)).toEqual([1, 2, 3, 4, 5].map((n) => ({ n })));
    expect(asked).toEqual([undefined, ids(2), ids(2), ids(3), ids(4)]);
    expect(notes).toEqual(['lost', 'resumed', 'lost', 'resumed']);
  });

  it('goes on where it had come to, though there was no event', async () => {
    const { asked, client } = await serve(
      (response) => void open(response, `id: ${ids(7)}\n\n`).end(),
      (response) => void open(response, told(8)),
    );
    expect(await take(followEvents(client, 'streamEvents', { query: {} }), 1)).toEqual([{ n: 8 }]);
    expect(asked).toEqual([undefined, ids(7)]);
  });

  it('connects again no earlier than the orchestrator has said', async () => {
    let refusedAt = 0;
    const { client } = await serve(
      (response) => void open(response, told(1)).end(),
      (response, request) => {
        refusedAt = performance.now();
        refuse('rate_limited', 429, { retry_after: 3 })(response, request);
      },
      (response) => void open(response, told(2)),
    );
    expect(await take(followEvents(client, 'streamEvents', { query: {} }), 2)).toHaveLength(2);
    expect(performance.now() - refusedAt).toBeGreaterThan(2_900);
  });

  it('tells of a gap between events, and goes on behind the last one', async () => {
    const gap = { after: ids(1), next: ids(5), deleted: 3, detail: 'gone' };
    const { asked, client } = await serve(
      (response) => void open(response, told(1)).end(),
      (response) => void open(response, `event: gap\ndata: ${JSON.stringify(gap)}\n\n`).end(),
      (response) => void open(response, told(5)),
    );
    const gaps: unknown[] = [];
    const onGap = (one: unknown) => gaps.push(one);
    expect(await take(followEvents(client, 'streamEvents', { query: {} }, { onGap }), 2)).toEqual([{ n: 1 }, { n: 5 }]);
    expect(gaps).toEqual([gap]);
    expect(asked).toEqual([undefined, ids(1), ids(1)]);
  });

  it('fails with what the first connection fails with', async () => {
    const { client } = await serve(refuse('shutting_down', 503));
    const first = followEvents(client, 'streamEvents', { query: {} }).next();
    expect(await faultOf(first)).toMatchObject({ code: 'shutting_down' });
  });

  it('ends when the session is over and cannot be renewed, and for what does not pass', async () => {
    const over = await serve(
      (response) => void open(response, told(1), `event: error\ndata: ${problem('unauthenticated', 401)}\n\n`).end(),
      refuse('unauthenticated', 401),
    );
    const events = take(followEvents(over.client, 'streamEvents', { query: {} }), 2);
    expect(await faultOf(events)).toMatchObject({ code: 'unauthenticated' });
    const wrong = await serve((response) => void open(response, told(1)).end(), refuse('invalid_filter', 400));
    const more = take(followEvents(wrong.client, 'streamEvents', { query: {} }), 2);
    expect(await faultOf(more)).toMatchObject({ code: 'invalid_filter' });
  });

  it('ends with its signal, connected or not', async () => {
    const { client } = await serve((response) => void open(response, told(1)));
    const controller = new AbortController();
    const events = followEvents(client, 'streamEvents', { query: {}, signal: controller.signal });
    await events.next();
    const next = events.next();
    controller.abort(new Error('enough'));
    await expect(next).rejects.toThrow();
  });

  it('refuses an answer that is something else', async () => {
    const { client } = await serve((response) => void response.end('hello'));
    const next = followEvents(client, 'streamEvents', { query: {} }).next();
    expect(await faultOf(next)).toMatchObject({ code: 'unreachable' });
  });
});
