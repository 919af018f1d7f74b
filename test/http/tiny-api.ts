import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ulid } from 'ulid';
import { onTestFinished } from 'vitest';
import { openDatabase } from '../../daemon/database/database.js';
import type { Authenticate, Session } from '../../daemon/http/access.js';
import type { HttpLimits } from '../../daemon/http/api-listener.js';
import { type ApiServer, createApiServer } from '../../daemon/http/api-server.js';
import type { HandlersFor } from '../../daemon/http/handler.js';
import {
  completeIdempotencyKey,
  type IdempotencyKeys,
  releaseIdempotencyKey,
  reserveIdempotencyKey,
} from '../../daemon/http/idempotency.js';
import type { StreamDoor } from '../../daemon/http/upgrades.js';
import type { Operator, Role } from '../../src/contract/operators.js';
import { selfSignedP256 } from '../../src/identity/certificate.js';
import { generateKey } from '../../src/identity/private-key.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import { type Logger, silentLogger } from '../../src/kernel/logger.js';
import { TINY, type Tiny } from './tiny-contract.js';

export const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

export function operator(role: Role): Operator {
  return {
    operator_id: { admin: 'a', operator: '0', viewer: '1' }[role].repeat(32),
    username: role,
    role,
    bootstrap: false,
    added_at: 1,
    added_by: 'system',
    removed_at: null,
    removed_by: null,
    public_key: '',
  };
}

/** The token of a role is its name. */
export async function authenticate(token: string): Promise<Session | null> {
  const role = (['admin', 'operator', 'viewer'] as const).find((name) => name === token);
  return role ? { operator: operator(role), expiresAt: 9_999_999_999 } : null;
}

export function authorize(access: string, { role }: Operator): void {
  if (access === 'admin' && role !== 'admin') throw new Fault('admin_required', 'this needs the role admin');
  if (access === 'operator' && role === 'viewer') throw new Fault('role_forbidden', 'a viewer may not do this');
}

export function tlsFiles() {
  const privateKey = generateKey('p256');
  const cert = selfSignedP256({ privateKey, dnsNames: ['localhost'], addresses: ['127.0.0.1'] });
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

/** Answers with what came in; a test replaces the handlers that it is about. */
export const echo: HandlersFor<Tiny> = {
  dumpItems: async () => ({ status: 200, body: 'everything' }),
  ping: async ({ context }) => ({ status: 200, body: { pong: true, address: context.address } }),
  listItems: async ({ query }) => ({ status: 200, body: { query } }),
  getItem: async ({ params }) => ({ status: 200, body: { name: params.name, size: 1 } }),
  putItem: async ({ params, body }) => ({ status: 200, body: { params, body } }),
  removeItem: async () => ({ status: 204, body: undefined }),
  run: async ({ body }) => ({ status: 200, body: { name: body.name ?? 'nobody', size: 1 } }),
};

/** The real store's keys, in a database that goes away with the test. */
export async function storedKeys(): Promise<IdempotencyKeys> {
  const directory = mkdtempSync(join(tmpdir(), 'orch-http-'));
  const { db, close } = await openDatabase({
    file: join(directory, 'orch.db'),
    logger: silentLogger,
    onFatal: () => {},
  });
  onTestFinished(async () => {
    await close();
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    hashKey: Buffer.alloc(32, 7),
    reserve: (request, validSince) => reserveIdempotencyKey(db, request, validSince),
    complete: (slot, answer) => completeIdempotencyKey(db, slot, answer),
    release: (slot) => releaseIdempotencyKey(db, slot),
  };
}

/** For tests that send no key. */
export const noKeys: IdempotencyKeys = {
  hashKey: Buffer.alloc(32),
  reserve: async () => null,
  complete: async () => {},
  release: async () => {},
};

export interface TinyOptions {
  readonly handlers?: Partial<HandlersFor<Tiny>>;
  readonly limits?: Partial<HttpLimits>;
  readonly tls?: ReturnType<typeof tlsFiles> | null;
  readonly trustProxyTls?: boolean;
  readonly validateAnswers?: boolean;
  readonly idempotency?: IdempotencyKeys;
  readonly logger?: Logger;
  readonly host?: string;
  readonly streams?: StreamDoor;
  readonly authenticate?: Authenticate;
}

/** A running API with the tiny contract, stopped with the test. Plain HTTP unless told otherwise. */
export async function startTiny(options: TinyOptions = {}): Promise<ApiServer> {
  const api = createApiServer({
    contract: TINY,
    handlers: { ...echo, ...options.handlers },
    authenticate: options.authenticate ?? authenticate,
    authorize,
    idempotency: options.idempotency ?? noKeys,
    logger: options.logger ?? silentLogger,
    clock,
    newRequestId: () => ulid(),
    listen: { host: options.host ?? '127.0.0.1', port: 0 },
    tls: options.tls ?? null,
    limits: { drainMs: 2_000, ...options.limits },
    trustProxyTls: options.trustProxyTls ?? false,
    validateAnswers: options.validateAnswers ?? true,
    ...(options.streams ? { streams: options.streams } : {}),
  });
  await api.start();
  onTestFinished(() => api.stop());
  return api;
}
