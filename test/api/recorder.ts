/** Records requests and answers of a running orchestrator as the examples of the OpenAPI document. */
import { hostname } from 'node:os';
import type { Example } from '../../src/contract/route.js';
import type { JsonValue } from '../../src/kernel/json.js';
import type { Answer } from './api-request.js';
import type { Call, World } from './world.js';

/** Attributes that an example shows. */
const SHOWN = new Set(['arch', 'distro', 'hostname', 'init_system', 'platform', 'version', 'memory_mb']);
/** Operations whose answer is a long document, of which an example shows the head. */
const IS_DOCUMENT = new Set(['getOpenApi', 'getModuleSchema']);
/** Names under which whole answers are shortened. */
const KEYS: Readonly<Record<string, string>> = { getAgentAttributes: 'attributes' };
/** Items that an example shows of a list. */
const ITEMS = 2;
/** Characters that an example shows of an answer that is no JSON. */
const CHARACTERS = 400;

export class Recorder {
  readonly examples = new Map<string, Example>();
  private readonly world: World;
  private readonly replaced: [RegExp, string][];

  constructor(world: World) {
    this.world = world;
    this.replaced = [
      [literally(world.sandbox.path('site')), '/etc/motd'],
      [literally(`127.0.0.1:${new URL(world.base).port}`), 'orch.example.org:4747'],
      [literally(hostname()), 'web-01'],
      [/http:\/\/127\.0\.0\.1:\d+/g, 'https://hooks.example.org'],
      [/(?:127\.0\.0\.1|172\.\d+\.\d+\.\d+|10\.\d+\.\d+\.\d+|192\.168\.\d+\.\d+)(?=\b)/g, '192.0.2.10'],
      [/orch1?_[A-Za-z0-9_-]{20,}/g, 'SECRET'],
    ];
  }

  /** Sends the request, and records it with its answer, which has that status. */
  async record(id: string, call: Call, status: number): Promise<Answer['json']> {
    const answer = await this.world.gives(id, call, status);
    if (this.examples.has(id)) return answer;
    const { params, query, body } = call;
    this.examples.set(id, {
      ...(params ? { params: this.shown(params) as Record<string, string> } : {}),
      ...(query ? { query: this.shown(query) as Record<string, string> } : {}),
      ...(body === undefined ? {} : { body: this.shown(body) }),
      status,
      ...(status === 204 ? {} : { answer: this.shown(IS_DOCUMENT.has(id) ? headOf(answer) : answer, KEYS[id]) }),
    });
    return answer;
  }

  /** Returns the value without names of this machine and without secrets, with short lists. */
  private shown(value: unknown, key = ''): JsonValue {
    if (typeof value === 'string') return this.cleaned(key, value);
    if (Array.isArray(value)) return value.slice(0, ITEMS).map((item) => this.shown(item));
    if (typeof value !== 'object' || value === null) return value as JsonValue;
    const members = Object.entries(value).filter(([name]) => key !== 'attributes' || SHOWN.has(name));
    const kept = key === 'free_mb' || key === 'definition' || key === 'paths' ? members.slice(0, ITEMS) : members;
    return Object.fromEntries(kept.map(([name, member]) => [name, this.shown(member, name)]));
  }

  private cleaned(key: string, text: string): string {
    if (key === 'token') return 'SESSION-OR-ENROLMENT-TOKEN';
    const clean = this.replaced.reduce((so, [from, to]) => so.replace(from, to), text);
    return clean.replace(/([?&]ticket=)[^&]+/, '$1TICKET').slice(0, key === '' ? CHARACTERS : undefined);
  }
}

/** Returns the members that are no objects. */
const headOf = (document: object): object =>
  Object.fromEntries(Object.entries(document).filter(([, member]) => typeof member !== 'object'));

const literally = (text: string): RegExp => new RegExp(text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'g');
