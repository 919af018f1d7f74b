/** Queries of machines that were seen with the key of an agent while another machine had it too. */
import type { Queryable, Row } from '../database/schema.js';

export type MachineRow = Row<'agent_machines'>;

/** Returns all machines of all agents, the one that was seen last first. */
export async function listMachines(db: Queryable): Promise<readonly MachineRow[]> {
  return db.selectFrom('agent_machines').selectAll().orderBy('node_id').orderBy('last_at', 'desc').execute();
}

/** Returns the machines of an agent, the one that was seen last first. */
export async function machinesOf(db: Queryable, nodeId: string): Promise<readonly MachineRow[]> {
  const query = db.selectFrom('agent_machines').selectAll().where('node_id', '=', nodeId);
  return query.orderBy('last_at', 'desc').execute();
}

/** Stores the machines of an agent in place of those that are stored. */
export async function replaceMachines(tx: Queryable, nodeId: string, machines: readonly MachineRow[]): Promise<void> {
  await tx.deleteFrom('agent_machines').where('node_id', '=', nodeId).execute();
  if (machines.length > 0) await tx.insertInto('agent_machines').values(machines).execute();
}
