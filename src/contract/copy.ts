/** Copies: files of a machine that its settings let operators read or write. */
import * as Type from 'typebox';
import { COPY_DIRECTIONS, CopyPathSchema } from '../kernel/copy-target.js';
import { closed } from '../kernel/schema.js';
import { FORWARD_TARGETS_MAX, OpenedForwardSchema, STATUSES, sessionFaults } from './forward.js';
import { route } from './route.js';
import { NodeParams } from './shapes.js';

export const copyRoutes = {
  openCopy: route({
    id: 'openCopy',
    summary: 'Open a session that copies files from or to the machine of an agent',
    tag: 'forward',
    method: 'POST',
    path: '/agents/{node_id}/copy',
    access: 'copy',
    tls: true,
    secretAnswer: true,
    params: NodeParams,
    body: closed({
      direction: Type.Enum(COPY_DIRECTIONS, {
        description: 'read: files of the machine are sent to the client; write: the machine receives files',
      }),
      paths: Type.Array(CopyPathSchema, {
        minItems: 1,
        maxItems: FORWARD_TARGETS_MAX,
        description: 'Paths, which connections name by their position',
      }),
    }),
    answers: { 200: OpenedForwardSchema },
    statuses: STATUSES,
    faults: sessionFaults('copy_refused'),
  }),
} as const;
