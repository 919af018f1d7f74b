import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as Type from 'typebox';
import { ulid } from 'ulid';
import { onTestFinished } from 'vitest';
import { authorize } from '../../daemon/auth/auth-routes.js';
import { type EventType, eventOfRequest, type RequestContext, SYSTEM } from '../../daemon/core/domain-event.js';
import { Rights } from '../../daemon/core/rights.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import type { Queryable } from '../../daemon/database/schema.js';
import type { Authenticate } from '../../daemon/http/access.js';
import { type ApiServer, createApiServer } from '../../daemon/http/api-server.js';
import type { HandlersFor } from '../../daemon/http/handler.js';
import type { HttpLimits } from '../../daemon/http/http-limits.js';
import {
  completeIdempotencyKey,
  findIdempotencyKey,
  type IdempotencyKeys,
  KeyedRequests,
} from '../../daemon/http/idempotency.js';
import type { Session } from '../../daemon/http/session.js';
import type { StreamDoor } from '../../daemon/http/upgrades.js';
import type { Operator } from '../../src/contract/operators.js';
import type { Role } from '../../src/contract/rights.js';
import { route } from '../../src/contract/route.js';
import { selfSignedP256 } from '../../src/identity/certificate.js';
import { generateKey } from '../../src/identity/private-key.js';
import type { Clock } from '../../src/kernel/clock.js';
import { type Logger, silentLogger } from '../../src/kernel/logger.js';
import { closed, nullable, optional } from '../../src/kernel/schema.js';
import { openTestDatabase } from './store.js';

export const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

export function operator(role: Role): Operator {
  return {
    operator_id: { admin: 'a', operator: '0', deployer: '2', planner: '3', viewer: '1' }[role].repeat(32),
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
  return role ? { operator: operator(role), rights: new Rights(role, null), expiresAt: 9_999_999_999 } : null;
}

export { authorize };

/** No operator of these tests has grants. */
export const authorizeOn = async (): Promise<void> => undefined;

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

/** The real store's keys, with a way to begin something. */
export interface StoredKeys extends IdempotencyKeys {
  /** Stores an audit event of the request, as a handler does that changes something. */
  begin(context: RequestContext, type?: EventType): Promise<void>;
  readonly db: Queryable;
}

/** The keys of a database that goes away with the test. */
export async function storedKeys(): Promise<StoredKeys> {
  const directory = mkdtempSync(join(tmpdir(), 'orch-http-'));
  const { db, close } = await openTestDatabase({
    file: join(directory, 'orch.db'),
    logger: silentLogger,
    clock: Date,
    onFatal: () => {},
  });
  onTestFinished(async () => {
    await close();
    rmSync(directory, { recursive: true, force: true });
  });
  const running = new KeyedRequests();
  const uow = new TransactionalWriter({
    db,
    clock,
    newId: () => ulid(),
    publish: (event) => running.committed(event),
    onRecorded: (tx, events) => running.record(tx, events),
  });
  return {
    db,
    begin: (context, type = 'module.uploaded') =>
      uow.write(async (_, emit) => emit(eventOfRequest(context, { type, target: SYSTEM, summary: 'x began y' }))),
    hashKey: Buffer.alloc(32, 7),
    running,
    find: (slot, validSince) => findIdempotencyKey(db, slot, validSince),
    complete: (slot, answer) => completeIdempotencyKey(db, slot, answer),
  };
}

/** For tests that send no key. */
export const noKeys: IdempotencyKeys = {
  hashKey: Buffer.alloc(32),
  running: new KeyedRequests(),
  find: async () => null,
  complete: async () => {},
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

/** A running API with the tiny contract, stopped with the test. Plain HTTP by default. */
export async function startTiny(options: TinyOptions = {}): Promise<ApiServer> {
  const api = createApiServer({
    contract: TINY,
    handlers: { ...echo, ...options.handlers },
    authenticate: options.authenticate ?? authenticate,
    authorize,
    authorizeOn: async () => undefined,
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

const Item = closed({ name: Type.String(), size: Type.Integer() });

/** One route for each thing that the adapter has to do. */
export const TINY = {
  ping: route({
    id: 'ping',
    summary: 'public',
    tag: 'tiny',
    method: 'GET',
    path: '/ping',
    access: 'public',
    answers: { 200: closed({ pong: Type.Boolean(), address: nullable(Type.String()) }) },
    faults: ['rate_limited', 'signature_verification_failed'],
  }),
  listItems: route({
    id: 'listItems',
    summary: 'query',
    tag: 'tiny',
    method: 'GET',
    path: '/items',
    access: 'read',
    query: closed({
      limit: optional(Type.Integer({ minimum: 1 })),
      deep: optional(Type.Boolean()),
      ratio: optional(Type.Number()),
      sort: optional(Type.Enum(['up', 'down'])),
      filter: optional(Type.String()),
    }),
    answers: { 200: Type.Record(Type.String(), Type.Unknown()) },
    faults: [],
  }),
  getItem: route({
    id: 'getItem',
    summary: 'path parameter',
    tag: 'tiny',
    method: 'GET',
    path: '/items/{name}',
    access: 'read',
    params: closed({ name: Type.String({ minLength: 1, maxLength: 128 }) }),
    answers: { 200: Item },
    stream: Type.Union([
      closed({ event: Type.Literal('piece'), piece: Type.String() }),
      closed({ event: Type.Literal('result'), result: Item }),
    ]),
    faults: ['module_not_found', 'module_in_use'],
  }),
  putItem: route({
    id: 'putItem',
    summary: 'body',
    tag: 'tiny',
    method: 'PUT',
    path: '/items/{name}',
    access: 'apply',
    params: closed({ name: Type.String({ minLength: 1, maxLength: 128 }) }),
    body: closed({
      size: Type.Integer({ minimum: 0 }),
      note: optional(Type.String()),
      tags: optional(Type.Record(Type.String(), Type.Unknown())),
      parts: optional(Type.Array(closed({ id: Type.String(), label: optional(Type.String()) }))),
    }),
    answers: { 200: Type.Record(Type.String(), Type.Unknown()) },
    faults: [],
  }),
  dumpItems: route({
    id: 'dumpItems',
    summary: 'no JSON, in pieces, and deprecated',
    deprecated: { since: '2026-03-01', sunset: '2026-12-01', instead: 'Use `listItems`.' },
    tag: 'tiny',
    method: 'GET',
    path: '/dump',
    access: 'read',
    mediaType: 'text/x-dump',
    answers: { 200: Type.String() },
    faults: ['module_not_found'],
  }),
  removeItem: route({
    id: 'removeItem',
    summary: 'no body at all',
    tag: 'tiny',
    method: 'DELETE',
    path: '/items/{name}',
    access: 'admin',
    params: closed({ name: Type.String({ minLength: 1, maxLength: 128 }) }),
    answers: { 204: null },
    faults: ['module_not_found'],
  }),
  run: route({
    id: 'run',
    summary: 'every member optional, streams',
    tag: 'tiny',
    method: 'POST',
    path: '/run',
    access: 'apply',
    grants: 'filtered',
    body: closed({ name: optional(Type.String()) }),
    answers: { 200: Item, 202: Item },
    stream: Type.Union([
      closed({ event: Type.Literal('piece'), piece: Type.String() }),
      closed({ event: Type.Literal('result'), result: Item }),
    ]),
    faults: ['agent_timeout', 'operation_in_progress'],
  }),
} as const;

export type Tiny = typeof TINY;

export interface Sent {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; null when there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

export interface SendOptions {
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** A string or bytes are sent as they are, anything else as JSON with its Content-Type. */
  readonly body?: unknown;
}

/** One request on a connection of its own; the token is `operator` by default. */
export function send(api: ApiServer, method: string, path: string, options: SendOptions = {}): Promise<Sent> {
  const { token = 'operator', body } = options;
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body);
  const payload = body === undefined ? undefined : isRaw ? body : JSON.stringify(body);
  const headers = {
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined || isRaw ? {} : { 'content-type': 'application/json' }),
    ...(payload === undefined || options.headers?.['transfer-encoding']
      ? {}
      : { 'content-length': String(Buffer.byteLength(payload)) }),
    ...Object.fromEntries(Object.entries(options.headers ?? {}).filter(([, value]) => value !== undefined)),
  };
  const start = api.fingerprint === null ? httpRequest : httpsRequest;
  return new Promise((resolve, reject) => {
    const { port } = api.address();
    const request = start(
      { host: '127.0.0.1', port, method, path, headers, agent: false, rejectUnauthorized: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = /\/(problem\+)?json(;|$)/.test(response.headers['content-type'] ?? '') && text !== '';
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            json: isJson ? JSON.parse(text) : null,
          });
        });
      },
    );
    request.on('error', reject);
    request.end(payload);
  });
}

/** Writes bytes on a bare connection and gives back everything that comes until the server closes it. */
export function sendBytes(api: ApiServer, ...parts: readonly (string | Buffer)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(api.address().port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
    socket.on('end', () => socket.end());
    for (const part of parts) socket.write(part);
  });
}
