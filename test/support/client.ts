import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ulid } from 'ulid';
import { onTestFinished } from 'vitest';
import { Rights } from '../../daemon/core/rights.js';
import { type ApiServer, createApiServer } from '../../daemon/http/api-server.js';
import type { HandlersFor } from '../../daemon/http/handler.js';
import type { ApiClient } from '../../src/client/api-client.js';
import { type Connection, resolveConnection } from '../../src/client/connection.js';
import { connect } from '../../src/client/http-api-client.js';
import type { Signer } from '../../src/client/login.js';
import type { Environment } from '../../src/client/operator-files.js';
import { CONTRACT } from '../../src/contract/contract.js';
import type { Operator } from '../../src/contract/operators.js';
import type { RunResult } from '../../src/contract/runs.js';
import { operatorIdOf, publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { makeBoundNonce, signNonce } from '../../src/identity/login-binding.js';
import { generateKey } from '../../src/identity/private-key.js';
import { verifySignature } from '../../src/identity/proof-of-key.js';
import { parsePublicKey } from '../../src/identity/public-key.js';
import { Fault } from '../../src/kernel/fault.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { authorize, authorizeOn, clock, type StoredKeys, storedKeys, tlsFiles } from './http.js';

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

const { getStatus, createChallenge, verifyChallenge, getSession, endSession } = CONTRACT;
const { getAgentAttributes, getAgent, setTag, removeTag, planAgent, applyAgent, listAgents } = CONTRACT;
export const SERVED = {
  getStatus,
  createChallenge,
  verifyChallenge,
  getSession,
  endSession,
  getAgentAttributes,
  getAgent,
  listAgents,
  setTag,
  removeTag,
  planAgent,
  applyAgent,
};
export type Served = typeof SERVED;

export interface TestServer {
  readonly api: ApiServer;
  readonly url: string;
  /** Tokens that are good now. Clearing it ends every session. */
  readonly sessions: Map<string, Operator>;
  /** Requests by route, in order. */
  readonly seen: string[];
  /** Commits something for a request, so that its key is kept. */
  readonly begin: StoredKeys['begin'];
}

export interface TestServerOptions {
  readonly handlers?: Partial<HandlersFor<Served>>;
  readonly tls?: ReturnType<typeof tlsFiles> | null;
  /** SPKI hash that nonces are bound to: its own unless given. */
  readonly boundTo?: Buffer | null;
  readonly port?: number;
  /** Told of each token that is not good. */
  readonly onRefusal?: () => void;
}

export const testOperator: Operator = {
  operator_id: '0'.repeat(32),
  username: 'tester',
  role: 'admin',
  bootstrap: false,
  added_at: 1,
  added_by: 'system',
  removed_at: null,
  removed_by: null,
  public_key: '0'.repeat(64),
};

export const result: RunResult = {
  operation_id: null,
  node_id: '0'.repeat(32),
  status: 'succeeded',
  has_changes: false,
  modules: [],
  started_at: 1,
  finished_at: 2,
  summary: { total: 0, unchanged: 0, pending: 0, changed: 0, failed: 0, skipped: 0, removed: 0 },
  resources: [],
  warnings: [],
  plan_hash: null,
  error: null,
};

/** A real API over real TLS with real logins, and handlers of a line each. Every key may log in. */
export async function startServer(options: TestServerOptions = {}): Promise<TestServer> {
  const sessions = new Map<string, Operator>();
  const challenges = new Map<string, Buffer>();
  const seen: string[] = [];
  const tls = options.tls === undefined ? tlsFiles() : options.tls;
  const missing = async (): Promise<never> => {
    throw new Fault('agent_not_found', 'there is no such agent');
  };
  const handlers: HandlersFor<Served> = {
    getStatus: async () => ({
      status: 200,
      body: {
        status: 'ok',
        protocol_version: 1,
        public_key: '0'.repeat(64),
        version: '0.1.0',
        reasons: [],
      },
    }),
    createChallenge: async ({ body }) => {
      const operatorKey = parsePublicKey(body.public_key);
      const own = api.fingerprint === null ? null : Buffer.from(api.fingerprint, 'hex');
      const serverSpki = options.boundTo === undefined ? own : options.boundTo;
      const nonce = makeBoundNonce({ random16: randomBytes(16), operatorKey, serverSpki });
      challenges.set(operatorKey, nonce);
      return { status: 200, body: { nonce: nonce.toString('hex') } };
    },
    verifyChallenge: async ({ body }) => {
      const key = parsePublicKey(body.public_key);
      const nonce = challenges.get(key);
      challenges.delete(key);
      if (!nonce || !verifySignature(key, nonce, body.signature)) {
        throw new Fault('signature_verification_failed', 'the signature does not fit');
      }
      const token = `orch_st_${randomBytes(16).toString('hex')}`;
      sessions.set(token, { ...testOperator, operator_id: operatorIdOf(key), public_key: key });
      return { status: 200, body: { token, expires_at: Math.floor(Date.now() / 1000) + 3600 } };
    },
    getSession: async ({ operator }) => ({ status: 200, body: { operator, expires_at: 9_999_999_999 } }),
    endSession: async ({ token }) => {
      sessions.delete(token);
      return { status: 204, body: undefined };
    },
    getAgentAttributes: async ({ params }) => ({ status: 200, body: { id: params.node_id } }),
    getAgent: missing,
    listAgents: async () => ({ status: 200, body: [], headers: { link: '<next>; rel="next"' } }),
    setTag: async () => ({ status: 204, body: undefined }),
    removeTag: missing,
    planAgent: async () => ({ status: 200, body: result }),
    applyAgent: async () => ({ status: 200, body: result }),
    ...options.handlers,
  };
  const counted = Object.fromEntries(
    Object.entries(handlers).map(([id, handler]) => [
      id,
      (call: never) => {
        seen.push(id);
        return handler(call);
      },
    ]),
  ) as unknown as HandlersFor<Served>;
  const idempotency = await storedKeys();
  const api = createApiServer({
    contract: SERVED,
    handlers: counted,
    authenticate: async (token) => {
      const operator = sessions.get(token);
      if (!operator) options.onRefusal?.();
      return operator ? { operator, rights: new Rights(operator.role, null), expiresAt: 9_999_999_999 } : null;
    },
    authorize,
    authorizeOn,
    idempotency,
    logger: silentLogger,
    clock,
    newRequestId: () => ulid(),
    listen: { host: '127.0.0.1', port: options.port ?? 0 },
    tls,
    limits: { drainMs: 1_000 },
    trustProxyTls: false,
    validateAnswers: true,
  });
  await api.start();
  onTestFinished(() => api.stop());
  return {
    api,
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${api.address().port}`,
    sessions,
    seen,
    begin: idempotency.begin,
  };
}

/** An empty directory that goes away with the test. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'orch-client-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
