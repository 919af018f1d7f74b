/** Handler of discovery. */
import type { discoveryRoutes } from '../../src/contract/discovery.js';
import type { HandlersFor } from '../http/handler.js';
import type { Discovery } from './discovery.js';

export const discoveryHandlers = (discovery: Discovery): HandlersFor<typeof discoveryRoutes> => ({
  discover: async ({ body, context }) => {
    const targets = await discovery.send(body.target ?? null, context);
    return { status: 200, body: { sent: true, targets: [...targets] } };
  },
});
