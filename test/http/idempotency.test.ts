import { describe, expect, it } from 'vitest';
import type { HandlersFor } from '../../daemon/http/handler.js';
import type { IdempotencyKeys } from '../../daemon/http/idempotency.js';
import { Fault } from '../../src/kernel/fault.js';
import { echo, type SendOptions, send, startTiny, storedKeys, type Tiny } from '../support/http.js';

/** A server whose writes count themselves. */
async function start(handlers: Partial<HandlersFor<Tiny>> = {}) {
  let runs = 0;
  const idempotency = await storedKeys();
  const options = {
    idempotency,
    handlers: {
      run: async () => {
        runs += 1;
        return { status: 200 as const, body: { name: 'run', size: runs } };
      },
      ...handlers,
    },
  };
  return { api: await startTiny(options), options, runs: () => runs };
}

const keyed = (key: string, options: SendOptions = {}): SendOptions => ({
  ...options,
  headers: { 'idempotency-key': key, ...options.headers },
});

describe('the same Idempotency-Key', () => {
  it('does a write once and answers alike', async () => {
    const { api, runs } = await start();
    const first = await send(api, 'POST', '/api/v1/run', keyed('k1', { body: { name: 'x' } }));
    expect(first.json).toEqual({ name: 'run', size: 1 });
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    const second = await send(api, 'POST', '/api/v1/run', keyed('k1', { body: { name: 'x' } }));
    expect(second.json).toEqual(first.json);
    expect(second.status).toBe(200);
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect(second.headers['content-type']).toBe(first.headers['content-type']);
    expect(second.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
    expect(runs()).toBe(1);
    expect((await send(api, 'POST', '/api/v1/run', keyed('k2', { body: { name: 'x' } }))).json.size).toBe(2);
    expect((await send(api, 'POST', '/api/v1/run', { body: { name: 'x' } })).json.size).toBe(3);
  });

  it('means the same request however it is spelled', async () => {
    const { api, runs } = await start();
    await send(api, 'POST', '/api/v1/run', keyed('k', { body: {} }));
    await send(api, 'POST', '/api/v1/run', keyed('k'));
    await send(api, 'POST', '/api/v1/run', keyed('k', { body: { name: null } }));
    expect(runs()).toBe(1);
  });

  it('of another operator is another key', async () => {
    const { api, runs } = await start();
    await send(api, 'POST', '/api/v1/run', keyed('k'));
    await send(api, 'POST', '/api/v1/run', keyed('k', { token: 'admin' }));
    expect(runs()).toBe(2);
  });

  it('outlives a restart', async () => {
    const { options, api, runs } = await start();
    await send(api, 'POST', '/api/v1/run', keyed('k'));
    await api.stop();
    const again = await startTiny(options);
    expect((await send(again, 'POST', '/api/v1/run', keyed('k'))).headers['idempotent-replayed']).toBe('true');
    expect(runs()).toBe(1);
  });

  it('with another body, path or route is a conflict', async () => {
    const { api } = await start();
    await send(api, 'PUT', '/api/v1/items/a', keyed('k', { body: { size: 1 } }));
    for (const [method, path, body] of [
      ['PUT', '/api/v1/items/a', { size: 2 }],
      ['PUT', '/api/v1/items/b', { size: 1 }],
      ['POST', '/api/v1/run', {}],
    ] as const) {
      const { json } = await send(api, method, path, keyed('k', { body }));
      expect(json, path).toMatchObject({ status: 409, code: 'idempotency_conflict', reason: 'different_request' });
    }
  });

  it('keeps an answer without a body, and a refusal', async () => {
    let runs = 0;
    const { api } = await start({
      removeItem: async () => {
        runs += 1;
        if (runs > 1) throw new Fault('module_not_found', 'there is no such item');
        return { status: 204, body: undefined };
      },
    });
    const remove = (key: string) => send(api, 'DELETE', '/api/v1/items/a', keyed(key, { token: 'admin' }));
    expect((await remove('k')).status).toBe(204);
    const again = await remove('k');
    expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([204, '', 'true']);
    const refused = await remove('other');
    expect(refused.json).toMatchObject({ status: 404, code: 'module_not_found' });
    const refusedAgain = await remove('other');
    expect(refusedAgain.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(refusedAgain.json).toEqual(refused.json);
    expect(runs).toBe(2);
  });

  it('does not keep what failed here, and nothing of what was refused before the handler', async () => {
    let runs = 0;
    const { api } = await start({
      run: async () => {
        runs += 1;
        if (runs === 1) throw new Fault('agent_timeout', 'no answer');
        if (runs === 2) throw new Error('broken');
        return { status: 200, body: { name: 'x', size: runs } };
      },
    });
    expect((await send(api, 'POST', '/api/v1/run', keyed('k', { body: { name: 5 } }))).status).toBe(400);
    expect((await send(api, 'POST', '/api/v1/run', keyed('k', { token: 'viewer' }))).status).toBe(403);
    expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).status).toBe(504);
    expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).status).toBe(500);
    expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).json.size).toBe(3);
    expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).json.size).toBe(3);
  });

  it('makes a second request wait for the first', async () => {
    let runs = 0;
    let finish = () => {};
    const running = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const { api } = await start({
      run: async () => {
        runs += 1;
        await running;
        return { status: 200, body: { name: 'x', size: runs } };
      },
    });
    const both = [1, 2, 3].map(() => send(api, 'POST', '/api/v1/run', keyed('k')));
    const other = await send(api, 'POST', '/api/v1/run', keyed('k', { body: { name: 'other' } }));
    expect(other.json.code).toBe('idempotency_conflict');
    finish();
    const answers = await Promise.all(both);
    expect(answers.map(({ json }) => json)).toEqual([1, 2, 3].map(() => ({ name: 'x', size: 1 })));
    expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === 'true')).toHaveLength(2);
  });

  it('does not hand out an answer that was lost', async () => {
    const { api, options, runs } = await start();
    const slot = { operator_id: '0'.repeat(32), key: 'k' };
    await send(api, 'POST', '/api/v1/run', keyed('other'));
    // As after a crash in the middle of the first request: taken, and never answered.
    const seen = await options.idempotency.reserve(
      { ...slot, key: 'other', route: '', request_hash: '', created_at: 0 },
      0,
    );
    const request_hash = seen?.request_hash ?? '';
    await options.idempotency.reserve({ ...slot, route: 'run', request_hash, created_at: Date.now() }, 0);
    const { json } = await send(api, 'POST', '/api/v1/run', keyed('k'));
    expect(json).toMatchObject({ status: 409, code: 'idempotency_conflict', reason: 'answer_lost' });
    expect(runs()).toBe(1);
  });

  it('runs on when the client goes away', async () => {
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let aborted: boolean | null = null;
    let begun = () => {};
    const begin = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const { api } = await start({
      run: async ({ signal }) => {
        begun();
        await finished;
        aborted = signal.aborted;
        return { status: 200, body: { name: 'done', size: 1 } };
      },
    });
    const { request } = await import('node:http');
    const headers = { authorization: 'Bearer operator', 'idempotency-key': 'k', 'content-length': '0' };
    const left = request({ port: api.address().port, method: 'POST', path: '/api/v1/run', headers });
    left.on('error', () => {});
    left.end();
    await begin;
    left.destroy();
    const second = send(api, 'POST', '/api/v1/run', keyed('k'));
    // The second may come before the end or behind it: it gets the same answer.
    finish();
    expect((await second).json).toEqual({ name: 'done', size: 1 });
    expect(aborted).toBe(false);
  });
});

describe('an Idempotency-Key', () => {
  it('leaves no hash in the store that a body could be guessed by', async () => {
    const hashes: string[] = [];
    const keys = await storedKeys();
    const reserve: IdempotencyKeys['reserve'] = (request, since) => {
      hashes.push(request.request_hash);
      return keys.reserve(request, since);
    };
    for (const hashKey of [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]) {
      const api = await startTiny({ idempotency: { ...keys, reserve, hashKey } });
      await send(api, 'POST', '/api/v1/run', keyed(`k${hashKey[0]}`));
    }
    expect(new Set(hashes).size).toBe(2);
  });

  it('has to be a short visible text', async () => {
    const { api } = await start();
    for (const key of ['', 'a b', 'ü', 'x'.repeat(256)]) {
      const { json } = await send(api, 'POST', '/api/v1/run', keyed(key));
      expect(json, key).toMatchObject({ status: 400, code: 'bad_request' });
    }
    expect((await send(api, 'POST', '/api/v1/run', keyed('x'.repeat(255)))).status).toBe(200);
  });

  it('means nothing to reads', async () => {
    const { api } = await start({ getItem: echo.getItem });
    const { headers } = await send(api, 'GET', '/api/v1/items/a', keyed(''));
    expect(headers['idempotent-replayed']).toBeUndefined();
  });

  it('that cannot be stored stops the write', async () => {
    let runs = 0;
    const down = async () => {
      throw new Fault('store_unavailable', 'the disk is full');
    };
    const api = await startTiny({
      idempotency: { hashKey: Buffer.alloc(32), reserve: down, complete: down, release: down },
      handlers: {
        run: async () => {
          runs += 1;
          return { status: 200, body: { name: 'x', size: 1 } };
        },
      },
    });
    expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).json).toMatchObject({
      status: 503,
      code: 'store_unavailable',
    });
    expect(runs).toBe(0);
  });
});
