/** Logs in: a challenge that is bound to this server, a signature, a token. */
import { isBoundNonce } from '../identity/login-binding.js';
import { Fault, isFault } from '../kernel/fault.js';
import { BASE, CALLS } from './calls.js';
import { readSuccess } from './read-answer.js';
import { jsonHeaders } from './request-headers.js';
import { urlText } from './server-url.js';
import type { Signer } from './signer.js';
import type { Token } from './token-cache.js';
import type { Transport, TransportAnswer } from './transport.js';
import { notOurs } from './unreachable.js';

export interface LoginOptions {
  readonly transport: Transport;
  readonly url: URL;
  readonly signer: Signer;
  /** Sign even what is not bound to this server. */
  readonly allowUnbound: boolean;
  warn(message: string): void;
}

/**
 * @throws Fault `login_unbound` before anything is signed, the server's `unknown_operator`, `rate_limited`, …, and what the
 * transport throws
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

/** A nonce of another server would log an attacker in there: that is what the binding shows. */
function requireBound(nonce: Uint8Array, serverSpki: Uint8Array | null, options: LoginOptions): void {
  const { allowUnbound, signer, url, warn } = options;
  if (isBoundNonce(nonce, signer.publicKey, serverSpki)) return;
  const what = `the login nonce of ${urlText(url)} is not bound to the certificate that it shows`;
  if (allowUnbound) {
    warn(`${what}; signed all the same, because unbound logins are allowed here`);
    return;
  }
  throw new Fault('login_unbound', `${what}; nothing was signed`, {
    hint: 'somebody may be in between; for a server behind a proxy set api_spki there, or use --allow-unbound-login here',
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
