/** `orch module check`. */
import { Fault, isFault } from '../../../kernel/fault.js';
import type { AgentFacts } from '../../../language/fill.js';
import { argumentList } from '../../argument.js';
import type { Context } from '../../context.js';
import { defineCommand } from '../../define-command.js';
import { EXIT } from '../../exit-status.js';
import { agentName, count } from '../../format.js';
import { type CheckedAgent, type Conflict, checkTogether } from '../../modules/check-together.js';
import { readAttributes, readTags } from '../../modules/facts.js';
import { type ReadModule, readModules } from '../../modules/read-modules.js';
import { allAgents } from '../../nodes/agent-pages.js';
import { list } from '../../option.js';
import { type Line, linesOf, stack, styled } from '../../view.js';

export const command = defineCommand({
  examples: [
    'orch module check modules/',
    'orch module check modules/ --attribute platform=linux --attribute distro=debian --tag role=web',
  ],
  detail: [
    'Resolves all the modules together, for each approved agent those that support it, and shows conflicts, variants that are',
    'missing or tied, and expressions that cannot be filled in. Secrets count as present. With --tag or --attribute it needs',
    'no orchestrator: they describe the one agent to check for. Uploads nothing. Ends with 1 when something is wrong.',
  ],
  access: 'local',
  connection: true,
  args: { paths: argumentList('PATH', 'module files, or directories whose *.orch.yaml are all checked', 'file') },
  options: {
    tag: list('KEY=VALUE', 'a tag of the agent to check for'),
    attribute: list('KEY=VALUE', 'an attribute of the agent to check for, such as platform=linux'),
  },
  run: async (context, { paths, tag, attribute }) => {
    const modules = readModules(paths);
    const described = tag.length > 0 || attribute.length > 0;
    const tags = readTags(tag);
    const agents = described ? [imagined(tags, readAttributes(attribute))] : await approvedAgents(context);
    const checked = agents.map((agent) => checkTogether(agent, modules));
    const errors = distinct(checked.flatMap((one) => one.errors));
    return {
      body: checked,
      names: checked.filter((one) => one.errors.length > 0).map(({ name }) => name),
      view: stack(
        linesOf(conflictLines(checked)),
        linesOf([...unusedLines(checked, modules), summary(checked, errors)]),
      ),
      exitStatus: errors.length === 0 ? EXIT.done : EXIT.error,
    };
  },
});

const imagined = (tags: AgentFacts['tags'], attributes: AgentFacts['attributes']): AgentFacts => ({
  node_id: '0'.repeat(32),
  name: 'the described agent',
  tags,
  attributes,
});

async function approvedAgents(context: Context): Promise<readonly AgentFacts[]> {
  try {
    const agents = await allAgents(await context.api(), { status: 'approved', signal: context.signal });
    if (agents.length > 0) return agents.map((agent) => ({ ...agent, name: agentName(agent) }));
  } catch (error) {
    if (!isFault(error, 'unreachable')) throw error;
    throw new Fault('unreachable', error.message, { hint: DESCRIBE, cause: error });
  }
  throw new Fault('usage', 'there is no approved agent to check for', { hint: DESCRIBE });
}

const DESCRIBE = 'describe an agent, such as with: --attribute platform=linux --tag role=web';

/** The same mistake on several agents is one. */
const distinct = (conflicts: readonly Conflict[]): readonly Conflict[] => [
  ...new Map(conflicts.map((conflict) => [keyOf(conflict), conflict])).values(),
];

const keyOf = ({ path, line, column, code, message }: Conflict): string =>
  JSON.stringify([path, line, column, code, message]);

function conflictLines(checked: readonly CheckedAgent[]): readonly Line[] {
  const told = (kind: 'errors' | 'warnings', word: Line): readonly Line[] =>
    distinct(checked.flatMap((one) => one[kind])).flatMap((conflict): readonly Line[] => {
      const agents = checked.filter((one) => one[kind].some((other) => keyOf(other) === keyOf(conflict)));
      const { path, line, column, message } = conflict;
      const head: Line = [
        `${path}:${line}:${column}: `,
        ...(typeof word === 'string' ? [word] : [word].flat()),
        message,
      ];
      return checked.length === 1 ? [head] : [head, styled('dim', `  on ${namesOf(agents)}`)];
    });
  return [...told('errors', styled('bad', 'error: ')), ...told('warnings', styled('warn', 'warning: '))];
}

/** More names than that are counted instead. */
const NAMED = 5;

function namesOf(agents: readonly CheckedAgent[]): string {
  const more = agents.length > NAMED ? ` and ${agents.length - NAMED} more` : '';
  return `${agents
    .slice(0, NAMED)
    .map(({ name }) => name)
    .join(', ')}${more}`;
}

const unusedLines = (checked: readonly CheckedAgent[], modules: readonly ReadModule[]): readonly Line[] =>
  modules
    .filter(({ name }) => !checked.some((one) => one.modules.includes(name)))
    .map(({ name, path }) => styled('warn', `${path}: not checked, because ${name} supports ${none(checked)}.`));

const none = ({ length }: readonly CheckedAgent[]): string => (length === 1 ? 'no such agent' : 'none of these agents');

function summary(checked: readonly CheckedAgent[], errors: readonly Conflict[]): Line {
  const agents = checked.length === 1 ? (checked[0]?.name ?? '') : count(checked.length, 'agent');
  if (errors.length > 0) return styled('bad', `${count(errors.length, 'error')} on ${agents}.`);
  return styled('good', `No conflicts on ${agents}.`);
}
