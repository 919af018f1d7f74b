/** Finds the agents that follow a module: a new revision reaches them, at once, when they connect, or with their next apply. */
import { ASSIGNMENT_MODES, type AssignmentMode } from '../../../src/kernel/assignment-modes.js';
import { matches } from '../../../src/language/selector.js';
import type { Queryable } from '../../database/schema.js';
import { type AgentRow, listAgents } from '../../fleet/agent-store.js';
import { tagsByAgent } from '../../fleet/tag-store.js';
import { type CurrentAssignment, type CurrentAssignments, labelsOf } from '../assignments/assignment-store.js';
import { listStateOperations } from '../operations/operation-store.js';
import type { RunContents } from '../run-contents.js';
import { triedTexts } from './source-store.js';

export interface Follower {
  readonly agent: AgentRow;
  /** The strongest mode of the assignments that give it the module; null for one that only a request gave it. */
  readonly mode: AssignmentMode | null;
  /** True if it has any module on trial. */
  readonly isOnTrial: boolean;
  /** SHA-256 of the text of the module that it has on trial; null for none. */
  readonly tried: string | null;
}

/** Whom a module reaches. */
interface Reach {
  /** The assignments that name the module, each with the number of approved agents that it matches. */
  readonly naming: readonly { readonly assignment: CurrentAssignment; readonly agents: number }[];
  /** The approved agents that follow the module, by name. */
  readonly followers: readonly Follower[];
}

interface FollowersOptions {
  readonly assignments: CurrentAssignments;
  readonly contents: RunContents;
}

export class Followers {
  private readonly options: FollowersOptions;

  constructor(options: FollowersOptions) {
    this.options = options;
  }

  async reach(db: Queryable, module: string): Promise<Reach> {
    const naming = (await this.options.assignments.all(db)).filter(({ modules }) => modules.includes(module));
    const agents = await listAgents(db, { status: 'approved' });
    const tags = naming.some(({ selector }) => selector.terms.length > 0) ? await tagsByAgent(db) : new Map();
    const requested = await this.requested(db, module);
    const tried = await triedTexts(db);
    const matched = new Map(naming.map((assignment) => [assignment, 0]));
    const followers = agents.flatMap((agent): Follower | readonly [] => {
      const labels = labelsOf(agent, tags.get(agent.node_id) ?? {});
      const own = naming.filter(({ selector }) => matches(selector, labels));
      for (const assignment of own) matched.set(assignment, (matched.get(assignment) ?? 0) + 1);
      if (own.length === 0 && !requested.has(agent.node_id)) return [];
      const ranks = own.map(({ mode }) => ASSIGNMENT_MODES.indexOf(mode));
      const texts = tried.get(agent.node_id);
      return {
        agent,
        mode: ASSIGNMENT_MODES[Math.max(...ranks)] ?? null,
        isOnTrial: texts !== undefined,
        tried: texts?.get(module) ?? null,
      };
    });
    return { naming: naming.map((assignment) => ({ assignment, agents: matched.get(assignment) ?? 0 })), followers };
  }

  /** Returns the node IDs of the agents whose last apply had the module because a request named it. */
  private async requested(db: Queryable, module: string): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (const { node_id, content_id } of await listStateOperations(db, module)) {
      const { adHoc } = await this.options.contents.get(db, content_id);
      if (adHoc.has(module)) found.add(node_id);
    }
    return found;
  }
}
