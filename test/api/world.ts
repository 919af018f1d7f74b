/** A running orchestrator with operators of each role and agents of each standing, one of them real and connected. */
import type { KeyObject } from 'node:crypto';
import { CONTRACT } from '../../src/contract/contract.js';
import { FAULTS } from '../../src/contract/faults.js';
import type { Grant } from '../../src/contract/rights.js';
import { isLocated, type RouteSpec, takesIfMatch } from '../../src/contract/route.js';
import { publicKeyOfKeyObject } from '../../src/identity/key-object.js';
import { signNonce } from '../../src/identity/login-binding.js';
import { generateKey } from '../../src/identity/private-key.js';
import { isFaultCode } from '../../src/kernel/fault.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';
import { type Answer, send } from './api-request.js';
import { DescribedApi, type Role } from './described-api.js';

export interface Call {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** `admin` by default; null sends no token. */
  readonly as?: Role | null;
  readonly token?: string;
  readonly hangsUp?: boolean;
}

export interface Person {
  readonly key: KeyObject;
  readonly publicKey: string;
}

export const newPerson = (): Person => {
  const key = generateKey();
  return { key, publicKey: publicKeyOfKeyObject(key) };
};

export const ROLES: readonly Role[] = ['viewer', 'operator', 'admin'];

/** The orchestrator of a test, and what the test has seen of it. */
export class World {
  readonly sandbox = new Sandbox();
  readonly people: Readonly<Record<Role, Person>> = { viewer: newPerson(), operator: newPerson(), admin: newPerson() };
  readonly tokens: Partial<Record<Role, string>> = {};
  readonly seen = new Map<string, Set<string>>();
  private readerToken: string | null = null;
  /** Node IDs of the agents by their standing; `connected` and `away` are approved. */
  readonly agents = { connected: '', away: '', pending: '', rejected: '' };
  private running: { readonly server: Running; readonly ready: Ready; readonly api: DescribedApi } | null = null;

  get server(): Running {
    return this.get().server;
  }

  /** Addresses and keys of the orchestrator that runs. */
  get ready(): Ready {
    return this.get().ready;
  }

  get base(): string {
    return this.get().ready.api_url;
  }

  get api(): DescribedApi {
    return this.get().api;
  }

  /** Starts `orch serve` and logs everybody in. */
  async start(args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<void> {
    const isFirst = this.running === null;
    const first = { ORCH_SERVE_BOOTSTRAP_KEY: this.people.admin.publicKey, ORCH_SERVE_BOOTSTRAP_USERNAME: 'root' };
    const { server, ready } = await this.sandbox.serve(args, { ...first, ...env });
    try {
      const document = await send(ready.api_url, get('/api/v1/openapi.json'));
      this.running = { server, ready, api: new DescribedApi(document.json) };
      this.tokens.admin = await this.login(this.people.admin);
    } catch (error) {
      await server.stop('SIGKILL');
      throw new Error(`orch serve does not answer: ${error}\n${server.output()}`);
    }
    for (const role of ['viewer', 'operator'] as const) {
      const body = { public_key: this.people[role].publicKey, username: role, role };
      if (isFirst) await this.gives('addOperator', { body }, 201);
    }
    await this.logIn();
  }

  /** Gives each operator a new session. */
  async logIn(): Promise<void> {
    for (const role of ROLES) this.tokens[role] = await this.login(this.people[role]);
  }

  async login({ key, publicKey }: Person): Promise<string> {
    const challenge = await this.gives('createChallenge', { as: null, body: { public_key: publicKey } }, 200);
    const signature = signNonce(key, Buffer.from(challenge.nonce, 'hex'));
    const body = { public_key: publicKey, signature };
    return (await this.gives('verifyChallenge', { as: null, body }, 200)).token;
  }

  /** Starts an agent and waits until it is known; gives its node ID. */
  async startAgent(
    name: string,
    env: NodeJS.ProcessEnv = {},
  ): Promise<{ readonly nodeId: string; readonly agent: Running }> {
    const { agent_address, public_key } = this.get().ready;
    const known = new Set((await this.listAgents()).map(({ node_id }) => node_id));
    const key = ['--orchestrator-key', public_key, '--data-dir', this.sandbox.path(name)];
    const agent = this.sandbox.start(['agent', 'connect', agent_address, ...key], env);
    let nodeId: string | undefined;
    await until(async () => {
      nodeId = (await this.listAgents()).find(({ node_id }) => !known.has(node_id))?.node_id;
      return nodeId !== undefined;
    }, `the agent ${name} is known`);
    return { nodeId: nodeId ?? '', agent };
  }

  /** One agent of each standing; only the first stays connected. */
  async startAgents(): Promise<void> {
    const connected = await this.startAgent('connected');
    const others = [];
    for (const name of ['away', 'pending', 'rejected']) others.push(await this.startAgent(name));
    const [away = '', pending = '', rejected = ''] = others.map(({ nodeId }) => nodeId);
    Object.assign(this.agents, { connected: connected.nodeId, away, pending, rejected });
    for (const { agent } of others) await agent.stop();
    await this.setStatus(connected.nodeId, { status: 'approved', name: 'web-01' });
    await this.setStatus(away, { status: 'approved', name: 'away' });
    await this.setStatus(rejected, { status: 'rejected' });
    await until(async () => {
      const connections = (await this.listAgents()).filter((agent) => agent.connected);
      return connections.length === 1 && connections[0]?.status === 'approved';
    }, 'one agent is connected');
  }

  /** Sends a request and notes what came of it; fails when the document has no such answer. */
  async call(id: string, call: Call = {}): Promise<Answer> {
    const { method, path } = this.api.operation(id);
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(call.params?.[name] ?? 'none'));
    const query = new URLSearchParams(call.query ?? {}).toString();
    const answer = await send(this.base, {
      method,
      path: query === '' ? filled : `${filled}?${query}`,
      headers: { 'accept-encoding': 'gzip', ...this.headersOf(call), ...call.headers },
      body: call.body === undefined ? null : JSON.stringify(call.body),
      ...(call.hangsUp ? { hangsUp: true } : {}),
    });
    return this.note(id, answer);
  }

  /** The body of an answer with that status, or with another media type than JSON the answer's text. */
  async gives(id: string, call: Call, status: number): Promise<Answer['json']> {
    await this.changesNothingOfOthers(id, call);
    const answer = await this.call(id, call);
    if (answer.status === status) {
      await this.isFollowable(id, answer);
      return answer.json ?? answer.text;
    }
    throw new Error(`${id} answered ${answer.status}, not ${status}: ${answer.text}`);
  }

  /** What was created or begun is where the answer says: it can be read there, or at least deleted. */
  private async isFollowable(id: string, { status, headers: { location } }: Answer): Promise<void> {
    if (!isLocated(status)) return;
    const headers = this.headersOf({});
    const found = await send(this.base, { method: 'GET', path: location ?? '', headers, body: null });
    if (found.status === 200 || (found.status === 405 && found.headers.allow === 'DELETE')) return;
    throw new Error(`${id} answered with the Location ${location}, where GET answers ${found.status} ${found.text}`);
  }

  /** A replacement is refused first with the tag of another state. */
  private async changesNothingOfOthers(id: string, call: Call): Promise<void> {
    const route = Object.values<RouteSpec>(CONTRACT).find((one) => one.id === id);
    if (route === undefined || !takesIfMatch(route) || this.seen.get(id)?.has('precondition_failed')) return;
    await this.refuses(
      id,
      { ...call, headers: { ...call.headers, 'if-match': '"of-another"' } },
      'precondition_failed',
    );
  }

  async refuses(id: string, call: Call, code: string): Promise<Answer> {
    const answer = await this.call(id, call);
    if (answer.json?.code === code) return answer;
    throw new Error(`${id} answered ${answer.status} ${answer.text}, not ${code}`);
  }

  /** Notes an answer of an operation; fails when the document has no such answer. */
  note(id: string, answer: Answer): Answer {
    const problems = [...this.api.problemsOf(id, answer), ...retryProblems(answer)];
    if (problems.length > 0) {
      throw new Error(`${id} broke the document with ${answer.status} ${answer.text}:\n${problems.join('\n')}`);
    }
    const seen = this.seen.get(id) ?? new Set();
    this.seen.set(id, seen.add(this.api.outcomeOf(answer)));
    return answer;
  }

  /** Returns the token of an operator who may read every machine, and do nothing else. */
  async limited(): Promise<string> {
    this.readerToken ??= await this.addLimited('reader', [{ rights: ['read'], selector: '*' }]);
    return this.readerToken;
  }

  /** Adds an operator with grants, and returns their token. */
  async addLimited(username: string, grants: readonly Grant[] | null, more: object = {}): Promise<string> {
    const person = newPerson();
    await this.gives('addOperator', { body: { public_key: person.publicKey, username, grants, ...more } }, 201);
    return this.login(person);
  }

  /** Adds a robot with grants, which ends in an hour, and returns its token. */
  addRobot(username: string, grants: readonly Grant[] | null): Promise<string> {
    return this.addLimited(username, grants, { robot: true, expires_at: Math.floor(Date.now() / 1000) + 3600 });
  }

  tokenOf(role: Role): string {
    const token = this.tokens[role];
    if (token === undefined) throw new Error(`no operator is logged in as ${role}`);
    return token;
  }

  private headersOf({ as = 'admin', token, body }: Call): Readonly<Record<string, string>> {
    const bearer = token ?? (as === null ? null : this.tokenOf(as));
    return {
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
  }

  private setStatus(node_id: string, body: object): Promise<unknown> {
    return this.gives('setAgentStatus', { params: { node_id }, body }, 200);
  }

  private listAgents(): Promise<readonly { node_id: string; connected: boolean; status: string }[]> {
    return this.gives('listAgents', {}, 200);
  }

  private get() {
    if (this.running === null) throw new Error('the orchestrator does not run');
    return this.running;
  }
}

/** What passes by itself says when to try again, in the header and in the body alike. */
function retryProblems({ status, headers, json }: Answer): readonly string[] {
  const code = String(json?.code);
  if (status < 400 || !isFaultCode(code)) return [];
  const advised = headers['retry-after'];
  if (advised === undefined) return FAULTS[code].retryAfter === undefined ? [] : ['Retry-After is missing'];
  return /^[1-9]\d*$/.test(advised) && json.retry_after === Number(advised) ? [] : [`Retry-After is ${advised}`];
}

const get = (path: string) => ({ method: 'GET', path, headers: {}, body: null });
