/** Names that agents have had: a name that another agent had is given again, and not in silence. */
import type { NamedAgent } from '../../src/contract/agents.js';
import { toSeconds, toTimestamp } from '../../src/kernel/clock.js';
import { type DomainEvent, SYSTEM } from '../core/domain-event.js';
import type { Rights } from '../core/rights.js';
import type { Emit } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';

/** The agent that had a name before. */
export interface EarlierHolder {
  readonly node_id: string;
  /** Unix milliseconds at which it lost the name; null if that was not noted. */
  readonly lost_at: number | null;
}

interface GivenName {
  readonly node_id: string;
  readonly name: string;
}

/** Notes that an agent gets a name, with an event if another one had it. Returns the last one that had it before, or null. */
export async function noteGivenName(tx: Queryable, emit: Emit, given: GivenName): Promise<EarlierHolder | null> {
  const { name, node_id } = given;
  const earlier = await tx
    .selectFrom('agent_names')
    .select(['node_id', 'lost_at'])
    .where('name', '=', name)
    .where('node_id', '!=', node_id)
    .orderBy(({ fn, val }) => fn.coalesce('lost_at', val(0)), 'desc')
    .orderBy('node_id')
    .limit(1)
    .executeTakeFirst();
  // Only the last one that had it is told, so no more are kept.
  const former = tx.deleteFrom('agent_names').where('name', '=', name).where('lost_at', 'is not', null);
  await former.where('node_id', 'not in', [node_id, earlier?.node_id ?? node_id]).execute();
  await tx
    .insertInto('agent_names')
    .values({ name, node_id, lost_at: null })
    .onConflict((conflict) => conflict.columns(['name', 'node_id']).doUpdateSet({ lost_at: null }))
    .execute();
  if (earlier === undefined) return null;
  emit(reusedEvent(given, earlier));
  return earlier;
}

/** Notes that an agent has lost its name. */
export async function noteLostName(tx: Queryable, nodeId: string, now: number): Promise<void> {
  const names = tx.updateTable('agent_names').set({ lost_at: now }).where('node_id', '=', nodeId);
  await names.where('lost_at', 'is', null).execute();
}

/** Returns what the answer says of the agent that had the name; an operator with grants does not learn which one it was. */
export function reuseOf(earlier: EarlierHolder | null, rights: Rights): Pick<NamedAgent, 'name_reused'> {
  if (earlier === null) return {};
  if (rights.isLimited) return { name_reused: { node_id: null, until: null } };
  const { node_id, lost_at } = earlier;
  return { name_reused: { node_id, until: lost_at === null ? null : toSeconds(lost_at) } };
}

/** The event is about two machines, so operators with grants do not read it. */
function reusedEvent({ name, node_id }: GivenName, { node_id: earlier, lost_at }: EarlierHolder): DomainEvent {
  const until = lost_at === null ? null : toTimestamp(lost_at);
  return {
    type: 'agent.name_reused',
    actor: SYSTEM,
    target: SYSTEM,
    summary: `Agent ${node_id} got the name ${name}, which was the name of agent ${earlier}${until === null ? '' : ` until ${until}`}`,
    metadata: { name, node_id, earlier_node_id: earlier, until },
  };
}
