/** Downloads of files beside modules: they continue after cuts, and nothing but the wanted bytes gets its name. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ContentDownloads } from '../../../src/agent/content/content-downloads.js';
import { dialContext } from '../../../src/agent/link/dial.js';
import { isFault } from '../../../src/kernel/fault.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { MAX_DOWNLOAD_BYTES, MAX_SOURCE_BYTES } from '../../../src/resources/host.js';
import { clock } from '../../support/agent.js';
import { credentialsOf, newIdentity, temporaryDirectory } from '../../support/identity.js';

const agent = newIdentity();
const orchestrator = newIdentity();
const bytes = randomBytes(300_000);
const sha256 = createHash('sha256').update(bytes).digest('hex');

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts an agent port that gives these answers one after the other, the last one again and again. Returns what it was asked. */
async function start(answers: readonly Answer[], identity = orchestrator) {
  const ranges: (string | undefined)[] = [];
  const http = createServer((request, response) => {
    const answer = answers[Math.min(ranges.length, answers.length - 1)];
    ranges.push(request.headers.range);
    answer?.(request, response);
  });
  const sockets = new Set<TLSSocket>();
  const server = createTlsServer({
    ...credentialsOf(identity.privateKey),
    requestCert: true,
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: false,
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    http.emit('connection', socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { ranges, port: (server.address() as AddressInfo).port };
}

function downloadsFrom(port: number, patienceMs = 2_000) {
  const dataDir = temporaryDirectory();
  const context = dialContext(agent.privateKey);
  const downloads = new ContentDownloads({ dataDir, logger: silentLogger, clock, context, retryMs: 1, patienceMs });
  downloads.setSource({ host: '127.0.0.1', port, key: orchestrator.publicKey });
  onTestFinished(() => downloads.stop());
  return { downloads, dataDir, place: (name: string) => join(dataDir, 'content', name) };
}

const whole: Answer = ({ headers }, response) => {
  const from = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0);
  response.writeHead(from === 0 ? 200 : 206, { 'Content-Length': bytes.length - from }).end(bytes.subarray(from));
};

/** Sends a part of what it announces and cuts the connection. */
const cutAfter =
  (count: number): Answer =>
  ({ headers }, response) => {
    const from = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0);
    response.writeHead(from === 0 ? 200 : 206, { 'Content-Length': bytes.length - from });
    response.write(bytes.subarray(from, from + count), () => response.destroy());
  };

const status =
  (code: number): Answer =>
  (_, response) =>
    void response.writeHead(code, { 'Content-Length': 0 }).end();

const failureOf = async (work: Promise<void>) => {
  const error: unknown = await work.then(
    () => null,
    (caught) => caught,
  );
  return isFault(error) ? `${error.code}: ${error.message}` : error;
};

describe('a download', () => {
  it('continues where a cut left off, also after a restart of the agent', async () => {
    const { port, ranges } = await start([cutAfter(1_000), status(503), cutAfter(2_000), whole]);
    const { downloads, place } = downloadsFrom(port);
    mkdirSync(place(''), { recursive: true });
    writeFileSync(place(`${sha256}.part`), bytes.subarray(0, 500), { mode: 0o600 });
    await downloads.fetch({ sha256 });
    expect(readFileSync(place(sha256)).equals(bytes)).toBe(true);
    expect(readdirSync(place(''))).toEqual([sha256]);
    expect(statSync(place(sha256)).mode & 0o777).toBe(0o600);
    const starts = ranges.map((range) => Number(/\d+/.exec(range ?? '')?.[0]));
    expect(starts[0]).toBe(500);
    expect([...starts].sort((a, b) => a - b)).toEqual(starts);
    const { length } = ranges;
    await downloads.fetch({ sha256 });
    expect(ranges).toHaveLength(length);
  });

  it('is made once for all that want it at a time', async () => {
    const { port, ranges } = await start([whole]);
    const { downloads } = downloadsFrom(port);
    await Promise.all([downloads.fetch({ sha256 }), downloads.fetch({ sha256 })]);
    expect(ranges).toHaveLength(1);
  });

  it('begins anew when what has come has other bytes, or is longer than the file', async () => {
    const other: Answer = (_, response) => void response.end(randomBytes(bytes.length));
    const { port, ranges } = await start([status(416), other, whole]);
    const { downloads, place } = downloadsFrom(port);
    mkdirSync(place(''), { recursive: true });
    writeFileSync(place(`${sha256}.part`), Buffer.alloc(bytes.length + 1));
    await downloads.fetch({ sha256 });
    expect(readFileSync(place(sha256)).equals(bytes)).toBe(true);
    expect(ranges.slice(1)).toEqual([undefined, undefined]);
  });

  it.each<[string, Answer, string]>([
    ['it is gone', status(404), 'the orchestrator no longer has it'],
    ['the orchestrator stays busy', status(503), 'the orchestrator is busy with other downloads'],
    ['nothing comes', cutAfter(0), 'aborted'],
    [
      'it has no end',
      (_, response) => {
        response.writeHead(200);
        const more = () => {
          while (response.write(Buffer.alloc(1_000_000))) {}
          if (!response.destroyed) response.once('drain', more);
        };
        more();
      },
      `it is larger than ${MAX_SOURCE_BYTES} bytes`,
    ],
  ])('fails when %s', async (_, answer, reason) => {
    const { port } = await start([answer]);
    const { downloads, place } = downloadsFrom(port, 20);
    expect(await failureOf(downloads.fetch({ sha256 }))).toBe(`content_unavailable: ${reason}`);
    expect(readdirSync(place('')).filter((name) => name === sha256)).toEqual([]);
  });

  it('asks nothing of a peer with another key', async () => {
    const { port, ranges } = await start([whole], newIdentity());
    const { downloads } = downloadsFrom(port, 20);
    expect(await failureOf(downloads.fetch({ sha256 }))).toMatch(/^content_unavailable: /);
    expect(ranges).toEqual([]);
  });

  it('ends with the agent', async () => {
    const { port } = await start([status(503)]);
    const { downloads } = downloadsFrom(port, 60_000);
    const failure = failureOf(downloads.fetch({ sha256 }));
    await downloads.stop();
    expect(await failure).toBe('content_unavailable: the agent stops');
  });
});

describe('a download from an address', () => {
  /** Starts a server of HTTP that gives these answers one after the other, the last one again and again. */
  async function serve(answers: readonly Answer[]) {
    const asked: IncomingMessage[] = [];
    const server = createServer((request, response) => {
      const answer = answers[Math.min(asked.length, answers.length - 1)];
      asked.push(request);
      answer?.(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    return { asked, url: `http://127.0.0.1:${port}/app.bin`, host: `127.0.0.1:${port}` };
  }

  const to =
    (location: string): Answer =>
    (_, response) =>
      void response.writeHead(302, { location, 'Content-Length': 0 }).end();

  it('needs no orchestrator, follows redirects, and continues where a cut left off', async () => {
    const { asked, url } = await serve([to('/there.bin'), status(500), cutAfter(1_000), to('/there.bin'), whole]);
    const { downloads, place } = downloadsFrom(1);
    // The cut may come before the file of what has come is open, so some of it is there already.
    mkdirSync(place(''), { recursive: true });
    writeFileSync(place(`${sha256}.part`), bytes.subarray(0, 500), { mode: 0o600 });
    await downloads.fetch({ sha256, url });
    expect(readFileSync(place(sha256)).equals(bytes)).toBe(true);
    expect(asked.map((request) => request.url)).toContain('/there.bin');
    const starts = asked.map(({ headers }) => Number(/\d+/.exec(headers.range ?? '')?.[0]));
    expect(starts.every((start) => start >= 500)).toBe(true);
  });

  it('fails beyond its bound, and leaves nothing of it on the disk', async () => {
    const more: Answer = (_, response) => void response.writeHead(206).end('x');
    const { url } = await serve([more]);
    const { downloads, place } = downloadsFrom(1, 20);
    mkdirSync(place(''), { recursive: true });
    writeFileSync(place(`${sha256}.part`), '');
    truncateSync(place(`${sha256}.part`), MAX_DOWNLOAD_BYTES);
    expect(await failureOf(downloads.fetch({ sha256, url }))).toBe(
      `content_unavailable: it is larger than ${MAX_DOWNLOAD_BYTES} bytes`,
    );
    expect(readdirSync(place(''))).toEqual([]);
  });

  it.each<[string, Answer, (host: string) => string]>([
    ['nothing is there', status(404), (host) => `${host} answered with HTTP status 404`],
    ['it may not be read', status(403), (host) => `${host} answered with HTTP status 403`],
    ['other bytes come', (_, response) => void response.end('other'), () => 'what has come has another SHA-256'],
    [
      'it leads to another scheme',
      to('https://127.0.0.1/app.bin'),
      (host) => `${host} redirects from http:// to https://; write the address that it leads to`,
    ],
    [
      'it leads to a file',
      to('file:///etc/passwd'),
      (host) => `${host} redirects from http:// to file://; write the address that it leads to`,
    ],
    ['it leads in a circle', to('/app.bin'), (host) => `${host} redirects more than 5 times`],
    ['the server stays broken', status(500), (host) => `${host} answered with HTTP status 500`],
  ])('fails when %s', async (_, answer, reason) => {
    const { url, host } = await serve([answer]);
    const { downloads, place } = downloadsFrom(1, 20);
    expect(await failureOf(downloads.fetch({ sha256, url }))).toBe(`content_unavailable: ${reason(host)}`);
    expect(readdirSync(place('')).filter((name) => name === sha256)).toEqual([]);
  });
});
