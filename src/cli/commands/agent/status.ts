/** `orch agent status`. */
import { defineCommand } from '../../define-command.js';
import { fieldsOf } from '../../view.js';
import { agentOptions } from './agent-options.js';

export const command = defineCommand({
  examples: ['orch agent status'],
  detail: ['Compare its node ID, which is the hash of its key, with what "orch agents approve" shows.'],
  access: 'local',
  options: agentOptions,
  run: async ({ programs }, input) => {
    const status = await programs.agent.status(input);
    const rows = Object.entries(status).map(
      ([key, value]) => [labelOf(key), value === null ? '-' : String(value)] as const,
    );
    return { body: status, names: [String(status.node_id)], view: fieldsOf(rows) };
  },
});

/** `node_id` is `Node ID`. */
const labelOf = (key: string): string => {
  const words = key.replaceAll('_', ' ').replace(/\bp?id\b/, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
};
