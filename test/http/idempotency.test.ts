import { describe, expect, it } from 'vitest';
import type { RequestContext } from '../../daemon/core/domain-event.js';
import type { HandlersFor } from '../../daemon/http/handler.js';
import { Fault } from '../../src/kernel/fault.js';
import {
  echo,
  noKeys,
  type SendOptions,
  type StoredKeys,
  send,
  startTiny,
  storedKeys,
  type Tiny,
} from '../support/http.js';
import { until } from '../support/until.js';

/** A server whose writes count themselves. */
async function start(handlersWith: (keys: StoredKeys) => Partial<HandlersFor<Tiny>> = () => ({})) {
  let runs = 0;
  const idempotency = await storedKeys();
  const options = {
    idempotency,
    handlers: {
      run: async ({ context }: { readonly context: RequestContext }) => {
        runs += 1;
        await idempotency.begin(context);
        return { status: 200 as const, body: { name: 'run', size: runs } };
      },
      ...handlersWith(idempotency),
    },
  };
  return { api: await startTiny(options), options, idempotency, runs: () => runs };
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
    const { api } = await start(({ begin }) => ({
      putItem: async (call) => {
        await begin(call.context);
        return echo.putItem(call);
      },
    }));
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

  it('keeps an answer without a body, and no refusal', async () => {
    let runs = 0;
    const { api } = await start(({ begin }) => ({
      removeItem: async ({ context }) => {
        runs += 1;
        if (runs === 2) throw new Fault('module_not_found', 'there is no such item');
        await begin(context);
        return { status: 204, body: undefined };
      },
    }));
    const remove = (key: string) => send(api, 'DELETE', '/api/v1/items/a', keyed(key, { token: 'admin' }));
    expect((await remove('k')).status).toBe(204);
    const again = await remove('k');
    expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([204, '', 'true']);
    expect((await remove('other')).json).toMatchObject({ status: 404, code: 'module_not_found' });
    const allowed = await remove('other');
    expect([allowed.status, allowed.headers['idempotent-replayed']]).toEqual([204, undefined]);
    expect(runs).toBe(3);
  });

  it('keeps a refusal of a request that had begun, and nothing of one that only left a trace', async () => {
    let runs = 0;
    const { api } = await start(({ begin }) => ({
      removeItem: async ({ context, params }) => {
        runs += 1;
        await begin(context, params.name === 'traced' ? 'terminal.refused' : 'state.apply_started');
        throw new Fault('module_not_found', `run ${runs}`);
      },
    }));
    const remove = async (name: string) =>
      (await send(api, 'DELETE', `/api/v1/items/${name}`, keyed(name, { token: 'admin' }))).json.detail;
    expect([await remove('begun'), await remove('begun')]).toEqual(['run 1', 'run 1']);
    expect([await remove('traced'), await remove('traced')]).toEqual(['run 2', 'run 3']);
  });

  it('does not keep what failed here before it began, and nothing of what was refused before the handler', async () => {
    let runs = 0;
    const { api } = await start(({ begin }) => ({
      run: async ({ context }) => {
        runs += 1;
        if (runs === 1) throw new Fault('agent_timeout', 'no answer');
        if (runs === 2) throw new Error('broken');
        await begin(context);
        return { status: 200, body: { name: 'x', size: runs } };
      },
    }));
    expect((await send(api, 'POST', '/api/v1/run', keyed('k', { body: { name: 5 } }))).status).toBe(400);
    expect((await send(api, 'POST', '/api/v1/run', keyed('k', { token: 'viewer' }))).status).toBe(403);
    expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).status).toBe(504);
    expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).status).toBe(500);
    expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).json.size).toBe(3);
    expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).json.size).toBe(3);
  });

  it('says what was begun when the answer failed afterwards', async () => {
    let runs = 0;
    const { api } = await start(({ begin }) => ({
      run: async ({ context }) => {
        runs += 1;
        await begin(context);
        throw new Fault('store_unavailable', 'the database is away');
      },
    }));
    expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).status).toBe(503);
    const { json } = await send(api, 'POST', '/api/v1/run', keyed('k'));
    expect(json).toMatchObject({ status: 409, code: 'idempotency_conflict', reason: 'answer_lost' });
    expect(json.detail).toContain('was carried out (x began y), and its answer was lost');
    expect(json.event_id).toMatch(/^[0-9A-Z]{26}$/);
    expect(runs).toBe(1);
  });

  it('gets its answer from memory while that cannot be stored, and from the store later', async () => {
    const { options, runs } = await start();
    let isAway = true;
    const { complete } = options.idempotency;
    const away = {
      ...options.idempotency,
      complete: async (...args: Parameters<typeof complete>) => {
        if (isAway) throw new Fault('store_unavailable', 'the database is away');
        await complete(...args);
      },
    };
    const api = await startTiny({ ...options, idempotency: away });
    for (const _ of [1, 2]) expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).json.size).toBe(1);
    isAway = false;
    const slot = { operator_id: '0'.repeat(32), key: 'k' };
    await until(async () => (await options.idempotency.find(slot, 0))?.status === 200, 'the answer is stored');
    expect((await send(api, 'POST', '/api/v1/run', keyed('k'))).json.size).toBe(1);
    expect(runs()).toBe(1);
  });

  it('makes a second request wait for the first', async () => {
    let runs = 0;
    let finish = () => {};
    const running = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const { api } = await start(({ begin }) => ({
      run: async ({ context }) => {
        runs += 1;
        await begin(context);
        await running;
        return { status: 200, body: { name: 'x', size: runs } };
      },
    }));
    const both = [1, 2, 3].map(() => send(api, 'POST', '/api/v1/run', keyed('k')));
    const other = await send(api, 'POST', '/api/v1/run', keyed('k', { body: { name: 'other' } }));
    expect(other.json.code).toBe('idempotency_conflict');
    finish();
    const answers = await Promise.all(both);
    expect(answers.map(({ json }) => json)).toEqual([1, 2, 3].map(() => ({ name: 'x', size: 1 })));
    expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === 'true')).toHaveLength(2);
  });

  it('does not run again after a kill between the beginning and the answer', async () => {
    const never = new Promise<never>(() => undefined);
    const { api, options, runs } = await start(({ begin }) => ({
      run: async ({ context }) => {
        await begin(context);
        return never;
      },
    }));
    void send(api, 'POST', '/api/v1/run', keyed('k')).catch(() => undefined);
    const slot = { operator_id: '0'.repeat(32), key: 'k' };
    await until(async () => (await options.idempotency.find(slot, 0)) !== null, 'the request has begun');
    const next = await startTiny(options);
    const { json } = await send(next, 'POST', '/api/v1/run', keyed('k'));
    expect(json).toMatchObject({ status: 409, code: 'idempotency_conflict', reason: 'answer_lost' });
    expect(runs()).toBe(0);
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
    const { api } = await start(() => ({
      run: async ({ signal }) => {
        begun();
        await finished;
        aborted = signal.aborted;
        return { status: 200, body: { name: 'done', size: 1 } };
      },
    }));
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
    const { options, idempotency } = await start();
    for (const hashKey of [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]) {
      const api = await startTiny({ ...options, idempotency: { ...idempotency, hashKey } });
      const key = `k${hashKey[0]}`;
      await send(api, 'POST', '/api/v1/run', keyed(key));
      hashes.push((await idempotency.find({ operator_id: '0'.repeat(32), key }, 0))?.request_hash ?? '');
    }
    expect(hashes).not.toContain('');
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
    const { api } = await start(() => ({ getItem: echo.getItem }));
    const { headers } = await send(api, 'GET', '/api/v1/items/a', keyed(''));
    expect(headers['idempotent-replayed']).toBeUndefined();
  });

  it('that cannot be looked up stops the write', async () => {
    let runs = 0;
    const down = async () => {
      throw new Fault('store_unavailable', 'the disk is full');
    };
    const api = await startTiny({
      idempotency: { ...noKeys, find: down },
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
