/** Handlers of the routes that open forwards. */
import { API_BASE } from '../../src/contract/contract.js';
import { type forwardRoutes, SSH_PORT } from '../../src/contract/forward.js';
import type { HandlersFor } from '../http/handler.js';
import type { Forwards } from './forwards.js';

export const forwardHandlers = (forwards: Forwards): HandlersFor<typeof forwardRoutes> => ({
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
});

const openedView = (
  { sessionId, ticket }: { readonly sessionId: string; readonly ticket: string },
  baseUrl: string,
) => ({
  session_id: sessionId,
  ws_url: `${baseUrl.replace(/^http/, 'ws')}${API_BASE}/forward/${sessionId}/stream?ticket=${ticket}`,
});
