/** `orch module schema`. */
import { defineCommand } from '../../define-command.js';
import { linesOf, textLines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch module schema > orch-module.schema.json'],
  detail: ['Editors that know JSON Schema complete and check *.orch.yaml files with it.'],
  access: 'local',
  run: async () => {
    const { moduleJsonSchema } = await import('../../../language/schema.js');
    const schema = moduleJsonSchema();
    return { body: schema, view: linesOf(textLines(JSON.stringify(schema, null, 2))) };
  },
});
