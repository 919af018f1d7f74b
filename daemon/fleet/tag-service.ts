/** Tags that operators put on agents; every change tells the audit log what was there before. */
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import { eventOfRequest } from '../events/event-of-request.js';
import type { RequestContext } from '../events/request-context.js';
import type { UnitOfWork } from '../events/unit-of-work.js';
import { distinctTags, removeTag, replaceTags, setTag, type Tags, tagsOf } from '../store/agent-tags.js';
import { updateAgent } from '../store/agents.js';
import type { Queryable } from '../store/queryable.js';
import { agentLabel } from './agent-event.js';
import { agentParty } from './agent-party.js';
import { requireAgent } from './agent-service.js';
import { listed } from './listed.js';
import { MAX_TAGS, requireTag, requireTags, tooManyTags } from './required-tags.js';

export interface TagServiceOptions {
  readonly db: Queryable;
  readonly uow: UnitOfWork;
  readonly clock: Clock;
}

export class TagService {
  private readonly options: TagServiceOptions;

  constructor(options: TagServiceOptions) {
    this.options = options;
  }

  /** Every key with its values, both in order. */
  async list(): Promise<Record<string, string[]>> {
    const all = await distinctTags(this.options.db);
    return Object.fromEntries([...all].map(([key, values]) => [key, [...values]]));
  }

  /** Makes these the only tags. Throws `agent_not_found`, `invalid_tag`. */
  async replace(context: RequestContext, nodeId: string, tags: Tags): Promise<void> {
    requireTags(tags);
    await this.change(context, nodeId, (tx) => replaceTags(tx, nodeId, tags));
  }

  /** Throws `agent_not_found`, `invalid_tag`. */
  async set(
    context: RequestContext,
    nodeId: string,
    tag: { readonly key: string; readonly value: string },
  ): Promise<void> {
    requireTag(tag);
    await this.change(context, nodeId, (tx) => setTag(tx, nodeId, tag.key, tag.value));
  }

  /** Throws `agent_not_found`, `tag_not_found`. */
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
      await work(tx);
      const after = await tagsOf(tx, nodeId);
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
