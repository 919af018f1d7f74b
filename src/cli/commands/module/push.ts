/** `orch module push`. */
import { argumentList } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { anyYamlOption, readModuleFiles } from '../../modules/module-files.js';
import { uploadFiles } from '../../modules/upload.js';
import { linesOf } from '../../view.js';

export const command = defineCommand({
  examples: ['orch module push site.orch.yaml', 'orch module push modules/', 'orch module push --any-yaml legacy/'],
  detail: ['Uploads nothing unless every file is valid. A module of the same name gets a new revision.'],
  access: 'operator',
  args: { paths: argumentList('PATH', 'module files, or directories whose *.orch.yaml are all uploaded', 'file') },
  options: { anyYaml: anyYamlOption },
  run: async (context, { paths, anyYaml }) => {
    const uploaded = await uploadFiles(context, await context.api(), readModuleFiles(paths, { anyYaml }));
    const bodies = uploaded.map(({ path: _, ...body }) => body);
    return {
      body: bodies.length === 1 ? bodies[0] : bodies,
      names: uploaded.map(({ name }) => name),
      view: linesOf(
        uploaded.map(({ name, path, changed }) => `${changed ? 'Uploaded' : 'Unchanged:'} ${name} (${path}).`),
      ),
    };
  },
});
