/** How the agent connects to targets: those that do not answer, are no sockets, or lie behind links. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectTarget } from '../../src/agent/forward/connect-target.js';
import { until } from '../support/until.js';

const never = new AbortController().signal;

/** Accepts nothing: its queue of connections takes two. It blocks before it could take one from there; a pipe is written at once. */
const DEAF =
  "const server = require('node:net').createServer();" +
  "server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => {" +
  '  console.log(server.address().port);' +
  '  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);' +
  '});';

/** Returns the port of a listener whose queue is full, so that the system answers no further connection. */
async function deafPort(): Promise<number> {
  const child = spawn(process.execPath, ['-e', DEAF], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  const port = Number(String(line));
  const sockets = Array.from({ length: 4 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  await until(() => sockets.filter(({ connecting }) => !connecting).length === 2, 'the queue is full');
  return port;
}

describe('a target that does not answer', () => {
  it('is given up after a while', async () => {
    const target = { host: '127.0.0.1', port: await deafPort() };
    await expect(connectTarget(target, never)).rejects.toThrow(
      `cannot connect to 127.0.0.1:${target.port}: it does not answer`,
    );
  });

  it('is given up at once when the connection is no longer wanted', async () => {
    const target = { host: '127.0.0.1', port: await deafPort() };
    const wanted = new AbortController();
    const attempt = connectTarget(target, wanted.signal);
    wanted.abort();
    await expect(attempt).rejects.toThrow('the attempt was given up');
    await expect(connectTarget(target, wanted.signal)).rejects.toThrow('the attempt was given up');
  });
});

describe('the path of a Unix socket', () => {
  const place = () => {
    const directory = mkdtempSync(join(tmpdir(), 'orch-target-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    return (name: string) => join(directory, name);
  };

  it('is refused when it or a directory of it is a link, and when it is no socket', async () => {
    const path = place();
    const server = createServer((socket) => socket.end()).listen(path('real'));
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    symlinkSync(path('real'), path('link'));
    symlinkSync(path('.'), path('directory'));
    writeFileSync(path('file'), '');
    const refusal = (name: string) => expect(connectTarget({ path: path(name) }, never)).rejects;
    await refusal('link').toThrow('it is a link; name the socket itself');
    await refusal('directory/real').toThrow(`it is a link or lies behind one; name ${path('real')} instead`);
    await refusal('file').toThrow('nothing listens there');
    await refusal('none').toThrow('there is no such socket');
    const socket = await connectTarget({ path: path('real') }, never);
    socket.destroy();
  });
});
