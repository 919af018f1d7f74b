/** Who has no login must not keep out those who have, nor keep the orchestrator busy: a real orchestrator under a flood. */
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signNonce } from '../../src/identity/login-binding.js';
import { send } from '../api/api-request.js';
import { newPerson } from '../api/world.js';
import { Sandbox } from '../support/orch.js';

const sandbox = new Sandbox();
let base = '';
const admin = newPerson();

beforeAll(async () => {
  const first = { ORCH_SERVE_BOOTSTRAP_KEY: admin.publicKey, ORCH_SERVE_BOOTSTRAP_USERNAME: 'root' };
  const { ready } = await sandbox.serve([], first);
  base = ready.api_url;
});
afterAll(() => sandbox.dispose());

const post = (path: string, body: object) =>
  send(base, {
    method: 'POST',
    path: `/api/v1/auth/${path}`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const challenge = async (): Promise<string> => (await post('challenge', { public_key: admin.publicKey })).json.nonce;
const verify = (signature: string) => post('verify', { public_key: admin.publicKey, signature });
const sign = (nonce: string) => signNonce(admin.key, Buffer.from(nonce, 'hex'));

/** Sends bytes on a connection of its own and returns what comes back until the server closes it. */
function sendRaw(text: string): Promise<string> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => socket.write(text));
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
  });
}

const head = (path: string, ...headers: readonly string[]) =>
  [`POST /api/v1/auth/${path} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', ...headers, '', ''].join('\r\n');

describe('a large body without a login', () => {
  it.each(['challenge', 'verify'])('is refused at %s before a byte of it is read', async (path) => {
    expect(await sendRaw(head(path, 'Content-Length: 1750000'))).toMatch(
      /^HTTP\/1.1 413 [\s\S]*"code":"body_too_large"/,
    );
  });

  it('is refused when it comes in pieces, after the first few KiB', async () => {
    const piece = `2000\r\n${'x'.repeat(0x2000)}\r\n`;
    const answer = await sendRaw(head('challenge', 'Transfer-Encoding: chunked') + piece);
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
  });
});

describe('a right signature', () => {
  it('gets in beside fifty others of the same key', async () => {
    const nonces = await Promise.all(Array.from({ length: 50 }, challenge));
    const answers = await Promise.all(nonces.map((nonce) => verify(sign(nonce))));
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200));
    expect(new Set(answers.map(({ json }) => json.token)).size).toBe(50);
  });

  it('gets in whatever others of its address do with its key, which have to wait', async () => {
    for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 40 }, challenge));
    const started = performance.now();
    const wrong = await Promise.all(Array.from({ length: 150 }, () => verify('ab'.repeat(64))));
    // Ten in each minute that the requests took: a busy machine needs more than one for them.
    const minutes = Math.ceil((performance.now() - started) / 60_000);
    const compared = wrong.filter(({ status }) => status === 401).length;
    expect(compared).toBeGreaterThanOrEqual(10);
    expect(compared).toBeLessThanOrEqual(10 * minutes);
    expect(wrong.filter(({ status }) => status === 429)).toHaveLength(150 - compared);
    const strangers = await Promise.all(
      Array.from({ length: 150 }, () => post('challenge', { public_key: newPerson().publicKey })),
    );
    expect(strangers).toContainEqual(expect.objectContaining({ status: 429 }));
    // A nonce outlives 15 seconds of a flood, so that these few challenges cannot end it.
    const held = await challenge();
    await Promise.all(Array.from({ length: 40 }, challenge));
    expect((await verify(sign(held))).status).toBe(200);
    expect((await verify(sign(await challenge()))).status).toBe(200);
  });
});
