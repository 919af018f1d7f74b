/** `orch sync`. */
import { argument } from '../argument.js';
import { defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { allAgents } from '../nodes/agent-pages.js';
import { flag } from '../option.js';
import { refuseConflicts, refuseMissingModules } from '../sync/sync-check.js';
import { readSync } from '../sync/sync-files.js';
import { planSync, readStored } from '../sync/sync-plan.js';
import { performSync, stepOf } from '../sync/sync-run.js';
import { pruneQuestion, syncView } from '../sync/sync-view.js';

export const command = defineCommand({
  examples: ['orch sync site/ --plan', 'orch sync site/', 'orch sync site/ --prune --yes'],
  detail: [
    'Makes the modules and assignments of the orchestrator those of a directory, as from a repository: every *.orch.yaml at',
    'any depth is a module, assignments.yaml and *.assignments.yaml list assignments (name, modules, selector, description).',
    'Nothing is sent unless every file is valid, assignments find their modules, and the modules of each agent go together.',
    'Then modules are uploaded, assignments made and changed, and with --prune what is in no file is deleted, assignments',
    'first. Nothing is applied: what it would change on machines shows orch plan. A sync that was cut off is run again.',
    'Signs: + create, ~ update, - delete; --verbose shows what changes in modules.',
  ],
  access: 'operator',
  consent: true,
  args: { directory: argument('DIR', 'the directory, such as a checkout of a repository', 'file') },
  options: {
    prune: flag('delete modules and assignments that are in no file'),
    plan: flag('show what would be done, and do nothing'),
    detailedExitcode: flag('end with 2 when something is or would be changed'),
  },
  run: async (context, { directory, prune, plan: isPlan, detailedExitcode }) => {
    const source = readSync(directory);
    const api = await context.api();
    const stored = await readStored(api, source, context.signal);
    refuseMissingModules(source, stored, prune);
    const plan = planSync(source, stored, prune);
    const { actions, extra } = plan;
    if (actions.length > 0) {
      const agents = await allAgents(api, { status: 'approved', signal: context.signal });
      await refuseConflicts(context, api, { source, stored, plan, agents });
      const question = isPlan ? null : pruneQuestion(actions, stored, agents);
      if (question !== null) await context.prompt.consent(question);
      if (!isPlan) await performSync(context, api, actions);
    }
    const status = isPlan ? 'planned' : 'done';
    return {
      body: { has_changes: actions.length > 0, actions: actions.map((action) => stepOf(action, status)), extra },
      names: actions.map(({ name }) => name),
      view: syncView(plan, { isDone: !isPlan, verbose: context.globals.verbose }),
      exitStatus: detailedExitcode && actions.length > 0 ? EXIT.changes : EXIT.done,
    };
  },
});
