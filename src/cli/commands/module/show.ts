/** `orch module show`. */
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { formatTime } from '../../format.js';
import { operatorNames } from '../../operator-names.js';
import { integer } from '../../option.js';
import { fields, linesOf, stack, textLines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch module show nginx', 'orch module show nginx --revision 3'],
  access: 'viewer',
  args: { name: argument('MODULE', 'name of the module', 'module') },
  options: { revision: integer('N', 'an older revision', 1) },
  run: async (context, { name, revision }) => {
    const api = await context.api();
    const query = { revision: revision ?? null };
    const module = await api.call('getModule', { params: { name }, query, signal: context.signal });
    const nameOf = await operatorNames(context, api);
    return {
      body: module,
      names: [module.name],
      view: stack(
        fields(
          ['Module', module.name],
          ['Revision', String(module.revision)],
          ['Uploaded', `${formatTime(module.uploaded_at)} by ${nameOf(module.uploaded_by)}`],
          ['SHA-256', module.sha256],
        ),
        linesOf(textLines(module.content)),
      ),
    };
  },
});
