import { createServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { proxyFor } from '../../src/client/proxy.js';
import { clientOf, faultOf, newHome, startServer } from '../support/client.js';
import { tlsFiles } from '../support/http.js';

interface TestProxy {
  readonly url: string;
  readonly targets: string[];
  readonly credentials: (string | undefined)[];
}

/** A CONNECT proxy that leads every name to one port of this machine, and may refuse. */
async function startProxy(port: number, options: { refuse?: string; tls?: boolean } = {}): Promise<TestProxy> {
  const targets: string[] = [];
  const credentials: (string | undefined)[] = [];
  const sockets = new Set<Socket>();
  const proxy = options.tls ? createHttpsServer(tlsFiles()) : createServer();
  proxy.on('connection', (socket) => sockets.add(socket));
  proxy.on('connect', (request, client, head) => {
    targets.push(request.url ?? '');
    credentials.push(request.headers['proxy-authorization']);
    client.on('error', () => {});
    if (options.refuse) {
      client.end(`HTTP/1.1 ${options.refuse}\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    const upstream = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(client).pipe(upstream);
    });
    upstream.on('error', () => client.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  const address = proxy.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return { url: `http://127.0.0.1:${address.port}`, targets, credentials };
}

describe('a proxy', () => {
  it('leads to the server, whose pin is still checked', async () => {
    const server = await startServer();
    const proxy = await startProxy(server.api.address().port);
    const env = { ...newHome(), HTTPS_PROXY: proxy.url };
    const client = clientOf('https://orch.example:4748', { pin: server.api.fingerprint, env });
    expect((await client.call('getSession')).operator.username).toBe('tester');
    expect(new Set(proxy.targets)).toEqual(new Set(['orch.example:4748']));
    const wrong = await faultOf(clientOf('https://orch.example', { pin: 'ab'.repeat(32), env }).call('getStatus'));
    expect(wrong).toMatchObject({ code: 'tls_mismatch', data: { fingerprint: server.api.fingerprint } });
    expect(proxy.targets.at(-1)).toBe('orch.example:443');
    expect(server.seen.filter((id) => id === 'getStatus')).toEqual([]);
    const unknown = await faultOf(clientOf('https://orch.example', { env }).call('getStatus'));
    expect(unknown.code).toBe('tls_unknown');
  });

  it('gets its user name and password, and messages do not', async () => {
    const server = await startServer();
    const proxy = await startProxy(server.api.address().port);
    const withUser = proxy.url.replace('//', '//user:p%40ss@');
    const env = { ...newHome(), https_proxy: withUser };
    await clientOf('https://orch.example', { pin: server.api.fingerprint, env }).call('getStatus');
    expect(proxy.credentials[0]).toBe(`Basic ${Buffer.from('user:p@ss').toString('base64')}`);
    const refusing = await startProxy(1, { refuse: '407 Proxy Authentication Required' });
    const refused = await faultOf(
      clientOf('https://orch.example', {
        env: { ...env, https_proxy: refusing.url.replace('//', '//user:p%40ss@') },
      }).call('getStatus'),
    );
    expect(refused).toMatchObject({ code: 'unreachable', data: { proxy: refusing.url, status: 407 } });
    expect(refused.message).toContain('407 Proxy Authentication Required');
    expect(JSON.stringify([refused.message, refused.hint, refused.data])).not.toMatch(/p%40ss|p@ss/);
  });

  it('that cannot be reached is named', async () => {
    const env = { ...newHome(), HTTPS_PROXY: 'http://127.0.0.1:1' };
    const fault = await faultOf(clientOf('https://orch.example', { env }).call('getStatus'));
    expect(fault).toMatchObject({ code: 'unreachable', hint: 'see HTTPS_PROXY and NO_PROXY' });
    expect(fault.message).toContain('the proxy http://127.0.0.1:1');
    const secure = await startProxy(1, { tls: true });
    const untrusted = { ...env, HTTPS_PROXY: secure.url.replace('http:', 'https:') };
    expect((await faultOf(clientOf('https://orch.example', { env: untrusted }).call('getStatus'))).code).toBe(
      'unreachable',
    );
  });
});

describe('NO_PROXY', () => {
  const proxied = (
    url: string,
    no: string,
    env: Record<string, string> = { HTTPS_PROXY: 'http://proxy.example:3128' },
  ) => proxyFor(new URL(url), { ...env, NO_PROXY: no }) !== null;

  it.each([
    ['https://orch.example', '', true],
    ['https://orch.example', 'orch.example', false],
    ['https://ORCH.example', 'Orch.Example', false],
    ['https://sub.orch.example', 'orch.example', false],
    ['https://sub.orch.example', '.orch.example', false],
    ['https://orch.example', '*.orch.example', false],
    ['https://notorch.example', 'orch.example', true],
    ['https://orch.example', 'other.example, orch.example', false],
    ['https://orch.example', 'other.example orch.example:443', false],
    ['https://orch.example:4748', 'orch.example:443', true],
    ['https://orch.example', '*', false],
    ['https://10.1.2.3', '10.0.0.0/8', false],
    ['https://11.1.2.3', '10.0.0.0/8', true],
    ['https://10.1.2.3', '10.0.0.0/99', true],
    ['https://10.1.2.3', '10.1.2.3', false],
    ['https://[2001:db8::1]', '2001:db8::/32', false],
    ['https://[2001:db8::1]', '2001:db8::1', false],
    ['https://[2001:db8::1]:4748', '[2001:db8::1]:4748', false],
    ['https://127.0.0.1:4748', '', false],
    ['https://localhost:4748', '', false],
    ['https://[::1]:4748', '', false],
    ['http://orch.example', '', false],
  ])('decides whether %s with %j goes through the proxy: %s', (url, no, expected) => {
    expect(proxied(url, no)).toBe(expected);
  });

  it('beside a proxy that is no URL is a mistake', () => {
    expect(proxyFor(new URL('https://orch.example'), { HTTPS_PROXY: 'proxy.example:3128' })?.href).toBe(
      'http://proxy.example:3128/',
    );
    for (const value of ['socks5://x', 'http://', 'http://user:secret@:x']) {
      expect(() => proxyFor(new URL('https://orch.example'), { HTTPS_PROXY: value })).toThrow(
        expect.objectContaining({ code: 'usage', message: expect.not.stringContaining('secret') }),
      );
    }
  });
});
