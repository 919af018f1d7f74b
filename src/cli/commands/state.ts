/** `orch state`: the believed state of an agent. */
import type { State } from '../../contract/operations.js';
import { defineCommand } from '../define-command.js';
import { agentHandle, formatTime } from '../format.js';
import { nodeArgument, resolveNode } from '../nodes/resolve-node.js';
import { fields, headed, type Line, linesOf, stack, type TableView, type View } from '../outcome.js';

export const command = defineCommand({
  examples: ['orch state web-01'],
  access: 'viewer',
  args: { node: nodeArgument },
  run: async (context, { node }) => {
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal: context.signal });
    const state = await api.call('getState', { params: { node_id: agent.node_id }, signal: context.signal });
    return {
      body: state,
      names: state.applied.map(({ kind, identity }) => `${kind} ${identity}`),
      view: stateView(state, agentHandle(agent)),
    };
  },
});

const stateView = (state: State, name: string): View =>
  stack(
    fields(['Agent', name], ['As of operation', state.operation_id ?? 'none']),
    appliedTable(state.applied),
    listed('Removed by the next apply', state.pending_removals),
    listed('Wanted, but never applied', state.unapplied),
  );

const appliedTable = (applied: State['applied']): TableView => ({
  kind: 'table',
  columns: [
    { title: 'MODULE' },
    { title: 'KIND' },
    { title: 'IDENTITY' },
    { title: 'ORIGIN' },
    { title: 'APPLIED' },
    { title: 'OPERATION', wide: true },
  ],
  rows: applied.map((resource) => [
    resource.module,
    resource.kind,
    resource.identity,
    resource.origin,
    formatTime(resource.applied_at),
    resource.operation_id,
  ]),
  empty: 'Nothing is managed on it.',
});

function listed(title: string, resources: State['unapplied']): View {
  const all = resources.map(({ module, kind, identity }): Line => `  ${kind} ${identity} (${module})`);
  return headed(title, linesOf(all));
}
