/** `orch module diff`. */
import type { ApiClient } from '../../../client/api-client.js';
import { isFault } from '../../../kernel/fault.js';
import { argumentList } from '../../argument.js';
import type { Context } from '../../context.js';
import { defineCommand } from '../../define-command.js';
import { requireValid } from '../../modules/check-files.js';
import { readModuleFiles } from '../../modules/module-files.js';
import { integer } from '../../option.js';
import { textDiff, textDiffLines } from '../../render/text-diff.js';
import { linesOf, stackOf, styled } from '../../view.js';

export const command = defineCommand({
  examples: ['orch module diff site.orch.yaml', 'orch module diff site.orch.yaml --revision 3'],
  detail: ['Compares files with the revisions that the orchestrator has: what a push would change. Uploads nothing.'],
  access: 'viewer',
  args: { paths: argumentList('PATH', 'module files, or directories whose *.orch.yaml are all compared', 'file') },
  options: { revision: integer('N', 'compare with an older revision instead of the current one', 1) },
  run: async (context, { paths, revision }) => {
    const files = requireValid(readModuleFiles(paths));
    const api = await context.api();
    const compared: Compared[] = [];
    for (const file of files) compared.push(await compare(context, api, { ...file, revision: revision ?? null }));
    const changed = compared.filter(({ has_changes }) => has_changes);
    return {
      body: compared.length === 1 ? compared[0] : compared,
      names: changed.map(({ name }) => name),
      view: stackOf(compared.map((one) => linesOf(shown(one)))),
    };
  },
});

interface Compared {
  readonly name: string;
  readonly path: string;
  /** Null when the orchestrator has no such module. */
  readonly revision: number | null;
  readonly has_changes: boolean;
  /** Unified; empty when nothing differs. */
  readonly diff: string;
}

interface ToCompare {
  readonly name: string;
  readonly path: string;
  readonly source: string;
  readonly revision: number | null;
}

async function compare(
  { signal }: Context,
  api: ApiClient,
  { name, path, source, revision }: ToCompare,
): Promise<Compared> {
  const stored = await api
    .call('getModule', { params: { name }, query: { revision }, signal })
    .catch((error: unknown) => {
      if (revision === null && isFault(error, 'module_not_found')) return null;
      throw error;
    });
  const before = { label: stored === null ? '/dev/null' : `${name} revision ${stored.revision}` };
  const diff = textDiff({ ...before, text: stored?.content ?? '' }, { label: path, text: source });
  return { name, path, revision: stored?.revision ?? null, has_changes: diff !== '', diff };
}

const shown = ({ name, path, revision, diff }: Compared) =>
  diff === '' ? [styled('good', `${path} is revision ${revision} of ${name}.`)] : textDiffLines(diff);
