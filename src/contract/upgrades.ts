/** Routes and schemas of the versions of agents, and of their upgrades. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { ErrorSchema } from '../resources/result.js';
import { route } from './route.js';
import { NodeId, NodeParams, Seconds, ulidOf } from './shapes.js';
import { UPGRADE_STATES, UPGRADE_WAIT } from './upgrade-states.js';

export const UpgradeSchema = closed({
  upgrade_id: ulidOf('ID of the upgrade'),
  node_id: NodeId,
  version: Type.String({ description: 'Version to install' }),
  from_version: Type.String({ description: 'Version of the agent at the request' }),
  state: Type.Enum(UPGRADE_STATES, { description: 'How far the upgrade has come' }),
  waits_for: nullable(Type.String({ description: 'What the agent waits for, such as an apply' })),
  error: nullable(ErrorSchema),
  requested_by: Type.String({ description: 'operator_id' }),
  requested_at: Seconds,
  updated_at: Seconds,
});
export type Upgrade = Type.Static<typeof UpgradeSchema>;

export const upgradeRoutes = {
  upgradeAgent: route({
    id: 'upgradeAgent',
    summary:
      "Replace an agent's release by another; the old one returns if the new one does not reach the orchestrator",
    tag: 'agents',
    method: 'POST',
    path: '/agents/{node_id}/upgrade',
    access: 'upgrade',
    params: NodeParams,
    body: closed({
      version: optional(Type.String({ maxLength: 64, description: "Default: the orchestrator's own version" })),
      force: optional(
        Type.Boolean({ description: 'Interrupt applies and terminals instead of waiting. Default false' }),
      ),
      wait_secs: optional(
        Type.Integer({
          minimum: 0,
          maximum: UPGRADE_WAIT.maximum,
          description: `Seconds to wait for applies and terminals. Default ${UPGRADE_WAIT.standard}`,
        }),
      ),
    }),
    bodyOptional: true,
    location: '/agents/{node_id}/upgrade',
    answers: { 202: UpgradeSchema },
    faults: [
      'agent_not_found',
      'agent_not_approved',
      'agent_not_connected',
      'package_not_found',
      'upgrade_in_progress',
    ],
  }),
  getAgentUpgrade: route({
    id: 'getAgentUpgrade',
    summary: 'The last upgrade of an agent',
    tag: 'agents',
    method: 'GET',
    path: '/agents/{node_id}/upgrade',
    access: 'read',
    params: NodeParams,
    answers: { 200: UpgradeSchema },
    faults: ['agent_not_found', 'upgrade_not_found'],
  }),
} as const;
