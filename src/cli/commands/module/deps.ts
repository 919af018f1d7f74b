/** `orch module deps`. */
import { Fault } from '../../../kernel/fault.js';
import { type DependencyNode, dependencyGraph } from '../../../language/dependency-graph.js';
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { dependencyDot, dependencyLines } from '../../modules/dependency-view.js';
import { readModules } from '../../modules/read-modules.js';
import { headed, linesOf } from '../../view.js';

export const command = defineCommand({
  examples: ['orch module deps site.orch.yaml', 'orch module deps site.orch.yaml -o dot | dot -Tsvg > site.svg'],
  detail: [
    'Lists the resources in the order of application, each below what it waits for: depends_on, triggers, and the directory',
    'it lies in. Needs no orchestrator; the variants of a resource count together. -o dot is for Graphviz.',
  ],
  access: 'local',
  formats: ['dot'],
  args: { path: argument('PATH', 'a module file', 'file') },
  run: async (_context, { path }) => {
    const [module, other] = readModules([path]);
    if (!module || other) throw new Fault('usage', `${path} holds several modules; name one file`);
    const graph = dependencyGraph(module.definition);
    const name = module.name;
    return {
      body: { name, resources: graph },
      names: graph.map(nameOf),
      view: headed(name, linesOf(dependencyLines(graph))),
      dot: dependencyDot(name, graph),
    };
  },
});

const nameOf = ({ id, identities }: DependencyNode): string => id ?? identities.join(' or ');
