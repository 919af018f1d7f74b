/** Man pages of the commands, made of the same data as their help. */

/** Returns the text with what roff would read as a request or an escape made plain. */
const plain = (text) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');

const pageName = (path) => `orch${path === '' ? '' : `-${path.replaceAll(' ', '-')}`}`;

const head = (path, { version, date }) =>
  `.TH ${pageName(path).toUpperCase().replaceAll('-', '\\-')} 1 "${date}" "orch ${version}" "orch"\n`;

const entryOf = (label, text) => `.TP\n.B ${plain(label)}\n${plain(text)}\n`;

const section = (title, rows) =>
  rows.length === 0 ? '' : `.SH ${title}\n${rows.map(([label, text]) => entryOf(label, text)).join('')}`;

/**
 * Returns the man page of each command and the one of `orch` itself.
 *
 * @param {{commands: object, help: object, options: object}} modules the built modules `cli/commands/index`, `cli/help/syntax`
 *   and `cli/global-options`
 * @param {{version: string, date: string}} about version, and date of the page as `2026-11-23`
 * @returns {Promise<ReadonlyMap<string, string>>} the pages by file name, such as `orch-agents-list.1`
 */
export async function manPages({ commands, help, options }, about) {
  const shown = commands.COMMANDS.filter(({ hidden }) => !hidden);
  const pages = new Map([['orch.1', overview(shown, about)]]);
  for (const entry of shown) pages.set(`${pageName(entry.path)}.1`, await commandPage(entry, { help, options }, about));
  return pages;
}

function overview(shown, about) {
  return [
    head('', about),
    '.SH NAME\norch \\- keeps a fleet of machines in the state that you describe\n',
    '.SH SYNOPSIS\n.B orch\n.I COMMAND\n[\\fIOPTIONS\\fR]\n',
    section(
      'COMMANDS',
      shown.map(({ path, summary }) => [`orch ${path}`, `${summary}; see ${pageName(path)}(1)`]),
    ),
    '.SH FILES\n',
    entryOf('/etc/orch/orchestrator.yaml', 'settings of orch serve'),
    entryOf('/etc/orch/agent.yaml', 'settings of orch agent'),
    entryOf('/var/lib/orch', 'keys and store of the orchestrator'),
    entryOf('/var/lib/orch-agent', 'key and journal of the agent'),
  ].join('');
}

async function commandPage(entry, { help, options }, about) {
  const command = await entry.load();
  const rows = (given) =>
    Object.entries(given).map(([key, option]) => [help.optionSyntax(key, option).trim(), help.optionSummary(option)]);
  const access = help.accessOf(command);
  return [
    head(entry.path, about),
    `.SH NAME\n${plain(pageName(entry.path))} \\- ${plain(entry.summary)}\n`,
    `.SH SYNOPSIS\n${plain(help.usageOf(entry.path, command))}\n`,
    `.SH DESCRIPTION\n${plain(`${[...command.detail, ...(access === null ? [] : [access])].join('\n') || `${entry.summary}.`}`)}\n`,
    section(
      'ARGUMENTS',
      Object.values(command.args).map((one) => [one.placeholder, one.summary]),
    ),
    section('OPTIONS', rows(command.options)),
    section('COMMON OPTIONS', rows(options.optionsBeside(command))),
    `.SH EXAMPLES\n${command.examples.map((example) => `.PP\n.nf\n${plain(example)}\n.fi\n`).join('')}`,
    '.SH SEE ALSO\n.BR orch (1)\n',
  ].join('');
}
