/** `orch ops watch`. */
import { isFault } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { followRun } from '../../runs/follow-run.js';
import { runOutcome } from '../../runs/run-outcome.js';
import { createRunProgress } from '../../runs/run-progress.js';
import { operationArgument } from './operation-argument.js';

export const command = defineCommand({
  examples: ['orch ops watch 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['Tells what is done already and follows to the end. Ctrl-C stops watching; the operation goes on.'],
  access: 'viewer',
  args: { id: operationArgument },
  run: async (context, { id }) => {
    const { signal, globals } = context;
    const api = await context.api();
    const params = { operation_id: id };
    const operation = await api.call('getOperation', { params, signal });
    const agent = await resolveNode(api, operation.node_id, { signal });
    const progress = createRunProgress(context, 'apply', 1);
    let told = 0;
    const follow = () => {
      let at = 0;
      return followRun(api.stream('getOperation', { params, signal }), {
        resource: (resource) => {
          at += 1;
          if (at <= told) return;
          told = at;
          progress.resource(agent, resource);
        },
      });
    };
    const result = await overSessions(follow);
    return runOutcome([{ agent, result }], { kind: 'apply', detailed: false, verbose: globals.verbose });
  },
});

/** A session may end in the middle: the next attempt logs in again, and begins anew, or is refused. */
async function overSessions<T>(follow: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await follow();
    } catch (error) {
      const hadBegun = isFault(error, 'unauthenticated') && error.data?.operation_id !== undefined;
      if (!hadBegun) throw error;
    }
  }
}
