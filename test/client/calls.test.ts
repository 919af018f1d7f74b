import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Fault } from '../../src/kernel/fault.js';
import { isUlid } from '../../src/kernel/ids.js';
import type { ResourceResult } from '../../src/resources/result.js';
import { clientOf, faultOf, pinned, result, startServer, type TestServer } from '../support/client.js';
import { until } from '../support/until.js';

describe('a call', () => {
  it('fills path, query and body, and gives the body of the answer', async () => {
    const queries: unknown[] = [];
    const server = await startServer({
      handlers: {
        listAgents: async ({ query }) => {
          queries.push(query);
          return { status: 200, body: [], headers: { link: '<next>; rel="next"' } };
        },
        setTag: async ({ params, body }) => {
          queries.push({ params, body });
          return { status: 204, body: undefined };
        },
      },
    });
    const client = pinned(server);
    expect(await client.call('listAgents')).toEqual([]);
    await client.call('listAgents', { query: { filter: 'a=b c,!d&e', limit: 3, status: null } });
    expect(
      await client.call('setTag', { params: { node_id: 'ü %2F?#', key: '..' }, body: { value: 'x' } }),
    ).toBeUndefined();
    expect(queries).toEqual([
      {},
      { filter: 'a=b c,!d&e', limit: 3 },
      { params: { node_id: 'ü %2F?#', key: '..' }, body: { value: 'x' } },
    ]);
    const full = await client.callWithHeaders('listAgents');
    expect(full).toMatchObject({ status: 200, body: [], headers: { link: '<next>; rel="next"' } });
    expect(isUlid(full.headers['x-request-id'] ?? '')).toBe(true);
    expect(
      (await client.callWithHeaders('setTag', { params: { node_id: 'a', key: 'b' }, body: { value: '' } })).status,
    ).toBe(204);
  });

  it('needs every part of its path', async () => {
    const client = pinned(await startServer());
    const fault = await faultOf(client.call('getAgentAttributes', { params: { node_id: '' } }));
    expect(fault).toMatchObject({ code: 'usage' });
  });

  it('throws the fault that the server gave', async () => {
    const server = await startServer({
      handlers: {
        planAgent: async () => {
          throw new Fault('operation_in_progress', 'an apply is running', {
            hint: 'wait for it',
            data: { operation_id: 'x', retry_after: 3 },
            errors: [{ path: '/modules/0', message: 'no', line: 2, column: 5 }],
          });
        },
      },
    });
    const fault = await faultOf(pinned(server).call('planAgent', { params: { node_id: 'a' }, body: { modules: [] } }));
    expect(fault).toMatchObject({
      code: 'operation_in_progress',
      message: 'an apply is running; wait for it',
      errors: [{ path: '/modules/0', message: 'no', line: 2, column: 5 }],
      data: { operation_id: 'x', retry_after: 3, status: 409, title: 'Operation in progress' },
    });
    expect(isUlid(String(fault.data?.request_id))).toBe(true);
    const invalid = await faultOf(
      pinned(server)
        .raw('PUT', '/agents/a/tags/b', { body: { valu: 1 } })
        .then(({ status }) => {
          expect(status).toBe(400);
          throw new Fault('invalid_body', 'as expected');
        }),
    );
    expect(invalid.code).toBe('invalid_body');
  });
});

describe('a raw request', () => {
  it('gives every answer as it is, logged in where it has to be', async () => {
    const server = await startServer();
    const client = pinned(server);
    const open = await client.raw('GET', '/status');
    expect([open.status, JSON.parse(open.text).status]).toEqual([200, 'ok']);
    expect(server.sessions.size).toBe(0);
    expect((await client.raw('GET', '/api/v1/auth/session')).status).toBe(200);
    expect(server.sessions.size).toBe(1);
    const missing = await client.raw('GET', '/agents/x?a=b');
    expect([missing.status, JSON.parse(missing.text).code]).toEqual([400, 'invalid_query']);
    expect((await client.raw('GET', '/nowhere')).status).toBe(404);
    const put = (body: unknown, headers = {}) => client.raw('PUT', '/agents/a/tags/b', { body, headers });
    expect((await put({ value: 'x' })).status).toBe(204);
    expect((await put('{"value":"x"}')).status).toBe(204);
    expect((await put('x', { 'Content-Type': 'text/plain' })).status).toBe(415);
    for (const path of ['status', '', '/a b', '/a\r\nx: y', 'https://elsewhere/']) {
      expect((await faultOf(client.raw('GET', path))).code).toBe('usage');
    }
  });
});

describe('a stream', () => {
  const params = { node_id: 'a' };
  const resource: ResourceResult = {
    module: 'm',
    kind: 'file-unix',
    identity: '/a',
    id: null,
    name: null,
    action: 'none',
    status: 'unchanged',
    changes: [],
    diff: null,
    sensitive: false,
    reason: null,
    error: null,
    duration_ms: 0,
  };

  it('gives line after line, across every cut', async () => {
    const server = await startServer({
      handlers: {
        planAgent: async ({ stream }) => {
          await stream?.({ event: 'started', operation_id: null });
          for (let at = 0; at < 500; at += 1) {
            await stream?.({ event: 'resource', resource: { ...resource, identity: `/grün/${'x'.repeat(at)}` } });
          }
          await stream?.({ event: 'result', result });
          return { status: 200, body: result };
        },
      },
    });
    const events = [];
    for await (const line of pinned(server).stream('planAgent', { params, body: { modules: [] } })) events.push(line);
    expect(events).toHaveLength(502);
    expect(events[499]).toMatchObject({ event: 'resource', resource: { identity: `/grün/${'x'.repeat(498)}` } });
    expect(events.at(-1)).toEqual({ event: 'result', result });
  });

  it('ends with the fault of its error line, or throws the refusal', async () => {
    const server = await startServer({
      handlers: {
        planAgent: async ({ stream }) => {
          await stream?.({ event: 'started', operation_id: null });
          throw new Fault('agent_timeout', 'the agent fell silent');
        },
        applyAgent: async () => {
          throw new Fault('agent_not_connected', 'the agent is offline');
        },
      },
    });
    const client = pinned(server);
    const events: string[] = [];
    const read = async (id: 'planAgent' | 'applyAgent') => {
      for await (const line of client.stream(id, { params, body: { modules: [] } })) events.push(line.event);
    };
    const late = await faultOf(read('planAgent'));
    expect(late).toMatchObject({ code: 'agent_timeout', message: 'the agent fell silent', data: { status: 504 } });
    expect(events).toEqual(['started']);
    expect((await faultOf(read('applyAgent'))).code).toBe('agent_not_connected');
  });

  it('is one line when the server has nothing to stream', async () => {
    const events = [];
    for await (const line of pinned(await startServer()).stream('planAgent', { params, body: { modules: [] } }))
      events.push(line);
    expect(events).toEqual([{ event: 'result', result }]);
  });

  it('lets the server know when its caller has gone', async () => {
    let aborted = () => {};
    const ended = new Promise<void>((resolve) => {
      aborted = resolve;
    });
    const server = await startServer({
      handlers: {
        planAgent: async ({ stream, signal }) => {
          await stream?.({ event: 'started', operation_id: null });
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
          aborted();
          return { status: 200, body: result };
        },
      },
    });
    const client = pinned(server);
    for await (const _ of client.stream('planAgent', { params, body: { modules: [] } })) break;
    await ended;
    const controller = new AbortController();
    const read = async () => {
      const input = { params, body: { modules: [] }, signal: controller.signal };
      for await (const _ of client.stream('planAgent', input)) controller.abort(new Error('enough'));
    };
    await expect(read()).rejects.toThrow('enough');
  });

  it('that breaks is no success', async () => {
    const server = await startServer({
      handlers: {
        planAgent: async ({ stream }) => {
          await stream?.({ event: 'started', operation_id: null });
          await new Promise(() => {});
          return { status: 200, body: result };
        },
      },
    });
    const read = async () => {
      for await (const _ of pinned(server).stream('planAgent', { params, body: { modules: [] } }))
        void server.api.stop();
    };
    expect((await faultOf(read())).code).toBe('unreachable');
  });
});

/** An HTTP server that breaks the first connections before it answers. */
async function flaky(breaks: number): Promise<{ url: string; keys: (string | undefined)[]; server: Server }> {
  const keys: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers['idempotency-key']?.toString());
    if (keys.length <= breaks) {
      request.socket.destroy();
      return;
    }
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(result));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return { url: `http://127.0.0.1:${address.port}`, keys, server };
}

describe('an answer without an end', () => {
  it.each(['application/json', 'application/x-ndjson'])(
    'of %s is given up before it fills the memory',
    async (type) => {
      const block = Buffer.alloc(4 * 1024 * 1024, ' ');
      let isOpen = true;
      const server = createServer((_, response) => {
        response.setHeader('content-type', type);
        response.on('close', () => {
          isOpen = false;
        });
        const send = () => isOpen && response.write(block, send);
        send();
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => {
        server.closeAllConnections();
        server.close();
      });
      const { port } = server.address() as AddressInfo;
      const client = clientOf(`http://127.0.0.1:${port}`, { token: 't' });
      const body = { modules: [] };
      const asked =
        type === 'application/json'
          ? client.call('listAgents')
          : (async () => {
              for await (const _ of client.stream('planAgent', { params: { node_id: 'a' }, body }));
            })();
      const fault = await faultOf(asked);
      expect(fault).toMatchObject({ code: 'unreachable', message: 'the server answers with more than 256 MiB' });
      await until(() => !isOpen, 'the connection is closed');
    },
  );
});

describe('a connection that breaks before the answer', () => {
  const apply = { params: { node_id: 'a' }, body: { modules: [] } };

  it('is made again once where that does no harm', async () => {
    const read = await flaky(1);
    await clientOf(read.url, { token: 't' }).call('listAgents');
    expect(read.keys).toHaveLength(2);
    const twice = await flaky(2);
    expect((await faultOf(clientOf(twice.url, { token: 't' }).call('listAgents'))).code).toBe('unreachable');
    expect(twice.keys).toHaveLength(2);
  });

  it('repeats an apply under the same key', async () => {
    const { url, keys } = await flaky(1);
    expect(await clientOf(url, { token: 't' }).call('applyAgent', apply)).toEqual(result);
    expect(keys).toHaveLength(2);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(keys[1]).toBe(keys[0]);
    await clientOf(url, { token: 't' }).call('applyAgent', { ...apply, idempotencyKey: 'mine' });
    expect(keys[2]).toBe('mine');
  });

  it('is reported for a write that could happen twice', async () => {
    const { url, keys } = await flaky(1);
    const fault = await faultOf(clientOf(url, { token: 't' }).call('planAgent', apply));
    expect(fault).toMatchObject({ code: 'unreachable', data: { reason: 'ECONNRESET' } });
    expect(keys).toEqual([undefined]);
  });

  it('leaves an apply that was done once', async () => {
    let runs = 0;
    const server: TestServer = await startServer({
      handlers: {
        applyAgent: async ({ context }) => {
          runs += 1;
          await server.begin(context);
          return { status: 200, body: result };
        },
      },
    });
    const client = pinned(server);
    await client.call('applyAgent', { ...apply, idempotencyKey: 'k' });
    const again = await client.callWithHeaders('applyAgent', { ...apply, idempotencyKey: 'k' });
    expect(again.headers['idempotent-replayed']).toBe('true');
    const lines = [];
    for await (const line of client.stream('applyAgent', { ...apply, idempotencyKey: 'k' })) lines.push(line);
    expect(lines).toEqual([{ event: 'result', result }]);
    expect(runs).toBe(1);
  });
});
