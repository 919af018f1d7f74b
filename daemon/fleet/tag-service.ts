/** Tags that operators set on agents; the audit log records the tags before each change. */

import type { tagRoutes } from '../../src/contract/agents.js';
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { isTagKey, isTagValue, TAG_KEY_RULE } from '../../src/kernel/ids.js';
import { LookAlikes } from '../../src/kernel/look-alikes.js';
import { escapePointer } from '../../src/kernel/validator.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, type RequestContext } from '../core/domain-event.js';
import type { Machine, Rights } from '../core/rights.js';
import type { Queryable } from '../database/schema.js';
import type { HandlersFor } from '../http/handler.js';
import { requireAgent, requireAgentMatch } from './agent-service.js';
import { agentLabel, agentParty, listed, updateAgent } from './agent-store.js';
import type { Machines } from './machines.js';
import { refuseProtected } from './protected-tags.js';
import { distinctTags, removeTag, replaceTags, setTag, type Tags, tagsOf } from './tag-store.js';

interface TagServiceOptions extends Pick<Core, 'clock' | 'db' | 'uow'> {
  readonly machines: Pick<Machines, 'all'>;
}

export class TagService {
  private readonly options: TagServiceOptions;

  constructor(options: TagServiceOptions) {
    this.options = options;
  }

  /** Returns every key with its values, both sorted, as far as the operator may read the machines. */
  async list(rights: Rights): Promise<Record<string, string[]>> {
    if (rights.isLimited) return tagsIn(await this.options.machines.all(rights));
    const all = await distinctTags(this.options.db);
    return Object.fromEntries([...all].map(([key, values]) => [key, [...values]]));
  }

  /** Replaces all tags of an agent. Throws `agent_not_found`, `invalid_tag`, `not_granted`. */
  async replace(context: RequestContext, nodeId: string, tags: Tags): Promise<void> {
    requireTags(tags);
    await this.change(context, nodeId, (tx) => replaceTags(tx, nodeId, tags));
  }

  /** Sets one tag. Throws `agent_not_found`, `invalid_tag`, `not_granted`. */
  async set(
    context: RequestContext,
    nodeId: string,
    tag: { readonly key: string; readonly value: string },
  ): Promise<void> {
    requireTag(tag);
    await this.change(context, nodeId, (tx) => setTag(tx, nodeId, tag.key, tag.value));
  }

  /** Removes one tag. Throws `agent_not_found`, `tag_not_found`, `not_granted`. */
  async remove(context: RequestContext, nodeId: string, key: string): Promise<void> {
    await this.change(context, nodeId, async (tx) => {
      if (await removeTag(tx, nodeId, key)) return;
      throw new Fault('tag_not_found', `the agent has no tag ${JSON.stringify(key)}`);
    });
  }

  private async change(context: RequestContext, nodeId: string, work: (tx: Queryable) => Promise<void>): Promise<void> {
    await this.options.uow.write(async (tx, emit) => {
      const agent = await requireAgent(tx, nodeId);
      const before = await tagsOf(tx, nodeId);
      requireAgentMatch(context, agent, before);
      await work(tx);
      const after = await tagsOf(tx, nodeId);
      await refuseProtected(tx, context.rights, { before: { nodeId, tags: before }, after: { nodeId, tags: after } });
      await refuseLookAlikes(tx, before, after);
      if (Object.keys(after).length > MAX_TAGS) throw tooManyTags();
      const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])]
        .filter((key) => before[key] !== after[key])
        .sort();
      if (changed.length === 0) return;
      await updateAgent(tx, nodeId, { updated_at: this.options.clock.now() });
      emit(
        eventOfRequest(context, {
          type: 'agent.tags_changed',
          target: agentParty(agent),
          summary: `${context.actor.name} changed the tags ${listed(changed)} of agent ${agentLabel(agent)}`,
          metadata: { before, after },
        }),
      );
    });
  }
}

/** Handlers of the tag routes. */
export const tagHandlers = (tags: TagService): HandlersFor<typeof tagRoutes> => ({
  listTags: async ({ rights }) => ({ status: 200, body: { tags: await tags.list(rights) } }),
  replaceTags: async ({ params, body, context }) => {
    await tags.replace(context, params.node_id, body.tags);
    return { status: 204, body: undefined };
  },
  setTag: async ({ params, body, context }) => {
    await tags.set(context, params.node_id, { key: params.key, value: body.value });
    return { status: 204, body: undefined };
  },
  removeTag: async ({ params, context }) => {
    await tags.remove(context, params.node_id, params.key);
    return { status: 204, body: undefined };
  },
});

/** Returns the keys of the machines' tags with their values, both sorted. */
function tagsIn(machines: readonly Machine[]): Record<string, string[]> {
  const all = machines.flatMap(({ tags }) => Object.entries(tags));
  const keys = [...new Set(all.map(([key]) => key))].sort();
  const valuesOf = (key: string) => all.flatMap(([one, value]) => (one === key ? [value] : []));
  return Object.fromEntries(keys.map((key) => [key, [...new Set(valuesOf(key))].sort()]));
}

/** Maximum tags of one agent. */
const MAX_TAGS = 256;

/** JSON pointers to a tag's key and value, for the errors. */
interface TagPlaces {
  readonly key: string;
  readonly value: string;
}

/** Validates the `tags` of a body. Throws `invalid_tag`. */
export function requireTags(tags: Tags): void {
  const entries = Object.entries(tags);
  const place = (key: string) => `/tags/${escapePointer(key)}`;
  refuse(entries.flatMap(([key, value]) => problemsOf(key, value, { key: place(key), value: place(key) })));
  if (entries.length > MAX_TAGS) throw tooManyTags();
}

/** Validates a body that is one tag. Throws `invalid_tag`. */
function requireTag({ key, value }: { readonly key: string; readonly value: string }): void {
  refuse(problemsOf(key, value, { key: '/key', value: '/value' }));
}

/**
 * Throws `invalid_tag` for a new key in letters beyond ASCII that people take for one in use: a selector would silently miss the
 * agent. Other keys are not looked at, because reading all keys takes long in a large fleet.
 */
async function refuseLookAlikes(tx: Queryable, before: Tags, after: Tags): Promise<void> {
  const strange = Object.keys(after).filter((key) => !(key in before) && /[^\u0000-\u007f]/.test(key));
  if (strange.length === 0) return;
  const inUse = [...(await distinctTags(tx)).keys()].filter((key) => !strange.includes(key));
  const known = new LookAlikes(inUse);
  refuse(
    strange.flatMap((key) => {
      const like = known.like(key);
      const message = `the key ${JSON.stringify(key)} looks like ${JSON.stringify(like)}, which is in use, and is another`;
      return like === null ? [] : [{ path: `/tags/${escapePointer(key)}`, message }];
    }),
  );
}

const tooManyTags = (): Fault => new Fault('invalid_tag', `an agent has at most ${MAX_TAGS} tags`);

function problemsOf(key: string, value: string, at: TagPlaces): readonly FaultDetail[] {
  const problems: FaultDetail[] = [];
  if (!isTagKey(key)) {
    const message = `the key ${JSON.stringify(key)} cannot be a tag's: ${TAG_KEY_RULE}`;
    problems.push({ path: at.key, message });
  }
  if (!isTagValue(value)) {
    const message = `the value of ${JSON.stringify(key)} must be at most 256 characters without control characters`;
    problems.push({ path: at.value, message });
  }
  return problems;
}

function refuse(problems: readonly FaultDetail[]): void {
  const [first, ...more] = problems;
  if (first === undefined) return;
  const count = more.length > 0 ? `, and ${more.length} more mistakes` : '';
  throw new Fault('invalid_tag', `invalid tags: ${first.message}${count}`, { errors: problems });
}
