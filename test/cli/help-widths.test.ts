/** Every page of the help fits terminals of several widths, keeps its words whole, and says all that the definitions say. */
import { describe, expect, it } from 'vitest';
import { COMMANDS, GROUPS } from '../../src/cli/commands/index.js';
import { explainedOptions, optionSummary, usageOf } from '../../src/cli/help/syntax.js';
import { TOPICS } from '../../src/cli/help/topics.js';
import { wrapCommand } from '../../src/cli/help/wrap.js';
import { widthOf } from '../../src/cli/render/terminal-text.js';
import { runOrch } from '../support/cli.js';

const WIDTHS = [60, 80, 120];
/** Columns that the help uses at most. */
const WIDEST = 100;

const pageOf = async (argv: readonly string[], columns?: number): Promise<string> => {
  const ran = await runOrch(argv, { env: { NO_COLOR: '1', ORCH_PAGER: '' }, ...(columns ? { columns } : {}) });
  expect(ran).toMatchObject({ status: 0, stderr: '' });
  return ran.stdout;
};

/** Returns the words of a text. A backslash that continues a command line is not one. */
const wordsOf = (text: string): readonly string[] => text.split(/\s+/).filter((word) => word !== '' && word !== '\\');

const PAGES: readonly (readonly [string, readonly string[]])[] = [
  ['orch --help', ['--help']],
  ['orch help --all', ['help', '--all']],
  ...COMMANDS.map(({ path }) => [`orch help ${path}`, [...path.split(' '), '--help']] as const),
  ...GROUPS.map(({ path }) => [`orch help ${path}`, ['help', ...path.split(' ')]] as const),
  ...TOPICS.map(({ name }) => [`orch help ${name}`, ['help', name]] as const),
];

describe.each(PAGES)('%s', (_, argv) => {
  it('fits, and breaks between words only', async () => {
    const pages = await Promise.all(WIDTHS.map((columns) => pageOf(argv, columns)));
    for (const [index, page] of pages.entries()) {
      const room = Math.min(WIDTHS[index] ?? 0, WIDEST);
      expect(page.split('\n').filter((line) => widthOf(line) > room)).toEqual([]);
      expect(wordsOf(page)).toEqual(wordsOf(pages[0] ?? ''));
    }
  });
});

it.each(COMMANDS.map((entry) => [entry.path, entry] as const))(
  'orch help %s has each text of its definition, in order: what it does and examples first',
  async (path, entry) => {
    const command = await entry.load();
    const page = wordsOf(await pageOf([...path.split(' '), '--help'], 60)).join(' ');
    const expected = [
      entry.summary,
      'Examples',
      ...command.examples,
      'Usage',
      usageOf(path, command),
      ...Object.values(command.args).map(({ summary }) => summary),
      ...Object.values(explainedOptions(command)).map(optionSummary),
      'orch help options',
      ...command.detail,
    ];
    let from = 0;
    for (const text of expected) {
      const at = page.indexOf(wordsOf(text).join(' '), from);
      expect([text, at >= from]).toEqual([text, true]);
      from = at;
    }
  },
);

it('has 80 columns where the width of the terminal is unknown', async () => {
  expect(await pageOf(['apply', '--help'])).toBe(await pageOf(['apply', '--help'], 80));
});

it('lists the common options once', async () => {
  const all = await pageOf(['help', '--all']);
  expect(all.split('\n').filter((line) => line.includes('--tls-fingerprint HEX '))).toHaveLength(1);
});

it('continues a command line as a shell does, and keeps quoted words whole', () => {
  expect(wrapCommand('orch plan --selector "role=web, env=prod" -m nginx', 40)).toEqual([
    'orch plan --selector \\',
    '"role=web, env=prod" -m nginx',
  ]);
});
