/** `orch module schema`. */
import { defineCommand } from '../../define-command.js';
import { createFile } from '../../modules/create-file.js';
import { text } from '../../option.js';
import { lines, linesOf, textLines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch module schema > orch-module.schema.json', 'orch module schema --out orch-module.schema.json'],
  detail: ['Editors that know JSON Schema complete and check *.orch.yaml files with it.'],
  access: 'local',
  options: { out: text('FILE', 'write it to a new file', { completes: 'file' }) },
  run: async (_context, { out }) => {
    const { moduleJsonSchema } = await import('../../../language/schema.js');
    const schema = moduleJsonSchema();
    const json = JSON.stringify(schema, null, 2);
    if (out === undefined) return { body: schema, view: linesOf(textLines(json)) };
    createFile(out, `${json}\n`);
    return { names: [out], view: lines(`Wrote ${out}.`) };
  },
});
