/** Downloads from the agent port: the installer and packages, for holders of a token and for approved agents, and for no other peer. */
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { pinOf } from '../../daemon/fleet/own-pin.js';
import { linesFor } from '../../src/cli/commands/enroll.js';
import type { CreatedEnrolmentToken, NewEnrolmentToken } from '../../src/contract/enrolment-tokens.js';
import { FILE_PART_BYTES } from '../../src/contract/files.js';
import { Fleet, OPERATOR } from '../support/fleet.js';
import { credentialsOf, has, newIdentity, temporaryDirectory } from '../support/identity.js';
import { makePackageFile, type PackageFile } from '../support/package-file.js';

interface Site {
  readonly fleet: Fleet;
  readonly port: number;
  readonly placed: PackageFile;
  readonly token: (wanted?: NewEnrolmentToken) => Promise<CreatedEnrolmentToken>;
}

async function start(): Promise<Site> {
  const fleet = await Fleet.start();
  await fleet.addAdmin(OPERATOR.actor.id);
  const placed = makePackageFile(join(fleet.dataDir, 'packages'), '0.0.1');
  return {
    fleet,
    placed,
    port: fleet.listener.address().port,
    token: (wanted = {}) => fleet.tokens.create(OPERATOR, wanted),
  };
}

/** Sends text through TLS and returns what comes back until the connection ends. */
const talk = (port: number, text: string, options: ConnectionOptions = {}): Promise<Buffer> =>
  new Promise((resolve) => {
    const pieces: Buffer[] = [];
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options }, () => {
      socket.write(text);
    });
    socket.on('data', (piece: Buffer) => pieces.push(piece));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(Buffer.concat(pieces)));
  });

const request = (path: string, headers: readonly string[] = [], method = 'GET') =>
  [`${method} ${path} HTTP/1.1`, 'Host: orch.home:4747', ...headers, '', ''].join('\r\n');

const bearer = (token: string) => `Authorization: Bearer ${token}`;
const statusOf = (answer: Buffer) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer.toString('latin1'))?.[1] ?? 0);
const bodyOf = (answer: Buffer) => answer.subarray(answer.indexOf('\r\n\r\n') + 4);

describe('a machine with a token', () => {
  it.each([['http/1.1'], [undefined]])('gets the installer and the package, with ALPN %s', async (alpn) => {
    const { port, placed, token, fleet } = await start();
    const { token: text } = await token();
    const options = alpn === undefined ? {} : { ALPNProtocols: ['h2', alpn] };
    const answer = await talk(port, request('/install.sh', [bearer(text)]), options);
    expect(statusOf(answer)).toBe(200);
    const script = bodyOf(answer).toString();
    for (const part of ["place='orch.home:4747'", placed.sha256, text, pinOf(fleet.identity.publicKey)]) {
      expect(script).toContain(part);
    }
    expect(script).not.toMatch(/@[A-Z]+@/);
    const sent = await talk(port, request(`/packages/${placed.sha256}`, [bearer(text)]), options);
    expect(statusOf(sent)).toBe(200);
    expect(bodyOf(sent).equals(await import('node:fs').then(({ readFileSync }) => readFileSync(placed.file)))).toBe(
      true,
    );
    expect(await fleet.story()).toEqual(['enrolment.created']);
    expect((await fleet.tokens.list(OPERATOR))[0]).toMatchObject({ uses_left: 1, last_used_at: null });
  });

  it('may send it as a password, as wget does', async () => {
    const { port, token } = await start();
    const basic = Buffer.from(`orch:${(await token()).token}`).toString('base64');
    expect(statusOf(await talk(port, request('/install.sh', [`Authorization: Basic ${basic}`])))).toBe(200);
  });

  it('gets nothing when the token is expired, revoked or another one', async () => {
    const { port, token, fleet, placed } = await start();
    const expiring = await token({ ttl_secs: 60 });
    const revoked = await token();
    await fleet.tokens.revoke(OPERATOR, revoked.id);
    const { token: good } = await token();
    const forged = good.replace(/\.[^.]{43}\.(?=[^.]{43}$)/, `.${'A'.repeat(43)}.`);
    fleet.clock.advance(61_000);
    for (const one of [expiring.token, revoked.token, forged, 'x', '']) {
      for (const path of ['/install.sh', `/packages/${placed.sha256}`]) {
        const answer = await talk(port, request(path, [bearer(one)]));
        expect([one, path, statusOf(answer), bodyOf(answer).length]).toEqual([one, path, 401, 0]);
      }
    }
    expect(statusOf(await talk(port, request('/install.sh', [bearer(good)])))).toBe(200);
  });

  it('may repeat an installation after its token was used', async () => {
    const { port, token, fleet } = await start();
    const { token: text } = await token({ auto_approve: true });
    const agent = await fleet.join(undefined, { hostname: 'box', enrolment_token: text });
    await agent.message(1);
    expect((await fleet.tokens.list(OPERATOR))[0]?.uses_left).toBe(0);
    expect(statusOf(await talk(port, request('/install.sh', [bearer(text)])))).toBe(200);
  });

  it('reaches nothing but these two paths', async () => {
    const { port, token, placed } = await start();
    const { token: text } = await token();
    const paths = [
      '/',
      '/install.sh?x',
      '/packages/',
      `/packages/${placed.sha256.toUpperCase()}`,
      '/packages/../orch.db',
      '/agent/v1',
    ];
    for (const path of paths)
      expect([path, statusOf(await talk(port, request(path, [bearer(text)])))]).toEqual([path, 404]);
    expect(statusOf(await talk(port, request('/install.sh', [bearer(text)], 'POST')))).toBe(404);
    expect(statusOf(await talk(port, request('/install.sh', [bearer(text), 'Content-Length: 5'])))).toBe(400);
    expect(statusOf(await talk(port, request(`/packages/${'0'.repeat(64)}`, [bearer(text)])))).toBe(404);
    const upgrade = [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ];
    expect(await talk(port, request('/agent/v1', [bearer(text), ...upgrade]))).toEqual(Buffer.alloc(0));
  });

  it.each([['a b'], ["x';id;'"], ['$(id)'], ['x:99999'], ['`id`:4747'], ['x/y']])(
    'gets no installer for the host %s',
    async (host) => {
      const { port, token } = await start();
      const text = request('/install.sh', [bearer((await token()).token)]).replace('orch.home:4747', host);
      const answer = await talk(port, text);
      expect([statusOf(answer), bodyOf(answer).length]).toEqual([400, 0]);
    },
  );
});

describe('an agent', () => {
  it('downloads packages, and no installer, once it is approved', async () => {
    const { fleet, port, placed } = await start();
    const identity = newIdentity();
    const options = { ...credentialsOf(identity.privateKey), ALPNProtocols: ['http/1.1'] };
    const get = async (path: string) => statusOf(await talk(port, request(path), options));
    expect(await get(`/packages/${placed.sha256}`)).toBe(401);
    const agent = await fleet.join(identity);
    expect(await get(`/packages/${placed.sha256}`)).toBe(401);
    await fleet.approve(agent.nodeId, 'web-01');
    expect(await get(`/packages/${placed.sha256}`)).toBe(200);
    expect(await get('/install.sh')).toBe(401);
  });
});

describe('a file beside a module', () => {
  it('is for approved agents alone, whole or from any byte on', async () => {
    const { fleet, port, token } = await start();
    const bytes = randomBytes(FILE_PART_BYTES + 10);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    for (const [offset, end] of [
      [0, FILE_PART_BYTES],
      [FILE_PART_BYTES, bytes.length],
    ] as const) {
      const data = bytes.subarray(offset, end).toString('base64');
      await fleet.moduleFiles.upload(sha256, { size: bytes.length, offset, data });
    }
    const path = `/files/${sha256}`;
    expect(statusOf(await talk(port, request(path)))).toBe(401);
    expect(statusOf(await talk(port, request(path, [bearer((await token()).token)])))).toBe(401);
    const identity = newIdentity();
    const options = { ...credentialsOf(identity.privateKey), ALPNProtocols: ['http/1.1'] };
    const get = (wanted: string, headers: readonly string[] = []) => talk(port, request(wanted, headers), options);
    const agent = await fleet.join(identity);
    expect(statusOf(await get(path))).toBe(401);
    await fleet.approve(agent.nodeId, 'web-01');
    const whole = await get(path);
    expect([statusOf(whole), bodyOf(whole).equals(bytes)]).toEqual([200, true]);
    for (const from of [5, FILE_PART_BYTES + 3, bytes.length]) {
      const rest = await get(path, [`Range: bytes=${from}-`]);
      expect([from, statusOf(rest), bodyOf(rest).equals(bytes.subarray(from))]).toEqual([from, 206, true]);
    }
    const beyond = await get(path, [`Range: bytes=${bytes.length + 1}-`]);
    expect([statusOf(beyond), bodyOf(beyond).length]).toEqual([416, 0]);
    expect(beyond.toString('latin1')).toContain(`Content-Range: bytes */${bytes.length}`);
    expect(statusOf(await get(`/files/${'0'.repeat(64)}`))).toBe(404);
    expect(statusOf(await get(`/files/${sha256}x`))).toBe(404);
    expect(statusOf(await talk(port, request(path, [], 'POST'), options))).toBe(404);
  });
});

describe('the places', () => {
  const hold = async (port: number, text = ''): Promise<TLSSocket> => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    socket.on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    await new Promise((resolve) => socket.once('secureConnect', resolve));
    if (text !== '') socket.write(text);
    return socket.pause();
  };

  it('of silent strangers are few: the oldest makes room, and none of them is an agent’s', async () => {
    const { fleet, port, token } = await start();
    const { token: text } = await token();
    const oldest = await hold(port);
    const closed = new Promise((resolve) => oldest.once('close', resolve));
    oldest.resume();
    for (let count = 0; count < 16; count += 1) await hold(port);
    await closed;
    expect(statusOf(await talk(port, request('/install.sh', [bearer(text)])))).toBe(200);
    const agent = await fleet.join(newIdentity());
    expect(await agent.message(0)).toMatchObject({ type: 'status' });
  });

  it('for downloads are limited, and the next one learns when to come again', async () => {
    const { fleet, port, token } = await start();
    const { token: text } = await token({ uses: 5 });
    // Larger than what the buffers of both ends hold.
    const file = join(temporaryDirectory(), 'noise');
    execFileSync('sh', ['-c', `head -c 40000000 /dev/urandom | gzip -1 >"$1"`, 'sh', file]);
    execFileSync('cp', [file, join(fleet.dataDir, 'packages/orch-0.0.2-linux-x64.tar.gz')]);
    const large = (await fleet.packages.list())[0]?.sha256 ?? '';
    await hold(port, request(`/packages/${large}`, [bearer(text)]));
    await expect
      .poll(async () => (await talk(port, request(`/packages/${'0'.repeat(64)}`, [bearer(text)]))).toString('latin1'))
      .toMatch(/^HTTP\/1\.1 503 [\s\S]*Retry-After: \d+/);
  });
});

describe.runIf(has('curl', '--version') && has('wget', '--version'))('the pasted line (needs curl and wget)', () => {
  const WRONG = `sha256//${'A'.repeat(43)}=`;

  /** Runs a line in a shell without blocking the listener, which is in this process. */
  const run = (
    line: string,
  ): Promise<{ readonly status: number | null; readonly stdout: string; readonly stderr: string }> =>
    new Promise((resolve) => {
      const child = spawn('sh', ['-c', line], { timeout: 20_000 });
      let [stdout, stderr] = ['', ''];
      child.stdout.on('data', (piece) => {
        stdout += piece;
      });
      child.stderr.on('data', (piece) => {
        stderr += piece;
      });
      child.on('close', (status) => resolve({ status, stdout, stderr }));
    });

  /** Returns the line that `orch enroll create` prints, with `cat` in place of the shell that would run what comes. */
  const lineOf = (program: 'curl' | 'wget', { token, place, pin }: Record<'token' | 'place' | 'pin', string>) => {
    const line = linesFor({ token, install: { pin, cpus: ['x64'] } }, place)[program] ?? '';
    expect(line).toMatch(/ \| sh$/);
    return line.replace(/sh$/, 'cat');
  };

  it.each(['curl', 'wget'] as const)('of %s gets the installer from the pinned key alone', async (program) => {
    const { fleet, port, token } = await start();
    const { token: text } = await token();
    const place = `127.0.0.1:${port}`;
    const right = await run(lineOf(program, { token: text, place, pin: pinOf(fleet.identity.publicKey) }));
    expect(right).toMatchObject({ status: 0, stdout: expect.stringMatching(/^#!\/bin\/sh/) });
    expect(right.stderr).not.toContain(text);
    const script = join(temporaryDirectory(), 'install.sh');
    writeFileSync(script, right.stdout);
    expect(await run(`sh -n '${script}'`)).toEqual({ status: 0, stdout: '', stderr: '' });
    const wrong = await run(lineOf(program, { token: text, place, pin: WRONG }));
    expect(wrong.stdout).toMatch(/^echo "orch: nothing was installed, .*exit 1\n$/);
    expect(wrong.stderr).toContain('does not match pinned public key');
  });

  it.each(['curl', 'wget'] as const)('of %s says so when the token has ended, and fails', async (program) => {
    const { fleet, port, token } = await start();
    const ended = `${(await token()).token.slice(0, -1)}!`;
    const line = lineOf(program, { token: ended, place: `127.0.0.1:${port}`, pin: pinOf(fleet.identity.publicKey) });
    const { status, stderr, stdout } = await run(line.replace(/cat$/, 'sh'));
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toContain('orch: nothing was installed, because the token has ended or another key answered\n');
  });

  it('does nothing when the download was cut anywhere', async () => {
    const { fleet, port, token } = await start();
    const { stdout } = await run(
      lineOf('curl', {
        token: (await token()).token,
        place: `127.0.0.1:${port}`,
        pin: pinOf(fleet.identity.publicKey),
      }),
    );
    const file = join(temporaryDirectory(), 'cut');
    for (const end of [
      40,
      700,
      2500,
      stdout.length - 4,
      stdout.lastIndexOf('{ install_orch'),
      stdout.lastIndexOf('"$@"'),
    ]) {
      writeFileSync(file, stdout.slice(0, end));
      const { stdout: said } = await run(`env -i PATH=/nonexistent /bin/sh '${file}'`);
      expect(said).toBe('');
    }
  });
});
