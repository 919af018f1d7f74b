/** Forwards: connections through an agent to targets that its settings permit. */
import * as Type from 'typebox';
import type { FaultCode } from '../kernel/fault.js';
import { ForwardTargetSchema } from '../kernel/forward-target.js';
import { closed, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { NodeParams, ulidOf } from './shapes.js';

/** Port of the SSH server of a machine, unless the request names another. */
export const SSH_PORT = 22;

/** Maximum targets of a forward, as in `FORWARD_LIMITS`. */
export const FORWARD_TARGETS_MAX = 32;

export const OpenedForwardSchema = closed({
  session_id: ulidOf('ID of the session'),
  ws_url: Type.String({
    description: 'WebSocket address with a ticket that is valid once, for 30 s; docs/protocols/forward.md describes it',
  }),
});

/** Returns the faults of opening a session. @param refused the fault of a target that the agent does not permit */
export const sessionFaults = <Refused extends FaultCode>(refused: Refused) =>
  [
    'tls_required',
    'agent_not_found',
    'agent_not_approved',
    'agent_not_connected',
    'agent_too_old',
    'agent_timeout',
    refused,
    'forward_limit',
  ] as const;

const FAULTS = sessionFaults('forward_refused');

/** Answers 404 for an agent without a connection, as for an unknown node. */
export const STATUSES = { agent_not_connected: 404 } as const;

export const forwardRoutes = {
  openForward: route({
    id: 'openForward',
    summary: 'Open a session of connections to targets that the agent reaches',
    tag: 'forward',
    method: 'POST',
    path: '/agents/{node_id}/forward',
    access: 'forward',
    tls: true,
    secretAnswer: true,
    params: NodeParams,
    body: closed({
      targets: Type.Array(ForwardTargetSchema, {
        minItems: 1,
        maxItems: FORWARD_TARGETS_MAX,
        description: 'Targets, which connections name by their position',
      }),
    }),
    answers: { 200: OpenedForwardSchema },
    statuses: STATUSES,
    faults: FAULTS,
  }),
  openSshProxy: route({
    id: 'openSshProxy',
    summary: "Open a session of connections to the machine's own SSH server",
    tag: 'forward',
    method: 'POST',
    path: '/agents/{node_id}/ssh-proxy',
    access: 'ssh-proxy',
    tls: true,
    secretAnswer: true,
    params: NodeParams,
    bodyOptional: true,
    body: closed({
      port: optional(Type.Integer({ minimum: 1, maximum: 65_535, description: `Port of the server [${SSH_PORT}]` })),
    }),
    answers: { 200: OpenedForwardSchema },
    statuses: STATUSES,
    faults: FAULTS,
  }),
} as const;
