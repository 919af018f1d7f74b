/**
 * Contests of agents: two machines have been connected with one key, because a machine was copied or its key stolen.
 * Nothing is sent to such an agent until an operator has decided which machine it is. Contests are in the store, and here
 * in memory, because every connection and every operation asks for them.
 */
import type { Agent } from '../../src/contract/agents.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { hostNetworkOf } from '../../src/kernel/ip-network.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, type RequestContext } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import { type AgentRow, agentEvent, agentLabel, agentParty, findAgent, listed } from './agent-store.js';
import type { ConnectionRegistry } from './connection-registry.js';
import { listMachines, type MachineRow, machinesOf, replaceMachines } from './contest-store.js';

interface ContestsOptions extends Pick<Core, 'clock' | 'db' | 'uow'> {
  readonly registry: ConnectionRegistry;
}

/** A machine as a connection shows it. */
export interface Machine {
  readonly hostname: string;
  readonly address: string;
}

/**
 * Decision about a machine: none yet, or by what the machine is turned away. `seen` is a machine with the host name and
 * address of the connected one, which makes a contest only when it comes again.
 */
type Decision = 'seen' | 'open' | 'hostname' | 'address';

/** Minimum milliseconds between two events about the same machine. */
const TOLD_EVERY = 24 * 60 * 60 * 1_000;
/** Maximum machines kept of an agent. */
const MOST_MACHINES = 8;
/** Maximum events about an agent in `TOLD_EVERY`: host names cost the holder of a key nothing. */
const MOST_EVENTS = 4;
/**
 * Minimum milliseconds between two collisions of machines with the same host name and address that make a contest, and
 * maximum milliseconds after which a collision is forgotten. A single one can be one machine, whose earlier connection is
 * only slow to end.
 */
const SAME_PLACE_MS = { least: 30_000, most: 600_000 } as const;

export class Contests {
  private readonly options: ContestsOptions;
  private machines = new Map<string, readonly MachineRow[]>();

  constructor(options: ContestsOptions) {
    this.options = options;
  }

  /** Reads the contests of the store. Call it before the first connection. */
  async load(): Promise<void> {
    const all = await listMachines(this.options.db);
    for (const nodeId of new Set(all.map(({ node_id }) => node_id))) {
      this.remember(
        nodeId,
        all.filter(({ node_id }) => node_id === nodeId),
      );
    }
  }

  isContested(nodeId: string): boolean {
    return (this.machines.get(nodeId) ?? []).some(({ decision }) => decision === 'open');
  }

  /** Returns the contest of an agent as the API shows it, or null. */
  shown(nodeId: string): NonNullable<Agent['contest']> | null {
    const machines = this.machines.get(nodeId);
    if (machines === undefined) return null;
    const open = machines.filter(({ decision }) => decision === 'open');
    if (open.length === 0) return null;
    const connected = this.options.registry.get(nodeId as NodeId)?.machine ?? null;
    return {
      since: toSeconds(Math.min(...open.map(({ first_at }) => first_at))),
      machines: open.map(({ hostname, address, last_at }) => ({
        hostname,
        address,
        last_seen_at: toSeconds(last_at),
        connected: connected !== null && isSame(connected, { hostname, address }),
      })),
    };
  }

  /** Returns why a machine is turned away that an operator has decided against, or null. */
  refusalOf(nodeId: string, machine: Machine): string | null {
    const isRefused = (this.machines.get(nodeId) ?? []).some(
      ({ decision, hostname, address }) =>
        hostname === machine.hostname &&
        (decision === 'hostname' ||
          (decision === 'address' && hostNetworkOf(address) === hostNetworkOf(machine.address))),
    );
    return isRefused ? 'an operator has decided that another machine is this agent' : null;
  }

  /** Notes that `newcomer` connected with the key of an approved agent while `holder` was connected. */
  async collided(nodeId: string, { holder, newcomer }: { holder: Machine; newcomer: Machine }): Promise<void> {
    await this.change(
      nodeId,
      (before, now) => {
        if (isSame(holder, newcomer)) return seen(before, { node_id: nodeId, ...newcomer }, now, 'seen');
        return seen(seen(before, { node_id: nodeId, ...holder }, now), { node_id: nodeId, ...newcomer }, now);
      },
      newcomer,
    );
  }

  /** Notes that a machine has connected whose agent is contested, or that is turned away. */
  async noticed(nodeId: string, machine: Machine): Promise<void> {
    await this.change(nodeId, (before, now) => seen(before, { node_id: nodeId, ...machine }, now), machine);
  }

  /**
   * Decides, for an operator, that the connected machine is the agent, and that the others are turned away. Does nothing for
   * an agent that is not contested. Throws `agent_not_connected` if that machine is not the connected one.
   */
  async keep(context: RequestContext, agent: AgentRow, machine: Machine): Promise<void> {
    const { uow, registry } = this.options;
    const nodeId = agent.node_id;
    const connected = registry.get(nodeId as NodeId)?.machine ?? null;
    if (connected === null || !isSame(connected, machine)) throw otherMachine(agent, machine, connected);
    if (!this.isContested(nodeId)) return;
    const kept = await uow.write(async (tx, emit) => {
      const others = (await machinesOf(tx, nodeId)).filter((row) => !isSame(row, machine));
      const decided = others.map((row) => ({ ...row, decision: decisionAgainst(row, machine) }));
      await replaceMachines(tx, nodeId, decided);
      const turnedAway = decided.map(textOf);
      emit(
        eventOfRequest(context, {
          type: 'agent.kept',
          target: agentParty(agent),
          summary:
            `${context.actor.name} decided that ${textOf(machine)} is agent ${agentLabel(agent)}` +
            (turnedAway.length === 0 ? '' : `; turned away: ${listed(turnedAway)}`),
          metadata: { ...machine, turned_away: turnedAway },
        }),
      );
      return decided;
    });
    this.remember(nodeId, kept);
  }

  /** Forgets all decisions about the machines of an agent, in the transaction of another decision about it. */
  async forget(tx: Queryable, nodeId: string): Promise<void> {
    await replaceMachines(tx, nodeId, []);
  }

  /** Call it after the commit of `forget`. */
  forgotten(nodeId: string): void {
    this.remember(nodeId, []);
  }

  /** Stores what `edit` returns of the machines, and reports `newcomer` unless that was done lately. */
  private async change(
    nodeId: string,
    edit: (before: readonly MachineRow[], now: number) => readonly MachineRow[],
    newcomer: Machine,
  ): Promise<void> {
    const { uow, clock } = this.options;
    const after = await uow.write(async (tx, emit) => {
      const agent = await findAgent(tx, nodeId);
      if (agent?.status !== 'approved') return null;
      const now = clock.now();
      const machines = bounded(edit(await machinesOf(tx, nodeId), now));
      const isDue = isReportDue(machines, newcomer, now);
      const told = machines.map((row) => (isDue && !isToldLately(row, now) ? { ...row, told_at: now } : row));
      await replaceMachines(tx, nodeId, told);
      if (isDue) emit(collisionOf(agent, told, newcomer));
      return told;
    });
    if (after !== null) this.remember(nodeId, after);
  }

  private remember(nodeId: string, machines: readonly MachineRow[]): void {
    if (machines.length === 0) this.machines.delete(nodeId);
    else this.machines.set(nodeId, machines);
    const { registry } = this.options;
    registry.hold(nodeId as NodeId, this.isContested(nodeId) ? holdText(machines) : null);
  }
}

/** Returns true for the same host name at addresses of the same host. */
const isSame = (one: Machine, other: Machine): boolean =>
  one.hostname === other.hostname && hostNetworkOf(one.address) === hostNetworkOf(other.address);

/** Returns the machines with this one first. One that is only `seen` becomes `open` when it comes again. */
function seen(
  rows: readonly MachineRow[],
  machine: Pick<MachineRow, 'node_id' | 'hostname' | 'address'>,
  now: number,
  decision: Decision = 'open',
): readonly MachineRow[] {
  const known = rows.find((row) => isSame(row, machine));
  const others = rows.filter((row) => row !== known);
  if (known === undefined || (known.decision === 'seen' && now - known.last_at > SAME_PLACE_MS.most)) {
    return [{ ...machine, first_at: now, last_at: now, told_at: known?.told_at ?? null, decision }, ...others];
  }
  const isAgain = known.decision === 'seen' && now - known.first_at >= SAME_PLACE_MS.least;
  return [{ ...known, last_at: now, decision: isAgain ? 'open' : known.decision }, ...others];
}

/**
 * Returns at most `MOST_MACHINES`: those with a decision, then those that were reported, then the others, each by when they
 * were seen last.
 */
function bounded(machines: readonly MachineRow[]): readonly MachineRow[] {
  if (machines.length <= MOST_MACHINES) return machines;
  const rank = ({ decision, told_at }: MachineRow) =>
    decision === 'hostname' || decision === 'address' ? 0 : told_at === null ? 2 : 1;
  const kept = [...machines].sort((a, b) => rank(a) - rank(b)).slice(0, MOST_MACHINES);
  return machines.filter((row) => kept.includes(row));
}

const isToldLately = ({ told_at: at }: MachineRow, now: number): boolean =>
  at !== null && now - at < TOLD_EVERY && at <= now;

function isReportDue(machines: readonly MachineRow[], newcomer: Machine, now: number): boolean {
  const row = machines.find((one) => isSame(one, newcomer));
  const recent = machines.filter((one) => isToldLately(one, now));
  const reports = new Set(recent.map(({ told_at }) => told_at)).size;
  return row !== undefined && !isToldLately(row, now) && reports < MOST_EVENTS;
}

/** A machine with the kept one's host name is known by its address alone. */
const decisionAgainst = ({ hostname }: Machine, kept: Machine): Decision =>
  hostname === kept.hostname ? 'address' : 'hostname';

const textOf = ({ hostname, address }: Machine): string => `${address} as ${hostname}`;

const holdText = (machines: readonly MachineRow[]): string => {
  const open = machines.filter(({ decision }) => decision === 'open');
  return `several machines have its key: ${listed(open.map(textOf))}`;
};

function collisionOf(agent: AgentRow, machines: readonly MachineRow[], newcomer: Machine) {
  const name = agentLabel(agent);
  const others = machines.filter((row) => row.decision === 'open' && !isSame(row, newcomer)).map(textOf);
  const beside = others.length === 0 ? '' : `, beside ${listed(others)}`;
  const held = `nothing is sent to ${name} until an operator decides which machine it is`;
  const isSeen = machines.some((row) => row.decision === 'seen' && isSame(row, newcomer));
  let next = 'It is turned away, as an operator has decided';
  if (isSeen) next = `It was refused; if it comes again, ${held}`;
  if (machines.some((row) => row.decision === 'open')) next = `${held[0]?.toUpperCase()}${held.slice(1)}`;
  const summary = `A second agent with the key of ${name} came from ${textOf(newcomer)}${beside}. ${next}`;
  return agentEvent('agent.duplicate_identity', agent, summary, { ...newcomer });
}

function otherMachine(agent: AgentRow, machine: Machine, connected: Machine | null): Fault {
  const now = connected === null ? 'no machine is' : `${textOf(connected)} is`;
  return new Fault('agent_not_connected', `${textOf(machine)} is not connected as ${agentLabel(agent)}: ${now}`, {
    hint: 'stop the agent on the other machine, wait until the right one is connected, and decide then',
  });
}
