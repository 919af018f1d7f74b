import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import type { ApiClient } from '../../src/client/api-client.js';
import { type Connection, resolveConnection } from '../../src/client/connection.js';
import { connect } from '../../src/client/http-api-client.js';
import type { Signer } from '../../src/client/login.js';
import type { Environment } from '../../src/client/operator-files.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { signNonce } from '../../src/identity/login-binding.js';
import { generateKey } from '../../src/identity/private-key.js';
import { Fault } from '../../src/kernel/fault.js';
import { clock } from '../http/tiny-api.js';
import { type TestServer, temporaryDirectory } from './server.js';

export interface ClientOptions extends Partial<Omit<Connection, 'url'>> {
  readonly signer?: () => Promise<Signer>;
  readonly warnings?: string[];
}

export function newSigner(): Signer {
  const key = generateKey();
  return { publicKey: publicKeyOfKeyObject(key), sign: async (nonce) => signNonce(key, nonce) };
}

/** Home and state of a person who has nothing yet. */
export const newHome = (): Environment => ({ HOME: temporaryDirectory() });

/** A client of a URL, with a home and a key of its own unless they are given. */
export function clientOf(url: string, options: ClientOptions = {}): ApiClient {
  const { signer, warnings, ...changes } = options;
  const env = options.env ?? newHome();
  const resolved = resolveConnection({
    flags: { url },
    env,
    profiles: { path: '/nowhere', standard: null, byName: {} },
  });
  const own = newSigner();
  const client = connect({
    connection: { ...resolved, ...changes },
    signer: signer ?? (async () => own),
    clock,
    newId: randomUUID,
    warn: (message) => warnings?.push(message),
  });
  onTestFinished(() => client.close());
  return client;
}

/** A client that pins the server as it is. */
export const pinned = ({ url, api }: TestServer, options: ClientOptions = {}): ApiClient =>
  clientOf(url, { pin: api.fingerprint, ...options });

/** The fault that a promise rejects with. */
export async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}
