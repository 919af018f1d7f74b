/** `orch agent config-schema`. */
import { defineCommand } from '../../define-command.js';
import { createFile } from '../../modules/create-file.js';
import { text } from '../../option.js';
import { lines, linesOf, textLines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch agent config-schema > agent.schema.json', 'orch agent config-schema --out agent.schema.json'],
  access: 'local',
  options: { out: text('FILE', 'write it to a new file', { completes: 'file' }) },
  run: async ({ programs }, { out }) => {
    const schema = await programs.agent.configSchema();
    const json = JSON.stringify(schema, null, 2);
    if (out === undefined) return { body: schema, view: linesOf(textLines(json)) };
    createFile(out, `${json}\n`);
    return { names: [out], view: lines(`Wrote ${out}.`) };
  },
});
