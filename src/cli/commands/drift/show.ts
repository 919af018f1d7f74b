/** `orch drift show`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { nameOfNode } from '../../nodes/name-of-node.js';
import { operatorNames } from '../../operator-names.js';
import { driftDetails } from './drift-view.js';

export const command = defineCommand({
  examples: ['orch drift show 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  access: 'viewer',
  args: { id: argument('ID', 'drift ID, as "orch drift list" shows it', 'drift') },
  run: async (context, { id }) => {
    const api = await context.api();
    const record = await api.call('getDrift', { params: { drift_id: id }, signal: context.signal });
    const name = await nameOfNode(context, api, record.node_id);
    const nameOf = await operatorNames(context, api);
    return {
      body: record,
      names: [record.drift_id],
      view: driftDetails(record, { name, nameOf, verbose: context.globals.verbose }),
    };
  },
});
