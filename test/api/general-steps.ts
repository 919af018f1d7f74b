/** Answers that every operation shares: access, and requests that are refused before its handler. */
import { CONTRACT, type RouteId } from '../../src/contract/contract.js';
import { grantUse, type RouteSpec } from '../../src/contract/route.js';
import { until } from '../support/orch.js';
import { type Answer, headOf, openWire, send } from './api-request.js';
import type { Described } from './described-api.js';
import { samplesFor } from './samples.js';
import { ROLES, type World } from './world.js';

const REFUSED = { admin: 'admin_required', operator: 'role_forbidden', viewer: '' } as const;

/** The path with every parameter filled in with the same text, which is sent as it is. */
const pathOf = ({ path }: Described, parameter = 'none'): string => path.replace(/\{\w+\}/g, parameter);

/** Members of the query that are required before the rest of the request is looked at. */
function requiredQuery({ object }: Described): string {
  const required = (object.parameters ?? []).filter((parameter) => parameter.in === 'query' && parameter.required);
  return required.length === 0 ? '' : `?${required.map(({ name }) => `${name}=none`).join('&')}`;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** The headers of an operator who may call the operation. */
export const loginFor = (world: World, { access }: Described): Readonly<Record<string, string>> =>
  access === null ? {} : bearer(world.tokenOf('admin'));

const codeOf = ({ status, json }: Answer): string => `${status} ${json?.code}`;

/** What an operator whose grants give `read` alone is answered: a machine that there is not, and no other right anywhere. */
function limitedAnswer({ id }: Described): string {
  const route = Object.values<RouteSpec>(CONTRACT).find((one) => one.id === id);
  if (route === undefined) throw new Error(`there is no route ${id}`);
  if (route.access === 'admin') return '403 admin_required';
  const use = grantUse(route);
  if (route.access !== 'read' || use === 'unlimited') return '403 not_granted';
  return use === 'machine' ? '404 agent_not_found' : '400 invalid_query';
}

/** Calls it without a token, and as each role. Returns the answers that differ from the document. */
export async function accessMistakes(world: World, operation: Described): Promise<readonly string[]> {
  const { id, method, access } = operation;
  if (access === null) return [];
  const ask = async (headers: Readonly<Record<string, string>>) => {
    // Wrong, so that nothing is done; but looked at only after the caller.
    const path = `${pathOf(operation)}?nonsense=1`;
    return codeOf(world.note(id, await send(world.base, { method, path, headers, body: null })));
  };
  const mistakes: string[] = [];
  const expect = (who: string, found: string, wanted: string) => {
    if (found !== wanted) mistakes.push(`${id} as ${who}: ${found}, not ${wanted}`);
  };
  expect('nobody', await ask({}), '401 unauthenticated');
  expect('a stranger', await ask(bearer('nonsense')), '401 unauthenticated');
  for (const role of ROLES) {
    const may = ROLES.indexOf(role) >= ROLES.indexOf(access);
    expect(role, await ask(bearer(world.tokenOf(role))), may ? '400 invalid_query' : `403 ${REFUSED[access]}`);
  }
  expect('an operator who may only read', await ask(bearer(await world.limited())), limitedAnswer(operation));
  return mistakes;
}

interface Malformed {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A request for each of the codes that come before the handler, for an operation that has them all. */
function malformedFor(operation: Described): Readonly<Record<string, Malformed>> {
  const path = `${pathOf(operation)}${requiredQuery(operation)}`;
  const json = { 'content-type': 'application/json' };
  const isRead = operation.method === 'GET';
  return {
    invalid_query: { path: `${pathOf(operation)}?nonsense=1` },
    ...(operation.params.length > 0 ? { invalid_path: { path: pathOf(operation, 'a%2Fb') } } : {}),
    invalid_body: { path, headers: json, body: isRead ? '{}' : '["nonsense"]' },
    url_too_long: { path: `${pathOf(operation)}?${'x'.repeat(5000)}` },
    origin_forbidden: { path, headers: { origin: 'https://elsewhere.example' } },
    ...(isRead
      ? {}
      : {
          unsupported_media_type: { path, headers: { 'content-type': 'text/plain' }, body: '{}' },
          body_too_large: { path, headers: json, body: ' '.repeat(16 * 1024 * 1024) },
        }),
  };
}

/** Sends everything that is refused before the handler. Returns what was answered otherwise. */
export async function malformedMistakes(world: World, operation: Described): Promise<readonly string[]> {
  const { id, method } = operation;
  const mistakes: string[] = [];
  const login = loginFor(world, operation);
  for (const [code, { path = pathOf(operation), headers, body = null }] of Object.entries(malformedFor(operation))) {
    const given = { method, path, headers: { ...login, ...headers }, body };
    const answer = code === 'body_too_large' ? await announce(world, given) : await send(world.base, given);
    if (world.note(id, answer).json?.code !== code) mistakes.push(`${id}: ${codeOf(answer)}, not ${code}`);
  }
  const raw = { bad_request: {}, headers_too_large: { host: 'orch', nonsense: 'x'.repeat(20_000) } };
  for (const [code, headers] of Object.entries(raw)) {
    const wire = await openWire(world.base);
    wire.write(`${headOf(method, pathOf(operation), { ...login, ...headers, connection: 'close' })}\r\n`);
    const answer = await wire.answer;
    if (answer === null || world.note(id, answer).json?.code !== code) mistakes.push(`${id}: not ${code}`);
  }
  return mistakes;
}

/** Tells of a body that is too large, and does not send it. */
async function announce(
  world: World,
  request: { method: string; path: string; headers: Readonly<Record<string, string>>; body: string | null },
): Promise<Answer> {
  const wire = await openWire(world.base);
  const length = String(request.body?.length ?? 0);
  const headers = { ...request.headers, host: 'orch', 'content-length': length, connection: 'close' };
  wire.write(`${headOf(request.method, request.path, headers)}\r\n`);
  const answer = await wire.answer;
  if (answer === null) throw new Error(`${request.method} ${request.path}: no answer to a body of ${length} bytes`);
  return answer;
}

const USED_KEY = 'used-before';

/** Uses up a key, so that every other write with it is a conflict. */
export async function useUpKey(world: World): Promise<void> {
  const headers = { 'idempotency-key': USED_KEY };
  const content = 'name: used-before\nsupports: [{platform: linux}]\nresources: []\n';
  const call = { body: { name: 'used-before', content }, headers };
  await world.gives('uploadModule', call, 201);
  const again = await world.call('uploadModule', call);
  if (again.headers['idempotent-replayed'] !== 'true') throw new Error(`not replayed: ${again.status} ${again.text}`);
}

export async function conflictMistake(world: World, { id }: Described): Promise<readonly string[]> {
  const sample = samplesFor(world)[id as RouteId];
  const answer = await world.call(id, { ...sample, headers: { 'idempotency-key': USED_KEY } });
  return answer.json?.code === 'idempotency_conflict' ? [] : [`${id}: ${codeOf(answer)}, not a conflict`];
}

/** Begins a request that never comes to its end; gives what was answered otherwise than by `request_timeout`. */
export async function timeoutMistake(world: World, operation: Described): Promise<readonly string[]> {
  const wire = await openWire(world.base);
  wire.write(headOf(operation.method, pathOf(operation), { host: 'orch' }));
  const answer = await wire.answer;
  if (answer === null) return [`${operation.id}: cut off without an answer`];
  return world.note(operation.id, answer).json?.code === 'request_timeout'
    ? []
    : [`${operation.id}: ${codeOf(answer)}`];
}

/** Begins a request of every operation, stops the orchestrator, and ends them all. */
export async function shutdownMistakes(world: World): Promise<readonly string[]> {
  const operations = [...world.api.operations.values()];
  const wires = await Promise.all(operations.map(() => openWire(world.base)));
  for (const [at, { method, path }] of operations.entries()) wires[at]?.write(headOf(method, path, { host: 'orch' }));
  // Keeps the stop waiting: its body does not come.
  const busy = await openWire(world.base);
  const login = loginFor(world, world.api.operation('uploadModule'));
  const headers = { ...login, host: 'orch', 'content-type': 'application/json', 'content-length': '9' };
  busy.write(`${headOf('POST', '/api/v1/modules', headers)}\r\n{`);
  // The orchestrator has read what was written before, when it answers what is asked behind it.
  const status = { method: 'GET', path: '/api/v1/status', headers: {}, body: null };
  await send(world.base, status);
  const stopped = world.server.stop();
  await until(
    () =>
      send(world.base, status).then(
        () => false,
        () => true,
      ),
    'no connections are accepted',
  );
  for (const wire of wires) wire.write('\r\n');
  const answers = await Promise.all(wires.map(({ answer }) => answer));
  busy.close();
  const exitStatus = await stopped;
  const mistakes = operations.flatMap(({ id }, at) => {
    const answer = answers[at] ?? null;
    if (answer === null) return [`${id}: no answer`];
    return world.note(id, answer).json?.code === 'shutting_down' ? [] : [`${id}: ${codeOf(answer)}`];
  });
  return exitStatus === 0 ? mistakes : [...mistakes, `the orchestrator ended with ${exitStatus}`];
}
