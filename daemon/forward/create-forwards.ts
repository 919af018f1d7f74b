/** Creates the forwards with their endpoints and the handlers of their routes. */
import { API_BASE } from '../../src/contract/contract.js';
import type { copyRoutes } from '../../src/contract/copy.js';
import { type forwardRoutes, SSH_PORT } from '../../src/contract/forward.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { Core } from '../core/core.js';
import type { HandlersFor } from '../http/handler.js';
import { createForwardAgentEndpoint, ForwardClientEndpoint } from './endpoints.js';
import { type ForwardFeature, Forwards, type ForwardsOptions } from './forwards.js';

export type ForwardParts = ReturnType<typeof createForwards>;

interface ForwardDependencies extends Pick<ForwardsOptions, 'link'> {
  /** Throws `agent_too_old` for an agent without the feature. */
  readonly features: { requireFeature(nodeId: NodeId, label: string, feature: ForwardFeature): void };
}

export function createForwards(core: Core, { link, features }: ForwardDependencies) {
  const { bus, settings } = core;
  const forwards = new Forwards({
    ...core,
    link,
    requireFeature: (nodeId, label, feature) => features.requireFeature(nodeId, label, feature),
    rules: () => ({ perOperator: settings()['forward.per_operator'], perAgent: settings()['forward.per_agent'] }),
  });
  bus.subscribe(['operator.removed'], ({ target }) => forwards.operatorRemoved(target.id));
  bus.subscribe(['operator.rights_changed', 'operator.expired'], () => forwards.rightsChanged(null));
  bus.subscribe(['agent.tags_changed'], ({ target }) => forwards.rightsChanged(target.id));
  const door = { ...core, forwards };
  return {
    forwards,
    agentEndpoint: createForwardAgentEndpoint(door),
    clientEndpoint: new ForwardClientEndpoint(door),
  };
}

export const forwardHandlers = (forwards: Forwards): HandlersFor<typeof forwardRoutes & typeof copyRoutes> => ({
  openForward: async ({ params, body, operator, context, baseUrl }) => {
    const request = { nodeId: params.node_id, operator, kind: 'forward', targets: body.targets } as const;
    return { status: 200, body: openedView(await forwards.begin(request, context), baseUrl) };
  },
  openSshProxy: async ({ params, body, operator, context, baseUrl }) => {
    // The client does not choose the host: the right to this route is the right to the machine itself.
    const targets = [{ host: 'localhost', port: body.port ?? SSH_PORT }];
    const request = { nodeId: params.node_id, operator, kind: 'ssh-proxy', targets } as const;
    return { status: 200, body: openedView(await forwards.begin(request, context), baseUrl) };
  },
  openCopy: async ({ params, body, operator, context, baseUrl }) => {
    const targets = body.paths.map((at) => ({ copy: body.direction, at }));
    const request = { nodeId: params.node_id, operator, kind: 'copy', targets } as const;
    return { status: 200, body: openedView(await forwards.begin(request, context), baseUrl) };
  },
});

const openedView = (
  { sessionId, ticket }: { readonly sessionId: string; readonly ticket: string },
  baseUrl: string,
) => ({
  session_id: sessionId,
  ws_url: `${baseUrl.replace(/^http/, 'ws')}${API_BASE}/forward/${sessionId}/stream?ticket=${ticket}`,
});
