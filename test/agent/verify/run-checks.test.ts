/** Health checks against real servers, scripts and sockets. */
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UnixHost } from '../../../src/agent/host/this-host.js';
import { runChecks } from '../../../src/agent/verify/run-checks.js';
import { selfSignedP256 } from '../../../src/identity/certificate.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { DesiredCheck } from '../../../src/resources/checks/check.js';
import { MAX_OUTPUT_BYTES } from '../../../src/resources/command.js';
import { LINK_LIMITS } from '../../../src/wire/limits.js';
import type { RunContent } from '../../../src/wire/parts.js';
import { clock, file, place } from '../../support/agent.js';
import { until } from '../../support/until.js';

/** Listens on the loopback address until the end of the test; returns the port. */
async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const web = (listener: RequestListener): Promise<number> => listen(createServer(listener));

/** A port on which nothing listens. */
async function freePort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const check = (kind: string, body: DesiredCheck['body'], more: Partial<DesiredCheck> = {}): DesiredCheck => ({
  module: 'web',
  name: kind,
  kind,
  within_secs: 1,
  timeout_secs: 1,
  body,
  ...more,
});

const TAG = { secret: 'TOKEN', tag: 'ab12' };

function runAll(content: RunContent, signal: AbortSignal = new AbortController().signal) {
  const dataDir = place();
  const createHost = (own: AbortSignal) => new UnixHost({ platform: 'linux', signal: own, dataDir });
  return runChecks(content, { clock, signal, createHost });
}

const run = (checks: readonly DesiredCheck[], signal?: AbortSignal) =>
  runAll({ resources: [], removals: [], verify: checks }, signal);

async function runOne(kind: string, body: DesiredCheck['body'], more: Partial<DesiredCheck> = {}) {
  const [report] = await run([check(kind, body, more)]);
  return report;
}

const HEALTHY = { index: 0, status: 'healthy', reason: null };
const unhealthy = (reason: string) => ({ index: 0, status: 'unhealthy', reason: expect.stringContaining(reason) });

describe('http', () => {
  it('takes every answer from 200 to 399 by default, and names any other', async () => {
    const port = await web((request, response) => response.writeHead(Number(request.url?.slice(1))).end());
    const url = (status: number) => `http://127.0.0.1:${port}/${status}`;
    expect(await runOne('http', { url: url(204) })).toMatchObject(HEALTHY);
    expect(await runOne('http', { url: url(302) })).toMatchObject(HEALTHY);
    expect(await runOne('http', { url: url(503) })).toMatchObject(
      unhealthy(`${url(503)} answered 503, expected 2xx or 3xx, for 1 s`),
    );
    expect(await runOne('http', { url: url(404), status: 404 })).toMatchObject(HEALTHY);
    expect(await runOne('http', { url: url(404), status: '400-404' })).toMatchObject(HEALTHY);
    expect(await runOne('http', { url: url(302), status: '2xx' })).toMatchObject(unhealthy('expected 2xx'));
  });

  it('tries again until the answer is right', async () => {
    let requests = 0;
    const port = await web((_request, response) => {
      requests += 1;
      response.writeHead(requests < 3 ? 503 : 200).end();
    });
    expect(await runOne('http', { url: `http://127.0.0.1:${port}/` }, { within_secs: 30 })).toMatchObject(HEALTHY);
    expect(requests).toBe(3);
  });

  it('looks for a text, also across two pieces of the body', async () => {
    const port = await web((request, response) => {
      response.write('all is rea');
      setImmediate(() => (request.url === '/' ? response.end('dy now') : response.end('lly bad')));
    });
    const url = `http://127.0.0.1:${port}/`;
    expect(await runOne('http', { url, contains: 'ready' })).toMatchObject(HEALTHY);
    expect(await runOne('http', { url: `${url}bad`, contains: 'ready' })).toMatchObject(
      unhealthy('does not contain the expected text'),
    );
  });

  it('needs no more of a body that never ends than the expected text', async () => {
    const port = await web((_request, response) => {
      response.write('ready');
      const more = setInterval(() => response.write('.'), 5);
      response.on('close', () => clearInterval(more));
    });
    const url = `http://127.0.0.1:${port}/`;
    expect(await runOne('http', { url })).toMatchObject(HEALTHY);
    expect(await runOne('http', { url, contains: 'ready' })).toMatchObject(HEALTHY);
    expect(await runOne('http', { url, contains: 'never' })).toMatchObject(unhealthy('gave no whole answer within'));
  });

  it('gives up a huge body after its first MiB', async () => {
    let sent = 0;
    const port = await web((_request, response) => {
      const block = Buffer.alloc(256 * 1024, 'x');
      const push = () => {
        while (sent < 1024 * 1024 * 1024 && response.write(block)) sent += block.length;
      };
      response.on('drain', push);
      push();
    });
    const report = await runOne(
      'http',
      { url: `http://127.0.0.1:${port}/`, contains: 'never' },
      { timeout_secs: 30, within_secs: 2 },
    );
    expect(report).toMatchObject(unhealthy('the first MiB of the body does not contain'));
    expect(sent).toBeLessThan(256 * 1024 * 1024);
  });

  it('ends with a server that accepts and says nothing, or half of an answer', async () => {
    const silent = await listen(createTcpServer(() => undefined));
    const half = await listen(createTcpServer((socket) => socket.write('HTTP/1.1 200 OK\r\nX-Half: ')));
    const broken = await listen(createTcpServer((socket) => socket.end('SSH-2.0-OpenSSH\r\n')));
    const cut = await listen(createTcpServer((socket) => socket.destroy()));
    expect(await runOne('http', { url: `http://127.0.0.1:${silent}/` })).toMatchObject(
      unhealthy('gave no whole answer within'),
    );
    expect(await runOne('http', { url: `http://127.0.0.1:${half}/` })).toMatchObject(
      unhealthy('gave no whole answer within'),
    );
    expect(await runOne('http', { url: `http://127.0.0.1:${broken}/` })).toMatchObject(
      unhealthy('failed: Parse Error'),
    );
    expect(await runOne('http', { url: `http://127.0.0.1:${cut}/` })).toMatchObject(unhealthy('broke the connection'));
    const closed = await freePort();
    expect(await runOne('http', { url: `http://127.0.0.1:${closed}/` })).toMatchObject(
      unhealthy(`http://127.0.0.1:${closed}/ refused the connection`),
    );
  });

  it('follows redirects only if asked to, a few, and gives the headers to no other server', async () => {
    const seen: (string | undefined)[] = [];
    const other = await web((request, response) => {
      seen.push(request.headers['x-key'] as string | undefined);
      response.writeHead(200).end();
    });
    const port = await web((request, response) => {
      seen.push(request.headers['x-key'] as string | undefined);
      const target = { '/other': `http://127.0.0.1:${other}/`, '/loop': '/loop', '/file': 'file:///etc/passwd' };
      const location = Object.entries(target).find(([path]) => path === request.url)?.[1] ?? '/nowhere';
      response.writeHead(302, { location }).end();
    });
    const url = (path: string) => `http://127.0.0.1:${port}${path}`;
    const headers = { 'X-Key': 'hunter2' };
    expect(await runOne('http', { url: url('/other'), headers })).toMatchObject(HEALTHY);
    expect(seen).toEqual(['hunter2']);
    const follow = { headers, status: 200, follow_redirects: true };
    expect(await runOne('http', { url: url('/other'), ...follow })).toMatchObject(HEALTHY);
    expect(seen).toEqual(['hunter2', 'hunter2', undefined]);
    expect(await runOne('http', { url: url('/loop'), ...follow })).toMatchObject(
      unhealthy('redirects more than 5 times'),
    );
    expect(await runOne('http', { url: url('/file'), ...follow })).toMatchObject(unhealthy('redirects to file:'));
  });

  it('verifies TLS certificates unless it is insecure', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const cert = selfSignedP256({ privateKey, dnsNames: [], addresses: ['127.0.0.1'] });
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
    const port = await listen(createTlsServer({ cert, key }, (_request, response) => response.end('ready')));
    const url = `https://127.0.0.1:${port}/`;
    expect(await runOne('http', { url })).toMatchObject(unhealthy('has no valid TLS certificate'));
    expect(await runOne('http', { url, insecure: true, contains: 'ready' })).toMatchObject(HEALTHY);
  });
});

describe('tcp', () => {
  it('succeeds with a connection, and says why there is none', async () => {
    const port = await listen(createTcpServer());
    expect(await runOne('tcp', { host: '127.0.0.1', port })).toMatchObject(HEALTHY);
    expect(await runOne('tcp', { host: 'localhost', port: String(port) })).toMatchObject(HEALTHY);
    const closed = await freePort();
    expect(await runOne('tcp', { host: '127.0.0.1', port: closed })).toMatchObject(
      unhealthy(`127.0.0.1:${closed} refused the connection`),
    );
    expect(await runOne('tcp', { host: 'no-such-host.invalid', port: 1 })).toMatchObject(
      unhealthy('no-such-host.invalid:1'),
    );
  });

  it('sees a port that opens later', async () => {
    const port = await freePort();
    const found = runOne('tcp', { host: '127.0.0.1', port }, { within_secs: 30 });
    const server = createTcpServer();
    onTestFinished(() => void server.close());
    server.listen(port, '127.0.0.1');
    expect(await found).toMatchObject(HEALTHY);
  });
});

describe('script', () => {
  it('is healthy with status 0, and shows the last lines otherwise', async () => {
    expect(await runOne('script', { program: 'sh', run: 'exit 0' })).toMatchObject(HEALTHY);
    expect(await runOne('script', { program: 'sh', run: 'echo one; echo two >&2; exit 3' })).toMatchObject(
      unhealthy('ended with status 3: two'),
    );
    expect(await runOne('script', { program: 'powershell', run: 'exit 0' })).toMatchObject(
      unhealthy('scripts of powershell run on windows'),
    );
  });

  it('ends one that never ends, with its children', async () => {
    const file = join(place(), 'pid');
    const script = `sleep 1000 & echo $! > ${file}; wait`;
    expect(await runOne('script', { program: 'sh', run: script })).toMatchObject(unhealthy('did not end within 1 s'));
    const pid = Number(readFileSync(file, 'utf8'));
    await until(() => !existsSync(`/proc/${pid}/exe`), 'the child has ended');
  });

  it('keeps little of endless output', async () => {
    const report = await runOne(
      'script',
      { program: 'sh', run: 'yes "a long line of output" | head -c 50000000; exit 1' },
      { timeout_secs: 1, within_secs: 1 },
    );
    expect(report?.status).toBe('unhealthy');
    expect(report?.reason?.length).toBeLessThan(1024);
  });

  it('shows nothing of what a script with a secret wrote, in whatever form', async () => {
    const run = 'echo hunter2hunter2 | rev; exit 1';
    const start = run.indexOf('hunter2');
    const taint = { '/run': [{ start, end: start + 14, secret: 'TOKEN', tag: 'ab12' }] };
    const report = await runOne('script', { program: 'sh', run }, { taint });
    expect(report?.reason).toBe('ended with status 1; its output may hold secrets, so it is not shown, for 1 s');
  });

  it('masks the secrets of the run in what it wrote, also around a gap, and escapes nothing into the terminal', async () => {
    const secret = join(place(), 'secret');
    const wanted = file(
      secret,
      { content: 'hunter2hunter2' },
      { taint: { '/content': [{ start: 0, end: 14, ...TAG }] } },
    );
    writeFileSync(secret, 'hunter2hunter2');
    const half = MAX_OUTPUT_BYTES / 2;
    const reasonOf = async (run: string) => {
      const verify = [check('script', { program: 'sh', run })];
      const [report] = await runAll({ resources: [wanted], removals: [], verify });
      return report?.reason ?? '';
    };
    const whole = await reasonOf(`printf '\\033[31m'; cat ${secret}; base64 ${secret}; exit 1`);
    expect(whole).toMatch(/‹secret TOKEN #ab12›.*‹secret TOKEN #ab12›/);
    expect(whole).not.toMatch(/\p{Cc}/u);
    const filled = (bytes: number) => `head -c ${bytes} /dev/zero | tr '\\0' x`;
    const torn = await reasonOf(`${filled(half * 2)}; cat ${secret}; echo; ${filled(half - 8)}; exit 1`);
    for (const reason of [whole, torn]) expect(reason).not.toMatch(/hunter2|unter2|aHVudGVyMmh1bnRlcjI/);
  });

  it('costs little when it writes a flood of blanks', async () => {
    const flood = String.raw`head -c 260000 /dev/zero | tr '\0' '\t'; echo end; exit 1`;
    const before = process.cpuUsage();
    expect(await runOne('script', { program: 'sh', run: flood })).toMatchObject(unhealthy('ended with status 1'));
    // A pattern that takes a time which grows with the square of the blanks takes half a minute of the processor.
    expect(process.cpuUsage(before).user).toBeLessThan(10_000_000);
  });
});

describe('all together', () => {
  it('answers for a kind or a body that this agent does not know', async () => {
    expect(await runOne('grpc', {})).toMatchObject(unhealthy('does not know such a check of kind grpc'));
    expect(await runOne('http', { url: 1 })).toMatchObject(unhealthy('does not know such a check of kind http'));
    expect(await runOne('http', { url: 'http://127.0.0.1', method: 'POST' })).toMatchObject(
      unhealthy('does not know such a check'),
    );
  });

  it('are stopped at once by a signal, and say that they did not run', async () => {
    const silent = await listen(createTcpServer(() => undefined));
    const file = join(place(), 'begun');
    const stopper = new AbortController();
    const checks = [
      check('script', { program: 'sh', run: `touch ${file}; sleep 1000` }, { within_secs: 900, timeout_secs: 900 }),
      check('http', { url: `http://127.0.0.1:${silent}/` }, { within_secs: 900, timeout_secs: 900 }),
      ...Array.from({ length: 20 }, () =>
        check('tcp', { host: '127.0.0.1', port: 1 }, { within_secs: 900, timeout_secs: 900 }),
      ),
    ];
    const reports = run(checks, stopper.signal);
    await until(() => existsSync(file), 'the script has begun');
    stopper.abort(new Fault('interrupted', 'the agent stops'));
    const statuses = (await reports).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set(['not_run']));
  });

  it('do nothing once they are stopped', async () => {
    const file = join(place(), 'ran');
    const reports = await run([check('script', { program: 'sh', run: `touch ${file}` })], AbortSignal.abort());
    expect(reports).toMatchObject([{ status: 'not_run', reason: null }]);
    expect(existsSync(file)).toBe(false);
  });

  it('run a thousand checks, each at least once, and report them in one frame', async () => {
    let requests = 0;
    const port = await web((_request, response) => {
      requests += 1;
      response.writeHead(500).end();
    });
    const url = `http://127.0.0.1:${port}/${'€"'.repeat(600)}`;
    const reports = await run(Array.from({ length: 1000 }, () => check('http', { url })));
    expect(reports.map(({ index }) => index)).toEqual(Array.from({ length: 1000 }, (_, index) => index));
    expect(new Set(reports.map(({ status }) => status))).toEqual(new Set(['unhealthy']));
    expect(requests).toBeGreaterThanOrEqual(1000);
    expect(Buffer.byteLength(JSON.stringify(reports))).toBeLessThan(LINK_LIMITS.agentFrame);
  });

  it('have a whole first attempt when their turn comes just before the end of their time', async () => {
    const port = await web((_request, response) => setTimeout(() => response.end(), 100));
    const createHost = (signal: AbortSignal) => new UnixHost({ platform: 'linux', signal, dataDir: place() });
    const times = [0];
    const late = { ...clock, monotonic: () => times.shift() ?? 999 };
    const checks = [check('http', { url: `http://127.0.0.1:${port}/` })];
    const reports = await runChecks(
      { resources: [], removals: [], verify: checks },
      { clock: late, signal: new AbortController().signal, createHost },
    );
    expect(reports).toMatchObject([HEALTHY]);
  });

  it('pass when a file that one of them waits for is made by another program', async () => {
    const file = join(place(), 'ready');
    const reports = run([check('script', { program: 'sh', run: `test -e ${file}` }, { within_secs: 60 })]);
    writeFileSync(file, '');
    expect(await reports).toMatchObject([HEALTHY]);
  });
});
