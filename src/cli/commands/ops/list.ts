/** `orch ops list`. */

import { defineCommand } from '../../define-command.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { operatorNames } from '../../operator-names.js';
import { choice, integer, text } from '../../option.js';
import { RUN_STATUSES } from '../../runs/run-status.js';
import { operationTable } from './operation-view.js';

export const command = defineCommand({
  examples: ['orch ops', 'orch ops --agent web-01 --status failed'],
  access: 'viewer',
  options: {
    agent: text('NODE', 'only of this agent', { completes: 'node' }),
    status: choice('STATUS', RUN_STATUSES, 'only those'),
    rollout: text('ID', 'only those of this rollout'),
    limit: integer('N', 'at most that many, newest first; 50 when left out', 1),
    offset: integer('N', 'leave out that many of the newest'),
  },
  run: async (context, { agent, status, rollout, limit, offset }) => {
    const { signal } = context;
    const api = await context.api();
    const query = { status: status ?? null, rollout: rollout ?? null, limit: limit ?? null, offset: offset ?? null };
    const one = agent === undefined ? null : await resolveNode(api, agent, { signal });
    const body = one
      ? await api.call('listAgentOperations', { params: { node_id: one.node_id }, query, signal })
      : await api.call('listOperations', { query, signal });
    const shown = body.offset + body.operations.length;
    if (shown < body.total) context.note(`${shown} of ${body.total}; more with --offset ${shown}`);
    return {
      body,
      names: body.operations.map(({ operation_id }) => operation_id),
      view: operationTable(body.operations, {
        nameOf: await operatorNames(context, api),
        now: context.clock.now(),
        filtered: [agent, status, rollout, offset].some((given) => given !== undefined),
      }),
    };
  },
});
