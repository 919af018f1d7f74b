/** A body that is no JSON and comes in pieces. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { ApiServer } from '../../daemon/http/api-server.js';
import { Fault } from '../../src/kernel/fault.js';
import { send, startTiny } from '../support/http.js';
import { until } from '../support/orch.js';

const PIECE = Buffer.alloc(64 * 1024, 'x');
const PIECES = 4_000;

/** Counts what is read of it. */
function endless(pieces = PIECES) {
  const source = { read: 0, closed: false, body: Readable.from([]) };
  source.body = Readable.from(
    (async function* () {
      try {
        for (; source.read < pieces; source.read += 1) yield PIECE;
      } finally {
        source.closed = true;
      }
    })(),
    { objectMode: false },
  );
  return source;
}

async function open(api: ApiServer): Promise<IncomingMessage> {
  const { port } = api.address();

  const asked = request({ host: '127.0.0.1', port, path: '/api/v1/dump', headers: { authorization: 'Bearer viewer' } });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return response;
}

const serve = (body: Readable) =>
  startTiny({
    handlers: { dumpItems: async () => ({ status: 200, body, headers: { 'content-disposition': 'attachment' } }) },
  });

describe('a body in pieces', () => {
  it('comes whole, with its type and headers', async () => {
    const response = await open(await serve(endless(100).body));
    expect(response.headers).toMatchObject({ 'content-type': 'text/x-dump', 'content-disposition': 'attachment' });
    let bytes = 0;
    for await (const chunk of response) bytes += chunk.length;
    expect(bytes).toBe(100 * PIECE.length);
  });

  it('waits for a client that reads slowly, and is let go when that goes away', async () => {
    const source = endless();
    const response = await open(await serve(source.body));
    await until(async () => {
      const { read } = source;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return read > 0 && read === source.read;
    }, 'the buffers in between are full');
    expect(source.read).toBeLessThan(PIECES);
    response.destroy();
    await until(() => source.closed, 'the source is let go');
  });

  it('is cut off when its source breaks, so that it cannot pass as whole', async () => {
    const broken = Readable.from(
      (async function* () {
        yield PIECE;
        throw new Error('the disk is gone');
      })(),
      { objectMode: false },
    );
    const response = await open(await serve(broken));
    await expect(
      (async () => {
        for await (const _ of response);
      })(),
    ).rejects.toThrow(/aborted/);
  });

  it('is a problem document when its source has broken before anything was read of it', async () => {
    const broken = new Readable({ read: () => undefined });
    const closed = new Promise((resolve) => broken.once('close', resolve));
    broken.once('error', () => undefined);
    broken.destroy(new Error('the file is damaged'));
    await closed;
    const answer = await send(await serve(broken), 'GET', '/api/v1/dump');
    expect(answer.status).toBe(500);
    expect(answer.headers['content-type']).toContain('application/problem+json');
  });

  it('is not sent to HEAD', async () => {
    const source = endless();
    const api = await serve(source.body);
    const head = await send(api, 'HEAD', '/api/v1/dump');
    expect(head.status).toBe(200);
    expect(source.body.destroyed).toBe(true);
  });

  it('is a problem document when there is none', async () => {
    const api = await startTiny({
      handlers: {
        dumpItems: async () => {
          throw new Fault('module_not_found', 'there is nothing');
        },
      },
    });
    const answer = await send(api, 'GET', '/api/v1/dump');
    expect(answer.status).toBe(404);
    expect(answer.headers['content-type']).toContain('application/problem+json');
  });
});
