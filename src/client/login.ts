/** Logs in with the operator's key: a challenge bound to this server, a signature, a session token. */

import type { KeyObject } from 'node:crypto';
import { publicKeyOfKeyObject } from '../identity/key-object.js';
import { isBoundNonce, signNonce } from '../identity/login-binding.js';
import { loadKey, parsePrivateKey } from '../identity/private-key.js';
import { Fault, isFault, systemCodeOf } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import { BASE, CALLS } from './calls.js';
import type { KeySource } from './connection.js';
import { jsonHeaders, readSuccess } from './http-messages.js';
import { urlText } from './server-url.js';
import type { Token } from './session.js';
import type { Transport, TransportAnswer } from './transport.js';
import { notOurs } from './unreachable.js';

interface LoginOptions {
  readonly transport: Transport;
  readonly url: URL;
  readonly signer: Signer;
  /** Signs even a nonce that is not bound to this server. */
  readonly allowUnbound: boolean;
  warn(message: string): void;
}

/**
 * Logs in and returns the session token.
 * @throws Fault `login_unbound` before anything is signed, the server's `unknown_operator`, `rate_limited`, …, and the
 * transport's faults
 */
export async function logIn(options: LoginOptions): Promise<Token> {
  const { signer, url } = options;
  const challenge = await post(options, CALLS.createChallenge.path, { public_key: signer.publicKey });
  const nonce = nonceOf(await readAsOperator(challenge, options), url);
  requireBound(nonce, challenge.serverSpki, options);
  const signature = await signer.sign(nonce);
  const verified = await post(options, CALLS.verifyChallenge.path, { public_key: signer.publicKey, signature });
  return tokenOf(await readAsOperator(verified, options), url);
}

const post = ({ transport }: LoginOptions, path: string, body: object): Promise<TransportAnswer> =>
  transport.request({
    method: 'POST',
    path: BASE + path,
    headers: jsonHeaders,
    body: JSON.stringify(body),
    signal: undefined,
  });

async function readAsOperator(answer: TransportAnswer, { signer, url }: LoginOptions): Promise<unknown> {
  try {
    return await readSuccess(answer, url);
  } catch (error) {
    if (!isFault(error, 'unknown_operator')) throw error;
    throw new Fault('unknown_operator', `${urlText(url)} does not know your key ${signer.publicKey}`, {
      hint: `an admin adds you with: orch operator add ${signer.publicKey} --username NAME`,
      data: { ...error.data, public_key: signer.publicKey },
    });
  }
}

/** Throws `login_unbound` for a nonce of another server, with which an attacker could log in there. */
function requireBound(nonce: Uint8Array, serverSpki: Uint8Array | null, options: LoginOptions): void {
  const { allowUnbound, signer, url, warn } = options;
  if (isBoundNonce(nonce, signer.publicKey, serverSpki)) return;
  const what = `the login nonce of ${urlText(url)} is not bound to the certificate that it shows`;
  if (allowUnbound) {
    warn(`${what}; signed all the same, because unbound logins are allowed here`);
    return;
  }
  throw new Fault('login_unbound', `${what}; nothing was signed`, {
    hint: 'another machine may be intercepting the connection; for a server behind a proxy set api_spki there, or use --allow-unbound-login here',
    data: { url: urlText(url) },
  });
}

function nonceOf(body: unknown, url: URL): Buffer {
  const nonce = isObject(body) ? body.nonce : undefined;
  if (typeof nonce === 'string' && /^[0-9a-f]{64}$/i.test(nonce)) return Buffer.from(nonce, 'hex');
  throw notOurs(url, 200, 'with a challenge that has no nonce');
}

function tokenOf(body: unknown, url: URL): Token {
  if (isObject(body) && typeof body.token === 'string' && typeof body.expires_at === 'number') {
    return { token: body.token, expiresAt: body.expires_at };
  }
  throw notOurs(url, 200, 'with a login that has no token');
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** A signing key; the private half may be outside this process. */
export interface Signer {
  readonly publicKey: PublicKeyHex;
  /** Signs the 32 bytes of a login nonce and returns 128 hex digits. */
  sign(nonce: Uint8Array): Promise<string>;
}

/**
 * Opens the signer of a key that is a file or a text; `openAgentSigner` opens one of an ssh-agent. Throws `key_unreadable`, `key_permissions` or `key_invalid`. For an encrypted key,
 * recognised by `wantsPassphrase`, the caller asks and calls again with the passphrase.
 */
export function openSigner(source: KeySource, passphrase?: string): Signer {
  const key = open(source, passphrase);
  return { publicKey: publicKeyOfKeyObject(key), sign: async (nonce) => signNonce(key, nonce) };
}

function open(source: KeySource, passphrase: string | undefined): KeyObject {
  if (source.kind === 'agent') throw new Fault('key_unreadable', `an ssh-agent keeps the key of ${source.from}`);
  if (source.kind === 'pem') return parsePrivateKey(source.pem, { source: source.from, passphrase });
  try {
    return loadKey(source.path, { passphrase });
  } catch (error) {
    if (!isFault(error, 'key_unreadable') || systemCodeOf(error.cause) !== 'ENOENT') throw error;
    throw new Fault('key_unreadable', `there is no operator key at ${source.path} (from ${source.from})`, {
      hint: 'make one with: orch operator init, or name another one with --key-file',
      cause: error.cause,
    });
  }
}
