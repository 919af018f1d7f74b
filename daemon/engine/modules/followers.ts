/** Finds the agents that follow a module: a new revision reaches them, at once, when they connect, or with their next apply. */
import { ASSIGNMENT_MODES, type AssignmentMode } from '../../../src/kernel/assignment-modes.js';
import { matches } from '../../../src/language/selector.js';
import type { Queryable } from '../../database/schema.js';
import { type AgentRow, listAgents } from '../../fleet/agent-store.js';
import { type Tags, tagsByAgent } from '../../fleet/tag-store.js';
import { type CurrentAssignment, type CurrentAssignments, labelsOf } from '../assignments/assignment-store.js';
import { listStateOperations, type StateOperation } from '../operations/operation-store.js';
import type { RunContents } from '../runs/run-contents.js';
import { triedTexts } from './source-store.js';

export interface Follower {
  readonly agent: AgentRow;
  /** The strongest mode of the assignments that give it the module; null for one that only a request gave it. */
  readonly mode: AssignmentMode | null;
  /** True if it has any module on trial. */
  readonly isOnTrial: boolean;
  /** True if its last apply brought values with it. */
  readonly hasOwnValues: boolean;
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

/** The records that following depends on, read once for several modules. */
interface Fleet {
  /** Approved agents, by name. */
  readonly agents: readonly AgentRow[];
  readonly tags: ReadonlyMap<string, Tags>;
  readonly applied: readonly StateOperation[];
  /** SHA-256 of the texts on trial, by node ID and by module. */
  readonly tried: ReadonlyMap<string, ReadonlyMap<string, string>>;
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

  async read(db: Queryable): Promise<Fleet> {
    const agents = await listAgents(db, { status: 'approved' });
    return {
      agents,
      tags: await tagsByAgent(db),
      applied: await listStateOperations(db),
      tried: await triedTexts(db),
    };
  }

  /** Returns whom a module reaches in a fleet. */
  async reach(db: Queryable, module: string, { agents, tags, applied, tried }: Fleet): Promise<Reach> {
    const naming = (await this.options.assignments.all(db)).filter(({ modules }) => modules.includes(module));
    const requested = await this.requested(db, module, applied);
    const own = agentsWithValues(applied);
    const matched = new Map(naming.map((assignment) => [assignment, 0]));
    const followers = agents.flatMap((agent): Follower | readonly [] => {
      const labels = labelsOf(agent, tags.get(agent.node_id) ?? {});
      const giving = naming.filter(({ selector }) => matches(selector, labels));
      for (const assignment of giving) matched.set(assignment, (matched.get(assignment) ?? 0) + 1);
      if (giving.length === 0 && !requested.has(agent.node_id)) return [];
      const ranks = giving.map(({ mode }) => ASSIGNMENT_MODES.indexOf(mode));
      const texts = tried.get(agent.node_id);
      return {
        agent,
        mode: ASSIGNMENT_MODES[Math.max(...ranks)] ?? null,
        isOnTrial: texts !== undefined,
        hasOwnValues: own.has(agent.node_id),
        tried: texts?.get(module) ?? null,
      };
    });
    return { naming: naming.map((assignment) => ({ assignment, agents: matched.get(assignment) ?? 0 })), followers };
  }

  /** Returns the node IDs of the agents whose last apply had the module because a request named it. */
  private async requested(
    db: Queryable,
    module: string,
    applied: readonly StateOperation[],
  ): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (const { node_id, content_id, modules } of applied) {
      if (content_id === null || !modules.includes(module)) continue;
      const { adHoc } = await this.options.contents.get(db, content_id);
      if (adHoc.has(module)) found.add(node_id);
    }
    return found;
  }
}

/** Returns the node IDs of the agents whose last apply brought values with it. */
export const agentsWithValues = (applied: readonly StateOperation[]): ReadonlySet<string> =>
  new Set(applied.flatMap(({ node_id, value_inputs }) => (value_inputs === null ? [] : [node_id])));
