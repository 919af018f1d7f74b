/** `orch agent config-schema`. */
import { defineCommand } from '../../define-command.js';
import { linesOf, textLines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch agent config-schema > agent.schema.json'],
  access: 'local',
  run: async ({ programs }) => {
    const schema = await programs.agent.configSchema();
    return { body: schema, view: linesOf(textLines(JSON.stringify(schema, null, 2))) };
  },
});
