/** The reference of the command line, docs/cli.md and docs/cli/, made from the definitions of the commands. */
import { COMMANDS, type CommandEntry, GROUPS, SECTIONS } from '../../src/cli/commands/index.js';
import type { Command } from '../../src/cli/define-command.js';
import { CONNECTION_OPTIONS, CONSENT_OPTIONS, OUTPUT_OPTIONS } from '../../src/cli/global-options.js';
import { accessOf, optionSummary, optionSyntax, usageOf } from '../../src/cli/help/syntax.js';
import { TOPICS } from '../../src/cli/help/topics.js';
import { selectionOptions } from '../../src/cli/nodes/choose-agents.js';
import { nodeArgument, optionalNodesArgument } from '../../src/cli/nodes/resolve-node.js';
import { flagOf, type Options } from '../../src/cli/options.js';
import { loadPaint } from '../../src/cli/render/paint.js';
import { renderView } from '../../src/cli/render/render-view.js';
import { tableOptions } from '../../src/cli/table-options.js';
import { SERVE_SETTINGS } from '../../src/settings/serve.js';
import { flagOf as settingFlag } from '../../src/settings/setting.js';

/** Columns of the topics in docs/cli.md. */
const PAGE_WIDTH = 100;

/** Returns the pages by path: docs/cli.md lists all commands, and each command has a page of its own. */
export async function cliPages(): Promise<ReadonlyMap<string, string>> {
  const sections = SECTIONS.map(([title, words]) => ({ title, entries: words.flatMap(entriesOf) }));
  const pages = await Promise.all(
    sections
      .flatMap(({ entries }) => entries)
      .map(async (entry) => [`docs/cli/${fileOf(entry)}`, commandPage(entry, await entry.load())] as const),
  );
  const lists = sections.map(({ title, entries }) => {
    const rows = entries.map((entry) => [`[\`orch ${entry.path}\`](cli/${fileOf(entry)})`, entry.summary] as const);
    return `## ${title}\n\n${table(['command', 'purpose'], rows)}`;
  });
  const standards = GROUPS.flatMap(({ path, standard }) =>
    standard === undefined ? [] : `\`orch ${path} ${standard}\``,
  );
  const paint = await loadPaint(false);
  // The tables above contain the common options, and a page of its own has the exit statuses.
  const topics = TOPICS.filter(({ name }) => name !== 'options' && name !== 'exit-codes').map(({ name, view }) => {
    const text = renderView(view(PAGE_WIDTH), { paint, wide: true, columns: null }).join('\n');
    return `### \`orch help ${name}\`\n\n${block(text)}`;
  });
  const index = `# The \`orch\` command

\`orch COMMAND --help\` prints the help of one command, \`orch help --all\` that of all.

${lists.join('\n\n')}

The last word of these commands may be left out: ${standards.join(', ')}.

## Common options

Every command accepts these options:

${optionTable(OUTPUT_OPTIONS)}

Commands that talk to the orchestrator also accept these. A flag overrides its [variable](#orch-help-environment), and a variable overrides the profile.

${optionTable(CONNECTION_OPTIONS)}

Commands that ask for consent also accept this one. Without a terminal and without it, they fail with exit status 64.

${optionTable(CONSENT_OPTIONS)}

### Selecting agents

\`NODE\` is an agent name, node ID, or a unique prefix of 4 characters or more. Commands that take several also take "web[01-20]", and in their place:

${optionTable(selectionOptions)}

### Arranging tables

Commands that print a table accept these; their pages and their help list the columns.

| option | meaning |
|---|---|
| \`--sort COLUMN\` | sort by a column; -COLUMN reverses the order |
| \`--columns LIST\` | columns to show, also those of -o wide |

## Topics

\`orch help exit-codes\` prints the [exit statuses](reference/exit-statuses.md).

${topics.join('\n\n')}
`;
  return new Map([['docs/cli.md', index], ...pages]);
}

/** Returns the commands that begin with a word. */
const entriesOf = (word: string): readonly CommandEntry[] => COMMANDS.filter(({ path }) => path.split(' ')[0] === word);

const fileOf = ({ path }: CommandEntry): string => `${path.replaceAll(' ', '-')}.md`;

function commandPage(entry: CommandEntry, command: Command): string {
  const { path, summary } = entry;
  const { args, detail, examples } = command;
  const options = Object.fromEntries(
    Object.entries(command.options).filter(([key, option]) => !SETTING_FLAGS.has(flagOf(key, option))),
  );
  const sorting = tableOptions(command.columns);
  const shown = Object.fromEntries(Object.entries(options).filter(([, option]) => !SELECTING.has(option)));
  const selecting = Object.entries(options).filter(([, option]) => SELECTING.has(option));
  const isComplete = Object.keys(options).length === Object.keys(command.options).length;
  const taken = Object.values(args).map(
    (one) => `| \`${one.placeholder}\` | ${NODES.get(one.summary) ?? prose(one.summary)} |`,
  );
  const rows = [...taken, ...optionRowsOf(shown)];
  const kinds = [taken.length > 0 ? 'argument' : '', rows.length > taken.length ? 'option' : ''];
  const head = kinds.filter((kind) => kind !== '').join(', ');
  const access = accessOf(command);
  const [group = ''] = path.split(' ');
  const hasSiblings = entriesOf(group).length > 1;
  return `${[
    `# \`orch ${path}\``,
    `${prose(capitalized(summary))}.`,
    ...(examples.join('\n') === usageOf(path, command) ? [] : [block(examples.join('\n'))]),
    block(usageOf(path, command)),
    ...(rows.length === 0 ? [] : [[`| ${head} | meaning |`, '|---|---|', ...rows].join('\n')]),
    ...(selecting.length === 0
      ? []
      : [
          `To [select agents](../cli.md#selecting-agents): ${flagList(selecting.map(([key, option]) => flagOf(key, option)))}.`,
        ]),
    ...(sorting === null
      ? []
      : [
          `To [arrange the table](../cli.md#arranging-tables): \`--sort\`, \`--columns\` with ${sorting.columns.choices?.join(', ')}.`,
        ]),
    ...(isComplete ? [] : ['Each [setting](../configuration.md) is an option too.']),
    ...(detail.length === 0 ? [] : [prose(detail.join('\n'))]),
    ...(access === null ? [] : [access]),
    ...(hasSiblings ? [`[\`orch ${group} …\`](../cli.md#${sectionOf(group)})`] : []),
  ].join('\n\n')}
`;
}

/** Returns the anchor of the section of docs/cli.md that lists the commands of a word. */
const sectionOf = (word: string): string =>
  (SECTIONS.find(([, words]) => words.includes(word))?.[0] ?? '').toLowerCase().replaceAll(' ', '-');

/** Flags of the settings of `orch serve` except its data directory, which other commands have too. */
const SETTING_FLAGS: ReadonlySet<string> = new Set(
  Object.entries(SERVE_SETTINGS)
    .filter(([key]) => key !== 'data_dir')
    .map(([key, setting]) => settingFlag(key, setting).flag),
);

/** Links in place of the words for agents, which docs/cli.md has once. */
const NODES: ReadonlyMap<string, string> = new Map([
  [nodeArgument.summary, '[an agent](../cli.md#selecting-agents)'],
  [optionalNodesArgument.summary, '[agents](../cli.md#selecting-agents)'],
]);

/** Options that docs/cli.md explains once for all commands. */
const SELECTING: ReadonlySet<unknown> = new Set(Object.values(selectionOptions));

const flagList = (flags: readonly string[]): string => flags.map((flag) => `\`${flag}\``).join(', ');

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

const block = (text: string): string => `\`\`\`\n${text}\n\`\`\``;

const optionTable = (options: Options): string =>
  ['| option | meaning |', '|---|---|', ...optionRowsOf(options)].join('\n');

/** Returns the rows of a table that explain options. */
const optionRowsOf = (options: Options): readonly string[] =>
  Object.entries(options).map(
    ([key, option]) =>
      `| \`${optionSyntax(key, option).trim().replaceAll('|', '\\|')}\` | ${prose(optionSummary(option))} |`,
  );

/** Returns a table whose first column is Markdown and whose second column is text of the help. */
function table(head: readonly [string, string], rows: readonly (readonly [string, string])[]): string {
  const lines = rows.map(([first, second]) => `| ${first} | ${prose(second)} |`);
  return [`| ${head.join(' | ')} |`, '|---|---|', ...lines].join('\n');
}

/** Returns text of the help as Markdown: quoted commands become code, and characters with a meaning are escaped. */
const prose = (text: string): string =>
  text
    .split(/"(orch\s[^"]+)"/)
    .map((piece, index) => (index % 2 === 1 ? `\`${piece.replaceAll('\n', ' ')}\`` : escaped(piece)))
    .join('');

const escaped = (text: string): string => text.replaceAll(/[\\*~<|`[\]]/g, '\\$&').replaceAll(/^[-+#>]/gm, '\\$&');
