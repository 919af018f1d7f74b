/** Machines as grants see them: with their tags, and since when an operator may read what was recorded about them. */
import { type RawBuilder, sql } from 'kysely';
import { decodeTime } from 'ulid';
import type { Right } from '../../src/contract/rights.js';
import { Fault } from '../../src/kernel/fault.js';
import { findAuditCut, firstAuditId, tagChangesOf } from '../core/audit-store.js';
import type { Core } from '../core/core.js';
import type { Machine, Rights } from '../core/rights.js';
import type { Queryable } from '../database/schema.js';
import { jsonStrings } from '../database/sql-json.js';
import { hasAgent, listAgentIds } from './agent-store.js';
import { ShownAgents } from './shown-agents.js';
import { tagsByAgent, tagsOf } from './tag-store.js';

/** Records that an operator may read: those of the machines, without those up to an ID for machines that moved. */
export interface Readable {
  readonly nodeIds: readonly string[];
  /** Machines whose earlier records are hidden: those with IDs up to `until`. */
  readonly hidden: readonly Hidden[];
}

interface Hidden {
  readonly nodeIds: readonly string[];
  readonly until: string;
}

export class Machines {
  /** Agents kept between requests, from which the tags of a machine are taken while they are known. */
  readonly shown: ShownAgents;
  private readonly db: Queryable;
  /** Results of `since`, by the rights and the node ID. */
  private known = new WeakMap<Rights, Map<string, string>>();

  constructor({ db, bus }: Pick<Core, 'db' | 'bus'>) {
    this.db = db;
    this.shown = new ShownAgents(db);
    bus.subscribe(['agent.tags_changed', 'agent.removed', 'audit.pruned'], () => {
      this.known = new WeakMap();
    });
  }

  /** Returns a machine that has a record, or null, after the same reads, so that the time tells nothing of a hidden machine. */
  async find(nodeId: string): Promise<Machine | null> {
    const isThere = await hasAgent(this.db, nodeId);
    const tags = await tagsOf(this.db, nodeId);
    return isThere ? { nodeId, tags } : null;
  }

  /**
   * Returns the machine if the operator may read it, or null. Only a machine that the operator may read spares the reads of `find`,
   * so that the time tells nothing of a hidden machine that others have read.
   */
  async readable(rights: Rights, nodeId: string): Promise<Machine | null> {
    const kept = this.shown.kept(nodeId);
    const known = kept === null ? null : { nodeId, tags: JSON.parse(kept.tags) };
    if (known !== null && rights.may('read', known)) return known;
    const machine = await this.find(nodeId);
    return machine !== null && rights.may('read', machine) ? machine : null;
  }

  /** Returns the machine. Throws `agent_not_found`, in the same words for one that the operator may not read. */
  async require(rights: Rights, nodeId: string): Promise<Machine> {
    const machine = await this.readable(rights, nodeId);
    if (machine !== null) return machine;
    throw new Fault('agent_not_found', `there is no agent "${nodeId}"`, {
      hint: 'see what there is: orch agents list',
    });
  }

  /** Returns all machines that the operator may read, and on which they hold the right. */
  async all(rights: Rights, right: Right = 'read'): Promise<readonly Machine[]> {
    const tags = await tagsByAgent(this.db);
    const machines = (await listAgentIds(this.db)).map((nodeId) => ({ nodeId, tags: tags.get(nodeId) ?? {} }));
    return machines.filter((machine) => rights.may('read', machine) && rights.may(right, machine));
  }

  /**
   * Returns what an operator with grants may read among the records of machines on which they hold the right; null for an operator
   * without grants.
   */
  async history(rights: Rights, right: Right = 'read'): Promise<Readable | null> {
    if (!rights.isLimited) return null;
    const machines = await this.all(rights, right);
    const hidden = new Map<string, string[]>();
    for (const machine of machines) {
      const until = await this.since(rights, machine);
      const alike = hidden.get(until);
      if (alike !== undefined) alike.push(machine.nodeId);
      else if (until !== '') hidden.set(until, [machine.nodeId]);
    }
    return {
      nodeIds: machines.map(({ nodeId }) => nodeId),
      hidden: [...hidden].map(([until, nodeIds]) => ({ nodeIds, until })),
    };
  }

  /** Returns true if the operator may read a record of a machine with this ID: a ULID of when it began. */
  async mayRead(rights: Rights, nodeId: string, recordId: string): Promise<boolean> {
    if (!rights.isLimited) return true;
    const machine = await this.readable(rights, nodeId);
    return machine !== null && recordId > (await this.since(rights, machine));
  }

  /** Returns the Unix seconds from which on the operator may read what the machine has reported; 0 for always. */
  async readableFrom(rights: Rights, nodeId: string): Promise<number> {
    const machine = rights.isLimited ? await this.readable(rights, nodeId) : null;
    const since = machine === null ? '' : await this.since(rights, machine);
    return since === '' ? 0 : Math.ceil(decodeTime(since) / 1000);
  }

  /**
   * Returns the ID of the event since which the operator may read the machine without interruption; empty for always. Tags of
   * which no event is left count as others, and so do those of a record that was removed.
   */
  private async since(rights: Rights, machine: Machine): Promise<string> {
    const known = this.known.get(rights) ?? new Map<string, string>();
    this.known.set(rights, known);
    const { nodeId } = machine;
    const found = known.get(nodeId) ?? (await this.readSince(rights, nodeId));
    known.set(nodeId, found);
    return found;
  }

  private async readSince(rights: Rights, nodeId: string): Promise<string> {
    const changes = await tagChangesOf(this.db, nodeId, MOST_CHANGES);
    for (const { id, before } of changes) {
      if (before === null || !rights.may('read', { nodeId, tags: before })) return id;
    }
    if (changes.length === MOST_CHANGES) return changes.at(-1)?.id ?? '';
    return (await findAuditCut(this.db)) === null ? '' : ((await firstAuditId(this.db)) ?? '');
  }
}

/** Changes of a machine's tags that are looked at. */
const MOST_CHANGES = 200;

/** Returns the condition of rows with `node_id` that may be read. @param id column of the ID of a record: a ULID of when it began */
export function isReadable(db: Queryable, { nodeIds, hidden }: Readable, id: string): RawBuilder<boolean> {
  const isShown = hidden.map(
    (one) =>
      sql`and not ("node_id" in ${jsonStrings(db, JSON.stringify(one.nodeIds))} and ${sql.ref(id)} <= ${one.until})`,
  );
  return sql<boolean>`("node_id" in ${jsonStrings(db, JSON.stringify(nodeIds))} ${sql.join(isShown, sql` `)})`;
}

/** Returns a function that keeps what an operator may read among records with these node IDs and IDs; null keeps all. */
export function keepsReadable(
  readable: Readable | null,
): (record: { readonly nodeId: string; readonly id: string }) => boolean {
  if (readable === null) return () => true;
  const nodeIds = new Set(readable.nodeIds);
  const hidden = new Map(readable.hidden.flatMap((one) => one.nodeIds.map((nodeId) => [nodeId, one.until] as const)));
  return ({ nodeId, id }) => nodeIds.has(nodeId) && id > (hidden.get(nodeId) ?? '');
}
