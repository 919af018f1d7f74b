/** Counts of the fleet. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import { route } from './route.js';
import { StandingCountsSchema } from './standings.js';

export const FleetSummarySchema = closed({
  outdated_agents: Type.Integer({
    description: 'Number of approved agents with another version than the orchestrator',
  }),
  rollouts: closed(
    {
      running: Type.Integer({ description: 'Rollouts that go on' }),
      paused: Type.Integer({ description: 'Rollouts that an operator has paused' }),
      halted: Type.Integer({ description: 'Rollouts that reached a bound' }),
    },
    { description: 'Number of rollouts in each state that has not ended; reverting ones count as running' },
  ),
  standings: { ...StandingCountsSchema, description: 'Number of approved agents of each standing' },
});
export type FleetSummary = Type.Static<typeof FleetSummarySchema>;

export const fleetRoutes = {
  getFleet: route({
    id: 'getFleet',
    summary: 'Number of agents by standing, of agents with another version, and of open rollouts',
    tag: 'agents',
    method: 'GET',
    path: '/fleet',
    access: 'read',
    grants: 'filtered',
    answers: { 200: FleetSummarySchema },
    faults: [],
  }),
} as const;
