/** Creates the forwards with their endpoints. */
import type { NodeId } from '../../src/kernel/ids.js';
import type { Core } from '../core/core.js';
import { createForwardAgentEndpoint, ForwardClientEndpoint } from './endpoints.js';
import { Forwards, type ForwardsOptions } from './forwards.js';

export type ForwardParts = ReturnType<typeof createForwards>;

interface ForwardDependencies extends Pick<ForwardsOptions, 'link'> {
  /** Throws `agent_too_old` for an agent without the feature. */
  readonly features: { requireFeature(nodeId: NodeId, label: string, feature: 'forward'): void };
}

export function createForwards(core: Core, { link, features }: ForwardDependencies) {
  const { bus, settings } = core;
  const forwards = new Forwards({
    ...core,
    link,
    requireFeature: (nodeId, label) => features.requireFeature(nodeId, label, 'forward'),
    rules: () => ({ perOperator: settings()['forward.per_operator'], perAgent: settings()['forward.per_agent'] }),
  });
  bus.subscribe(['operator.removed'], ({ target }) => forwards.operatorRemoved(target.id));
  const door = { ...core, forwards };
  return {
    forwards,
    agentEndpoint: createForwardAgentEndpoint(door),
    clientEndpoint: new ForwardClientEndpoint(door),
  };
}
