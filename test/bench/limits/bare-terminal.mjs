/**
 * The limit of a remote terminal in Node: a shell, a relay and a client, three processes joined by WebSockets over TLS, and
 * nothing else: no offsets, windows, recording, screen, logins or resuming. Run without arguments, on a terminal, it starts
 * the other two and is the client.
 */
import { fork } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:https';
import { userInfo } from 'node:os';
import { fileURLToPath } from 'node:url';
import nodePty from 'node-pty';
import { WebSocket, WebSocketServer } from 'ws';
import { selfSignedEd25519 } from '../../../dist/src/identity/certificate.js';

/** More unsent than that stops the reading, in bytes. */
const MOST_UNSENT = 1024 * 1024;
const OPTIONS = { perMessageDeflate: false };
const THIS = fileURLToPath(import.meta.url);

const [role, port] = process.argv.slice(2);
if (role === 'relay') relay();
else if (role === 'host') host();
else await client();

function relay() {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { certPem } = selfSignedEd25519(privateKey);
  const server = createServer({ key: privateKey.export({ type: 'pkcs8', format: 'pem' }), cert: certPem });
  const ends = [];
  new WebSocketServer({ server, ...OPTIONS }).on('connection', (socket) => {
    ends.push(socket);
    if (ends.length < 2) {
      socket.pause();
      return;
    }
    const [first, second] = ends;
    join(first, second);
    join(second, first);
    first.resume();
  });
  server.on('secureConnection', (socket) => socket.setNoDelay(true));
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
}

function join(from, to) {
  from.on('message', (data) => send(to, data, from));
  from.on('close', () => to.close());
}

function send(socket, data, source) {
  const isFull = socket.bufferedAmount > MOST_UNSENT;
  if (isFull) source.pause();
  socket.send(data, isFull ? () => source.resume() : undefined);
}

function dial(at) {
  const socket = new WebSocket(`wss://127.0.0.1:${at}`, { rejectUnauthorized: false, ...OPTIONS });
  socket.on('upgrade', (response) => response.socket.setNoDelay(true));
  socket.on('close', () => process.exit());
  return socket;
}

function host() {
  const socket = dial(port);
  socket.on('open', () => {
    const shell = nodePty.spawn(userInfo().shell ?? '/bin/sh', ['-l'], { name: 'xterm-256color', encoding: null });
    shell.onData((data) => send(socket, data, shell));
    shell.onExit(() => socket.close());
    socket.on('message', (data) => shell.write(data));
  });
}

async function client() {
  const children = [fork(THIS, ['relay'])];
  const at = await new Promise((resolve) => children[0].once('message', resolve));
  children.push(fork(THIS, ['host', String(at)]));
  process.on('exit', () => {
    for (const child of children) child.kill();
  });
  for (const signal of ['SIGHUP', 'SIGTERM']) process.on(signal, () => process.exit());
  process.stdin.setRawMode(true);
  const socket = dial(at);
  socket.on('open', () => process.stdin.on('data', (data) => socket.send(data)));
  socket.on('message', (data) => {
    if (process.stdout.write(data)) return;
    socket.pause();
    process.stdout.once('drain', () => socket.resume());
  });
}
