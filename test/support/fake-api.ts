/** An HTTP server that speaks the contract: it refuses requests and answers that do not fit the schemas. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { API_BASE, CONTRACT, type RouteId } from '../../src/contract/contract.js';
import { FAULTS } from '../../src/contract/faults.js';
import type { RouteSpec } from '../../src/contract/route.js';
import type { FaultCode } from '../../src/kernel/fault.js';
import { validator } from '../../src/kernel/validator.js';
import { TERMINAL_LIMITS, TERMINAL_SUBPROTOCOL } from '../../src/terminal/limits.js';
import { ulid } from './cli-world.js';
import { ScriptedSession } from './terminal-server.js';

export interface Request {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly headers: IncomingMessage['headers'];
}

/** A body with status 200 (or the route's only one), a problem, the lines of a stream, or events. */
export type Reply =
  | { readonly body: unknown; readonly status?: number; readonly headers?: Readonly<Record<string, string>> }
  | { readonly problem: FaultCode; readonly detail: string; readonly more?: Readonly<Record<string, unknown>> }
  | { readonly lines: AsyncIterable<unknown> | Iterable<unknown> }
  | { readonly events: readonly { readonly id: string }[]; readonly ends: boolean; readonly gap?: object };

export type Answers = Partial<Record<RouteId, Reply | ((request: Request) => Reply | Promise<Reply>)>>;

export interface FakeApi {
  readonly url: string;
  /** For what is no request: upgrades. */
  readonly server: Server;
  /** Every request so far, as `METHOD path`. */
  readonly requests: readonly string[];
  /** Mistakes in requests or answers; a test expects it to be empty. */
  readonly violations: string[];
  answer(answers: Answers): void;
  stop(): Promise<void>;
}

export const REQUEST_ID = '01JQ2Z6T0V5X8Y4M3N7P9R1S2T';
export const TOKEN = 'orch_st_test';

export async function startFakeApi(initial: Answers = {}): Promise<FakeApi> {
  // Most tests have no value sets and no inputs.
  const none: Answers = { listValueSets: { body: [] }, explainValues: { body: { modules: [] } } };
  let answers: Answers = { ...none, ...initial };
  const requests: string[] = [];
  const violations: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${(request.url ?? '').slice(API_BASE.length)}`);
    void handle(request, response).catch((error: unknown) => {
      violations.push(String(error));
      response.destroy();
    });
  });
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', 'http://fake');
    const found = findRoute(request.method ?? '', url.pathname);
    if (!found) return send(response, problem('not_found', `there is no ${url.pathname}`));
    const { id, spec, params } = found;
    const body = await readBody(request);
    const input = { params, query: Object.fromEntries(url.searchParams), body, headers: request.headers };
    if (spec.access !== 'public' && !/^Bearer ./.test(request.headers.authorization ?? '')) {
      return send(response, problem('unauthenticated', 'there is no session; log in'));
    }
    check(spec.body, body ?? {}, `body of ${id}`);
    const answer = answers[id];
    if (answer === undefined) throw new Error(`nothing is prepared for ${id}`);
    const reply = typeof answer === 'function' ? await answer(input) : answer;
    if ('lines' in reply) return sendLines(response, spec, reply.lines);
    if ('events' in reply) return sendEvents(response, spec, reply);
    if ('problem' in reply) return send(response, problem(reply.problem, reply.detail, reply.more));
    const status = reply.status ?? Number(Object.keys(spec.answers)[0]);
    check(spec.answers[status] ?? undefined, reply.body, `answer ${status} of ${id}`);
    const type = spec.mediaType ?? 'application/json';
    send(response, { status, body: reply.body, headers: { 'content-type': type, ...reply.headers } });
  }
  function check(schema: RouteSpec['body'] | null, value: unknown, what: string): void {
    for (const { path, message } of schema ? validator(schema).problems(value) : []) {
      violations.push(`${what}: ${path} ${message}`);
    }
  }
  async function sendLines(
    response: ServerResponse,
    spec: RouteSpec,
    lines: AsyncIterable<unknown> | Iterable<unknown>,
  ) {
    response.writeHead(200, { 'content-type': 'application/x-ndjson', 'x-request-id': REQUEST_ID });
    for await (const line of lines) {
      check(spec.stream, line, `line of ${spec.id}`);
      if (response.destroyed) return;
      response.write(`${JSON.stringify(line)}\n`);
    }
    response.end();
  }
  function sendEvents(
    response: ServerResponse,
    spec: RouteSpec,
    { events, ends, gap }: Extract<Reply, { readonly events: unknown }>,
  ): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'x-request-id': REQUEST_ID });
    if (gap !== undefined) {
      check(spec.gaps, gap, `gap of ${spec.id}`);
      response.write(`event: gap\ndata: ${JSON.stringify(gap)}\n\n`);
    }
    for (const event of events) {
      check(spec.events, event, `event of ${spec.id}`);
      response.write(`id: ${event.id}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    if (ends) response.end();
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    requests,
    violations,
    answer: (more) => {
      answers = { ...answers, ...more };
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const problem = (code: FaultCode, detail: string, more: Readonly<Record<string, unknown>> = {}) => ({
  status: FAULTS[code].status,
  headers: { 'content-type': 'application/problem+json' },
  body: {
    type: `urn:orch:problem:${code}`,
    title: FAULTS[code].title,
    status: FAULTS[code].status,
    detail,
    code,
    request_id: REQUEST_ID,
    ...more,
  },
});

interface Sent {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

function send(response: ServerResponse, { status, body, headers }: Sent): void {
  const type = headers?.['content-type'] ?? 'application/json';
  response.writeHead(status, { 'x-request-id': REQUEST_ID, ...headers, 'content-type': type });
  if (typeof body === 'string' && !type.includes('json')) response.end(body);
  else response.end(body === undefined || status === 204 ? undefined : JSON.stringify(body));
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const text = Buffer.concat(parts).toString();
  return text === '' ? undefined : JSON.parse(text);
}

function findRoute(method: string, path: string) {
  for (const [id, spec] of Object.entries(CONTRACT) as [RouteId, RouteSpec][]) {
    if (spec.method !== method) continue;
    const pattern = new RegExp(`^${API_BASE}${spec.path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
    const match = pattern.exec(path);
    if (!match) continue;
    const params = Object.entries(match.groups ?? {}).map(([key, value]) => [key, decodeURIComponent(value)]);
    return { id, spec, params: Object.fromEntries(params) as Record<string, string> };
  }
  return undefined;
}

/** The environment of an operator who is logged in there. */
export const loggedIn = (api: Pick<FakeApi, 'url'>): Readonly<Record<string, string>> => ({
  ORCH_URL: api.url,
  ORCH_TOKEN: TOKEN,
});

/** Sessions of commands behind a fake API: the frames are real, the programs are the test's. */
export interface ExecRequest {
  readonly command: readonly string[];
  readonly timeout_secs: number | null;
  readonly stdin: boolean;
}

export interface Started extends ExecRequest {
  readonly nodeId: string;
  readonly session: ScriptedSession;
}

/** The program on an agent: called when the session is opened, before an operator is connected. A reply refuses it. */
export type Program = (started: Started) => Reply | undefined;

export class FakeTerminals {
  /** In the order in which they were opened. */
  readonly started: Started[] = [];
  /** Most at the same time. */
  busiest = 0;
  private readonly program: Program;
  private readonly sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: TERMINAL_LIMITS.frame,
    handleProtocols: (protocols) => (protocols.has(TERMINAL_SUBPROTOCOL) ? TERMINAL_SUBPROTOCOL : false),
  });

  constructor(api: FakeApi, program: Program) {
    this.program = program;
    api.server.removeAllListeners('upgrade');
    api.server.on('upgrade', (request, socket, head) => {
      const index = Number(/stream\?ticket=(\d+)$/.exec(request.url ?? '')?.[1]);
      this.sockets.handleUpgrade(request, socket, head, (ws: WebSocket) => this.started[index]?.session.accept(ws));
    });
  }

  /** By the node's ID. */
  on(nodeId: string): Started | undefined {
    return this.started.find((one) => one.nodeId === nodeId);
  }

  readonly answers: Answers = {
    execOnAgent: ({ params, body, headers }) => {
      const given = body as Partial<ExecRequest>;
      const session = new ScriptedSession();
      const started: Started = {
        nodeId: params.node_id ?? '',
        session,
        command: given.command ?? [],
        timeout_secs: given.timeout_secs ?? null,
        stdin: given.stdin ?? false,
      };
      const refused = this.program(started);
      if (refused !== undefined) return refused;
      const index = this.started.push(started) - 1;
      this.busiest = Math.max(this.busiest, this.started.filter((one) => !one.session.over).length);
      const session_id = ulid(index);
      const ws_url = `ws://${headers.host}${API_BASE}/terminal/session/${session_id}/stream?ticket=${index}`;
      return { body: { session_id, ws_url } };
    },
  };

  stop(): void {
    for (const socket of this.sockets.clients) socket.terminate();
  }
}

/** A program that prints that, and ends. */
export const prints =
  (out: string | Buffer, { err = '', code = 0 }: { readonly err?: string; readonly code?: number } = {}): Program =>
  ({ session }) => {
    session.print(out);
    if (err !== '') session.print(err, 'err');
    session.end({ code });
    return undefined;
  };
