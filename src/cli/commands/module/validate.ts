/** `orch module validate`. */
import { argumentList } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { EXIT } from '../../exit-status.js';
import { count } from '../../format.js';
import { checkFiles, diagnosticLines, sumUp } from '../../modules/check-files.js';
import { anyYamlOption, readModuleFiles } from '../../modules/module-files.js';
import { lines, linesOf, stackOf, styled } from '../../view.js';

export const command = defineCommand({
  examples: ['orch module validate site.orch.yaml', 'orch module validate modules/'],
  detail: ['Needs no orchestrator. Shows every mistake at once. Ends with 1 when a file has an error.'],
  access: 'local',
  args: { paths: argumentList('PATH', 'module files, or directories whose *.orch.yaml are all checked', 'file') },
  options: { anyYaml: anyYamlOption },
  run: async (_context, { paths, anyYaml }) => {
    const files = checkFiles(readModuleFiles(paths, { anyYaml }));
    const wrong = sumUp(files);
    const told =
      wrong === null
        ? styled('good', `${count(files.length, 'file is', 'files are')} valid.`)
        : styled('bad', `${wrong}.`);
    return {
      body: files.map(({ path, name, valid, diagnostics }) => ({ path, name, valid, diagnostics })),
      names: files.flatMap(({ name }) => name ?? []),
      view: stackOf([...files.map((file) => linesOf(diagnosticLines(file))), lines(told)]),
      exitStatus: wrong === null ? EXIT.done : EXIT.error,
    };
  },
});
