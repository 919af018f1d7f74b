/** Resolves words such as `web-01`, `3f2a91c4` and `web[01-20]` to agents, and declares the arguments that take them. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { Fault, isFault } from '../../kernel/fault.js';
import { isName, isNodeId } from '../../kernel/ids.js';
import { nearest } from '../../language/nearest.js';
import { argument, optionalArgument, optionalList } from '../define-command.js';
import { agentName } from '../format.js';
import { allAgents } from '../list-pages.js';

interface ResolveOptions {
  readonly signal: AbortSignal;
  /** Shortest accepted prefix of a node ID [4]. */
  readonly leastPrefix?: number;
}

/** Finds one agent by name, node ID or unique ID prefix. Throws `agent_not_found` or `ambiguous_node`, and `usage` for a range. */
export async function resolveNode(api: ApiClient, text: string, options: ResolveOptions): Promise<Agent> {
  if (isRange(text)) throw new Fault('usage', `"${text}" is a range, and this takes a single node`);
  const found = await resolveNodes(api, [text], options);
  // `resolveNodes` returns one agent for one text, or throws.
  return found[0] ?? notFound(text, []);
}

/** Returns the agents of the texts, ranges expanded, in their order; an agent that was named twice comes once. */
export async function resolveNodes(
  api: ApiClient,
  given: readonly string[],
  { signal, leastPrefix = 4 }: ResolveOptions,
): Promise<readonly Agent[]> {
  const texts = given.flatMap(expandRanges);
  const one = texts.length === 1 ? texts[0] : undefined;
  if (one !== undefined) {
    // Avoids reading the whole fleet, which may be large.
    const agent = isNodeId(one) ? await agentById(api, one, signal) : await agentByName(api, one, signal);
    if (agent) return [agent];
  }
  const agents = await allAgents(api, { signal });
  const byName = new Map(agents.map((agent) => [agent.name, agent]));
  const found = texts.map((text) => byName.get(text) ?? pickAgent(agents, text, leastPrefix));
  return [...new Map(found.map((agent) => [agent.node_id, agent])).values()];
}

async function agentById(api: ApiClient, id: string, signal: AbortSignal): Promise<Agent | null> {
  try {
    return await api.call('getAgent', { params: { node_id: id }, signal });
  } catch (error) {
    if (isFault(error, 'agent_not_found')) return null;
    throw error;
  }
}

async function agentByName(api: ApiClient, name: string, signal: AbortSignal): Promise<Agent | null> {
  if (!isName(name)) return null;
  const agents = await api.call('listAgents', { query: { name, limit: 1 }, signal });
  return agents.find((agent) => agent.name === name) ?? null;
}

/** Finds an agent in a list. A name takes precedence over an ID prefix. Throws `agent_not_found`, `ambiguous_node`, `usage`. */
export function pickAgent(agents: readonly Agent[], text: string, leastPrefix = 4): Agent {
  const exact = agents.find(({ name }) => name === text) ?? agents.find(({ node_id }) => node_id === text);
  if (exact) return exact;
  const prefix = text.replaceAll(' ', '').toLowerCase();
  const beginning = /^[0-9a-f]+$/.test(prefix) ? agents.filter(({ node_id }) => node_id.startsWith(prefix)) : [];
  if (beginning.length > 0 && prefix.length < leastPrefix) throw tooShort(text, leastPrefix);
  const [first, ...others] = beginning;
  if (first && others.length > 0) throw ambiguous(text, beginning);
  return first ?? notFound(text, agents);
}

/** Verbs of other commands that operators type in place of an agent. */
const VERBS: ReadonlySet<string> = new Set(['list', 'ls', 'show', 'get', 'all']);

function notFound(text: string, agents: readonly Agent[]): never {
  if (VERBS.has(text)) {
    throw new Fault(
      'agent_not_found',
      `"${text}" stands where the name of an agent belongs, and no agent has that name`,
      {
        hint: 'list the agents with: orch agents',
      },
    );
  }
  const names = agents.flatMap(({ name }) => name ?? []);
  const meant = nearest(text, names);
  throw new Fault('agent_not_found', `there is no agent "${text}"`, {
    hint: meant === null ? 'list them with: orch agents' : `did you mean "${meant}"?`,
  });
}

const tooShort = (text: string, least: number): Fault =>
  new Fault('usage', `"${text}" is too short: give at least ${least} characters of the node ID`);

function ambiguous(text: string, candidates: readonly Agent[]): Fault {
  const list = candidates.map((agent) => `  ${agent.node_id}  ${agentName(agent)}  ${agent.status}`).join('\n');
  return new Fault('ambiguous_node', `"${text}" begins the IDs of ${candidates.length} agents:\n${list}`, {
    hint: 'give more characters, or the name',
    data: { candidates: candidates.map(({ node_id, name }) => ({ node_id, name })) },
  });
}

const SUMMARY = 'agent name, node ID, or a unique prefix of 4 characters or more';

export const nodeArgument = argument('NODE', SUMMARY, 'node');
/** Optional, because `--selector` may choose the agents. */
export const optionalNodeArgument = optionalArgument('NODE', SUMMARY, 'node');
/** Optional, because another option may choose the agents, such as `--local`. */
export const optionalNodesArgument = optionalList('NODE', `${SUMMARY}, or "web[01-20]"`, 'node');

/** Maximum number of names in one word. */
const MOST_NAMES = 10_000;
const RANGE = /^([^[\]]*)\[([^[\]]*)\](.*)$/s;
const PART = /^(\d{1,9})(?:-(\d{1,9}))?$/;

/** Returns whether a word contains a range. Agent names contain no brackets. */
const isRange = (text: string): boolean => /[[\]]/.test(text);

/**
 * Returns the names in order. A number keeps the leading zeros of the first one: `[08-10]` is 08, 09, 10. Several brackets give every
 * combination. Throws `usage` for a range that is malformed, runs backwards or stands for too many names.
 */
export function expandRanges(text: string): readonly string[] {
  if (!isRange(text)) return [text];
  const [, before = '', list = '', after = ''] = RANGE.exec(text) ?? [];
  if (list === '') throw malformed(text);
  const heads = list.split(',').flatMap((part) => numbersOf(part, text).map((number) => before + number));
  const tails = expandRanges(after);
  if (heads.length * tails.length > MOST_NAMES) throw tooMany(text);
  return heads.flatMap((head) => tails.map((tail) => head + tail));
}

function numbersOf(part: string, text: string): readonly string[] {
  const [, first, last = first] = PART.exec(part.trim()) ?? [];
  if (first === undefined || last === undefined || Number(first) > Number(last)) throw malformed(text);
  const length = Number(last) - Number(first) + 1;
  if (length > MOST_NAMES) throw tooMany(text);
  return Array.from({ length }, (_, index) => String(Number(first) + index).padStart(first.length, '0'));
}

const malformed = (text: string): Fault =>
  new Fault('usage', `"${text}" is no range of nodes`, {
    hint: 'write ranges such as "web[01-20]" or "db[1,3,7-9]", in quotes',
  });

const tooMany = (text: string): Fault =>
  new Fault('usage', `"${text}" stands for more than ${MOST_NAMES} nodes`, { hint: 'choose by tags: --selector' });
