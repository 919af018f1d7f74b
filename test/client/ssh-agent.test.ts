/** Logins with keys that a real ssh-agent keeps. */
import { execFileSync, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished } from 'vitest';
import { openAgentSigner } from '../../src/client/ssh-agent.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { importOpensshKey } from '../../src/identity/openssh.js';
import { verifySignature } from '../../src/identity/proof-of-key.js';
import { runOrch } from '../support/cli.js';
import { startServer, temporaryDirectory } from '../support/client.js';
import { itNeeding } from '../support/needing.js';
import { until } from '../support/until.js';

const itWithAgent = itNeeding('ssh-agent', 'ssh-add', 'ssh-keygen');

/** An ssh-agent of its own, without keys. */
async function startAgent() {
  const directory = temporaryDirectory();
  const socket = join(directory, 'agent');
  const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
  onTestFinished(() => void agent.kill());
  const env = { HOME: directory, PATH: process.env.PATH ?? '', SSH_AUTH_SOCK: socket };
  const add = (path: string) => execFileSync('ssh-add', ['-q', path], { env, stdio: 'pipe' });
  await until(() => {
    try {
      execFileSync('ssh-add', ['-l'], { env, stdio: 'pipe' });
      return true;
    } catch (error) {
      // 1: there is an agent, and it has no key.
      return error instanceof Error && 'status' in error && error.status === 1;
    }
  }, 'the ssh-agent answers');
  const newKey = (name: string, type = 'ed25519') => {
    const path = join(directory, name);
    execFileSync('ssh-keygen', ['-q', '-t', type, '-N', '', '-C', name, '-f', path], { stdio: 'pipe' });
    return path;
  };
  /** Makes a key, gives it to the agent, and deletes its file. */
  const keep = (name: string, type?: string) => {
    const path = newKey(name, type);
    const publicKey = type === undefined ? publicKeyOfKeyObject(importOpensshKey(path)) : '';
    add(path);
    rmSync(path);
    return publicKey;
  };
  return { env, keep };
}

describe('an ssh-agent', () => {
  itWithAgent('logs an operator in with its only Ed25519 key', async () => {
    const { env, keep } = await startAgent();
    keep('rsa', 'rsa');
    const publicKey = keep('mine');
    const server = await startServer();
    const argv = ['login', '--url', server.url, '--tls-fingerprint', server.api.fingerprint ?? ''];
    expect(await runOrch([...argv, '--ssh-agent'], { env })).toMatchObject({ status: 0, stderr: '' });
    expect(await runOrch(argv, { env: { ...env, ORCH_SSH_AGENT: publicKey } })).toMatchObject({ status: 0 });
    const signer = await openAgentSigner(null, env);
    expect(signer.publicKey).toBe(publicKey);
    const nonce = Buffer.alloc(32, 7);
    expect(verifySignature(signer.publicKey, nonce, await signer.sign(nonce))).toBe(true);
  });

  itWithAgent('with several keys needs the public key or the comment of one', async () => {
    const { env, keep } = await startAgent();
    const [first, second] = [keep('first'), keep('second')];
    await expect(openAgentSigner(null, env)).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringContaining(`${second}  second`),
    });
    expect((await openAgentSigner('second', env)).publicKey).toBe(second);
    expect((await openAgentSigner(first, env)).publicKey).toBe(first);
    await expect(openAgentSigner('third', env)).rejects.toMatchObject({
      code: 'key_unreadable',
      message: 'the ssh-agent has no Ed25519 key "third"',
      hint: expect.stringContaining(first),
    });
  });

  itWithAgent('without a key, or none at all, is said', async () => {
    const { env } = await startAgent();
    await expect(openAgentSigner(null, env)).rejects.toMatchObject({ hint: expect.stringContaining('ssh-add') });
    await expect(openAgentSigner(null, {})).rejects.toMatchObject({
      message: expect.stringContaining('SSH_AUTH_SOCK is not set'),
    });
    await expect(openAgentSigner(null, { SSH_AUTH_SOCK: '/no/such/socket' })).rejects.toMatchObject({
      code: 'key_unreadable',
      message: expect.stringContaining('cannot be reached at /no/such/socket'),
    });
  });
});
