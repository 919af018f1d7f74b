/** `GET /fleet`: how many machines stand how, for whoever may read them. */
import type { Agent, FleetSummary, fleetRoutes } from '../src/contract/agents.js';
import type { RolloutRecord } from '../src/contract/rollouts.js';
import { VERSION } from '../src/kernel/version.js';
import type { Core } from './core/core.js';
import type { Rights } from './core/rights.js';
import { countStandings } from './engine/convergence/standing-store.js';
import { countOpenRollouts } from './engine/rollouts/rollout-store.js';
import type { Rollouts } from './engine/rollouts/rollouts.js';
import type { AgentService } from './fleet/agent-service.js';
import { countOtherVersions } from './fleet/agent-store.js';
import type { HandlersFor } from './http/handler.js';

type RolloutState = RolloutRecord['state'];

interface FleetSummaryOptions extends Pick<Core, 'db'> {
  readonly agents: Pick<AgentService, 'list'>;
  /** Returns the number of approved agents of each standing. */
  readonly standings: () => FleetSummary['standings'];
  readonly rollouts: Rollouts['list'];
}

export function fleetHandlers(options: FleetSummaryOptions): HandlersFor<typeof fleetRoutes> {
  const ofAll = async (): Promise<FleetSummary> => {
    const open = await countOpenRollouts(options.db);
    return {
      outdated_agents: await countOtherVersions(options.db, VERSION),
      rollouts: rolloutCounts((state) => open.get(state) ?? 0),
      standings: options.standings(),
    };
  };
  return {
    getFleet: async ({ rights }) => ({
      status: 200,
      body: rights.isLimited ? await ofReadable(options, rights) : await ofAll(),
    }),
  };
}

/** Counts what the operator may read one by one. */
async function ofReadable({ agents, rollouts }: FleetSummaryOptions, rights: Rights): Promise<FleetSummary> {
  const approved = await agents.list({ status: 'approved', rights });
  const readable = approved.map(({ text }): Agent => JSON.parse(text));
  const states = ['running', 'reverting', 'paused', 'halted'] as const;
  const open = new Map<RolloutState, number>();
  for (const state of states) {
    open.set(state, (await rollouts({ limit: 1, offset: 0, state, assignment: null, rights })).total);
  }
  return {
    outdated_agents: readable.filter(({ agent_version }) => agent_version !== VERSION).length,
    rollouts: rolloutCounts((state) => open.get(state) ?? 0),
    standings: countStandings(readable.flatMap(({ standing }) => (standing === null ? [] : [{ standing }]))),
  };
}

const rolloutCounts = (count: (state: RolloutState) => number): FleetSummary['rollouts'] => ({
  running: count('running') + count('reverting'),
  paused: count('paused'),
  halted: count('halted'),
});
