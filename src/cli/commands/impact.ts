/** `orch impact`. */
import { argumentList } from '../argument.js';
import { defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { impactOf } from '../impact/impact.js';
import { impactMarkdown, impactView } from '../impact/impact-view.js';
import { readModules } from '../modules/read-modules.js';
import { choice } from '../option.js';
import { linesOf } from '../view.js';

export const command = defineCommand({
  examples: ['orch impact modules/', 'orch impact modules/ --format markdown'],
  detail: [
    'What the files would change in comparison with the current revisions, for every approved agent that has one of the',
    'modules, applied or assigned. It compares what the agents are to be, not the machines: nothing is uploaded or sent to an',
    'agent, and offline agents count too; orch plan looks at machines. --format markdown is for a review.',
    'Ends with 1 when the files cannot be resolved for an agent.',
  ],
  access: 'viewer',
  args: { paths: argumentList('PATH', 'module files, or directories whose *.orch.yaml are all compared', 'file') },
  options: { format: choice('FORMAT', ['markdown', 'json'], 'print Markdown, or the same as -o json') },
  run: async (context, { paths, format }) => {
    const impacts = await impactOf(context, await context.api(), readModules(paths));
    const has_changes = impacts.some(({ changes }) => changes.length > 0);
    const body = { has_changes, agents: impacts };
    const text = format === 'json' ? JSON.stringify(body, null, 2).split('\n') : impactMarkdown(impacts);
    return {
      body,
      names: impacts.filter(({ changes, error }) => changes.length > 0 || error !== null).map(({ name }) => name),
      view: format === undefined ? impactView(impacts) : linesOf(text),
      exitStatus: impacts.some(({ error }) => error !== null) ? EXIT.error : EXIT.done,
    };
  },
});
