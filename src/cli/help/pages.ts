/** The pages of the help: the overview, one for each group and command, and all of them. Each is made for a number of columns. */
import { COMMANDS, type CommandEntry, SECTIONS } from '../commands/index.js';
import { entryOf, groupOf, wordsBelow } from '../find-command.js';
import { headed, lines, linesOf, stack, stackOf, styled, type View } from '../outcome.js';
import { accessOf, explainedOptions, optionRows, usageOf } from './syntax.js';
import { TOPICS } from './topics.js';
import { examples, paragraphs, terms, wrapWords } from './wrap.js';

const EXAMPLES = ['orch agents', 'orch plan web-01 -f site.orch.yaml', 'orch apply web-01 -f site.orch.yaml'];

/** `orch --help`. */
export function overview(width: number): View {
  const sections = SECTIONS.map(([title, words]) =>
    headed(
      title,
      terms(
        words.map((word) => [word, summaryOf(word)] as const),
        width,
      ),
    ),
  );
  return stackOf([
    paragraphs(['orch keeps a fleet of machines in the state that you describe.'], width),
    headed('Examples', examples(EXAMPLES, width)),
    ...sections,
    headed(
      'Topics',
      terms(
        TOPICS.map(({ name, summary }) => [`help ${name}`, summary] as const),
        width,
      ),
    ),
    paragraphs(['orch COMMAND --help explains a command, orch help --all every one of them.'], width),
  ]);
}

/** `orch agents --help`, and `orch --help` for no path. */
export async function groupHelp(path: string, width: number): Promise<View> {
  if (path === '') return overview(width);
  const group = groupOf(path);
  const words = [group?.fallback, group?.standard].flatMap((word) => word ?? []);
  const shown = words.length > 0 ? words : wordsBelow(path).slice(0, 1);
  const loaded = await Promise.all(shown.map((word) => entryOf(`${path} ${word}`)?.load()));
  const rows = wordsBelow(path).map((word) => [`${path} ${word}`, summaryOf(`${path} ${word}`)] as const);
  const standard = group?.standard ? [`"orch ${path}" alone is "orch ${path} ${group.standard}".`] : [];
  const otherwise = group?.fallback ? [`Before any other word it is "orch ${path} ${group.fallback}".`] : [];
  return stack(
    paragraphs([`orch ${path}: ${group?.summary ?? ''}.`], width),
    headed(
      'Examples',
      examples(
        loaded.flatMap((command) => command?.examples[0] ?? []),
        width,
      ),
    ),
    headed('Commands', terms(rows, width)),
    paragraphs(
      [...standard, ...otherwise, `Options of a command: orch ${path} ${wordsBelow(path)[0] ?? 'COMMAND'} --help`],
      width,
    ),
  );
}

export async function commandHelp(entry: CommandEntry, width: number): Promise<View> {
  const command = await entry.load();
  const access = accessOf(command);
  const below = wordsBelow(entry.path).map((word) => `${entry.path} ${word}`);
  const usage = wrapWords(usageOf(entry.path, command), width - 6);
  return stack(
    paragraphs([`orch ${entry.path}: ${entry.summary}.`], width),
    headed('Examples', examples(command.examples, width)),
    headed('Usage', linesOf(usage.map((line, index) => `${index === 0 ? '  ' : '      '}${line}`))),
    headed(
      'Arguments',
      terms(
        Object.values(command.args).map((argument) => [argument.placeholder, argument.summary] as const),
        width,
      ),
    ),
    headed('Options', terms(optionRows(explainedOptions(command)), width)),
    paragraphs(
      [`Common options, such as ${command.connection ? '-o, -q and --profile' : '-o and -q'}: orch help options`],
      width,
    ),
    paragraphs(command.detail, width),
    headed(
      'See also',
      terms(
        below.map((path) => [path, summaryOf(path)] as const),
        width,
      ),
    ),
    paragraphs(access === null ? [] : [access], width),
  );
}

/** Returns the overview, the commands in index order, and the topics. */
export async function everyPage(width: number): Promise<View> {
  const commands: View[] = [];
  for (const entry of COMMANDS.filter(({ hidden }) => !hidden)) {
    commands.push(lines(styled('accent', `── orch ${entry.path} ──`)), await commandHelp(entry, width));
  }
  return stackOf([overview(width), ...commands, ...TOPICS.map((topic) => topic.view(width))]);
}

const summaryOf = (path: string): string => groupOf(path)?.summary ?? entryOf(path)?.summary ?? '';
