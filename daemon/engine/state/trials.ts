/**
 * Trials: an agent has modules whose texts came with its last apply and are not published. A trial begins and ends together
 * with the believed state, in the transaction that stores the end of an apply (`docs/applying.md`).
 */

import type { Trial } from '../../../src/contract/standings.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { findOperator, partyOfOperator } from '../../auth/operator-store.js';
import type { Core } from '../../core/core.js';
import type { Party } from '../../core/domain-event.js';
import type { Rights } from '../../core/rights.js';
import type { Emit } from '../../core/unit-of-work.js';
import type { Queryable } from '../../database/schema.js';
import { setTrial } from '../../fleet/agent-store.js';
import type { Followers } from '../modules/followers.js';
import { findModuleHeads } from '../modules/module-store.js';
import { moduleParty, publishRevision } from '../modules/publication.js';
import {
  deleteUnusedTexts,
  dropOperationSources,
  findText,
  type OperationSource,
  type Source,
  settleOperationSources,
  sourcesOfOperation,
} from '../modules/source-store.js';
import { mayStore } from '../modules/store-rights.js';
import type { LiveOperation } from '../operations/live-operations.js';
import { findOperation } from '../operations/operation-store.js';

interface TrialsOptions extends Pick<Core, 'clock' | 'newId'> {
  /** Returns what a party may do now; null for everything. */
  readonly rightsOf: (db: Queryable, actor: Party) => Promise<Rights | null>;
  readonly followers: Followers;
}

/** Facts that a transaction needs to settle the sources of an apply. */
interface Settling {
  readonly tx: Queryable;
  readonly emit: Emit;
}

interface SettlingOne extends Settling {
  /** The fleet, which is read once for all sources of an apply, and only if one needs it. */
  readonly fleet: { read: ReturnType<Followers['read']> | null };
}

/** Number of other agents from which on a count is kept for a while: a rollout over thousands would count at each end. */
const MANY = 50;
/** Milliseconds for which such a count is kept. */
const KEPT_MS = 10_000;

interface Count {
  readonly others: number;
  /** Monotonic milliseconds. */
  readonly at: number;
}

export class Trials {
  private readonly options: TrialsOptions;
  private readonly counts = new Map<string, Count>();

  constructor(options: TrialsOptions) {
    this.options = options;
  }

  /**
   * Settles the sources of an apply that has changed the believed state: each is published if every other agent that follows its
   * module has tried it, the stored revision is still the one that it replaces, and the operator may store it everywhere that it could
   * reach; on trial otherwise. A return to an earlier
   * desired state publishes nothing. The trial replaces an earlier one of the agent.
   */
  async settle(settling: Settling, operation: LiveOperation): Promise<readonly OperationSource[]> {
    const { facts, nodeId } = operation;
    if (facts.sources.length === 0 && !facts.endsTrial) return [];
    const { tx } = settling;
    const settled: OperationSource[] = [];
    // First, so that the machine counts as one that has tried each of them.
    await settleOperationSources(tx, operation.id, facts.sources.map(onTrial));
    const begins = facts.sources.length > 0;
    await setTrial(tx, nodeId, { operationId: operation.id, trialId: begins ? operation.id : null });
    const fleet: SettlingOne['fleet'] = { read: null };
    for (const source of facts.sources) settled.push(await this.settleOne({ ...settling, fleet }, operation, source));
    await settleOperationSources(tx, operation.id, settled);
    if (settled.some(({ status }) => status === 'unchanged')) await deleteUnusedTexts(tx);
    return settled;
  }

  /** Forgets the sources of an apply that has changed nothing. */
  async drop(tx: Queryable, { id, facts }: LiveOperation): Promise<void> {
    if (facts.sources.length > 0) await dropOperationSources(tx, id);
  }

  private async settleOne(
    settling: SettlingOne,
    operation: LiveOperation,
    source: OperationSource,
  ): Promise<OperationSource> {
    const { tx, emit } = settling;
    const { name, sha256, replaces } = source;
    const [head] = await findModuleHeads(tx, [name]);
    if (head?.sha256 === sha256) {
      // An apply whose end is reported twice has published it the first time.
      return { ...source, status: source.status === 'published' ? 'published' : 'unchanged', others: 0 };
    }
    const others = await this.others(settling, operation.nodeId, source);
    const isCurrent = (head?.sha256 ?? null) === replaces && operation.facts.restores === null;
    const mayPublish = others === 0 && isCurrent && (await this.mayPublish(settling, operation, name));
    if (!mayPublish) return { ...source, status: 'on_trial', others };
    const text = await findText(tx, sha256);
    if (text === null) throw new Error(`the text of module ${name} of operation ${operation.id} is not stored`);
    const { requested_by, request_id } = operation.facts;
    const actor = await this.actor(tx, requested_by);
    const uploaded = { uploaded_at: this.options.clock.now(), uploaded_by: requested_by };
    await publishRevision({ tx, emit, newId: this.options.newId }, { name, ...text, ...uploaded }, (revision) => ({
      type: 'module.uploaded',
      actor,
      target: moduleParty(name),
      summary: `${actor.name} published revision ${revision} of module ${name} with an apply: each agent that follows it has it`,
      metadata: { revision, sha256, operation_id: operation.id, request_id },
    }));
    return { ...source, status: 'published', others: 0 };
  }

  /** Returns true if the operator of the apply may store the module: it could reach machines that no assignment matches yet. */
  private async mayPublish({ tx }: SettlingOne, { facts }: LiveOperation, module: string): Promise<boolean> {
    const rights = await this.options.rightsOf(tx, { id: facts.requested_by, name: '', type: 'operator' });
    return rights === null || (await mayStore(tx, this.options.followers, rights, module));
  }

  /** Returns the number of other agents that follow a module and have not tried this text of it. */
  private async others({ tx, fleet }: SettlingOne, nodeId: string, { name, sha256 }: Source): Promise<number> {
    const { clock, followers } = this.options;
    const now = clock.monotonic();
    for (const [key, { at }] of this.counts) if (now - at >= KEPT_MS) this.counts.delete(key);
    const key = `${name} ${sha256}`;
    const known = this.counts.get(key);
    if (known !== undefined) return known.others;
    fleet.read ??= followers.read(tx);
    const reach = await followers.reach(tx, name, await fleet.read);
    const others = reach.followers.filter(({ agent, tried }) => agent.node_id !== nodeId && tried !== sha256).length;
    if (others >= MANY) this.counts.set(key, { others, at: now });
    return others;
  }

  private async actor(tx: Queryable, operatorId: string): Promise<Party> {
    const operator = await findOperator(tx, operatorId);
    return operator === null ? { id: operatorId, name: operatorId, type: 'operator' } : partyOfOperator(operator);
  }
}

const onTrial = ({ name }: Source) => ({ name, status: 'on_trial', others: 0 }) as const;

/** Returns what is on trial on an agent, from the sources of its trial; empty for none. */
export async function triedSources(
  db: Queryable,
  trialOperationId: string | null,
): Promise<readonly OperationSource[]> {
  if (trialOperationId === null) return [];
  return (await sourcesOfOperation(db, trialOperationId)).filter(({ status }) => status === 'on_trial');
}

/** Returns the names of the modules on trial that an apply with these sources does not try again. */
export const endedTrial = (
  tried: readonly Source[],
  sources: readonly Pick<Source, 'name' | 'sha256'>[],
): readonly string[] =>
  tried
    .filter((one) => !sources.some(({ name, sha256 }) => name === one.name && sha256 === one.sha256))
    .map(({ name }) => name);

/** Returns the trial that an apply has begun, as the API shows it; null if it has ended. */
export async function trialOf(db: Queryable, trialOperationId: string | null): Promise<Trial | null> {
  const sources = await triedSources(db, trialOperationId);
  const operation =
    trialOperationId === null || sources.length === 0 ? null : await findOperation(db, trialOperationId);
  if (operation === null) return null;
  return {
    operation_id: operation.operation_id,
    modules: sources.map(({ name, sha256 }) => ({ module: name, sha256 })),
    since: toSeconds(operation.finished_at ?? operation.started_at),
    by: operation.requested_by,
  };
}
