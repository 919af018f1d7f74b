/** Discovery: a signed packet with the address of the orchestrator for waiting agents. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { route } from './route.js';

const DiscoverSchema = closed({
  target: optional(
    Type.String({
      minLength: 1,
      maxLength: 300,
      description: 'One agent as host:port; default: every agent on the networks of the orchestrator',
    }),
  ),
});

const DiscoveredSchema = closed({
  sent: Type.Literal(true, { description: 'Always true: a failure is an error' }),
  targets: Type.Array(Type.String(), { description: 'Destinations of the packets, each as host:port' }),
});
export type Discovered = Type.Static<typeof DiscoveredSchema>;

export const discoveryRoutes = {
  discover: route({
    id: 'discover',
    summary: 'Send a discovery packet, at most one a second; agents connect and never answer it',
    tag: 'discovery',
    method: 'POST',
    path: '/discover',
    access: 'approve-agents',
    body: DiscoverSchema,
    bodyOptional: true,
    answers: { 200: DiscoveredSchema },
    faults: ['rate_limited', 'discovery_failed'],
  }),
} as const;
