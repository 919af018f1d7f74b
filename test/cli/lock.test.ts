/** Every command is complete: it loads, explains itself, and its help names all it takes. */
import { describe, expect, it } from 'vitest';
import { COMMANDS, GROUPS, SECTIONS } from '../../src/cli/commands/index.js';
import { entryOf, findCommand, wordsBelow } from '../../src/cli/find-command.js';
import { GLOBAL_OPTIONS } from '../../src/cli/global-options.js';
import { TOPICS } from '../../src/cli/help/topics.js';
import { flagOf, type Option } from '../../src/cli/options.js';
import { parseInput } from '../../src/cli/parse-input.js';
import { runOrch } from '../support/cli.js';

const listed = COMMANDS.filter(({ hidden }) => !hidden);

describe.each(COMMANDS.map((entry) => [entry.path, entry] as const))('orch %s', (path, entry) => {
  it('has a summary, and examples that are command lines of its own', async () => {
    const command = await entry.load();
    expect(entry.summary).toMatch(/^[\p{L}"].{8,}[^.]$/u);
    for (const example of command.examples) {
      const found = findCommand(wordsOf(example));
      expect(found).toMatchObject({ kind: 'command', entry: { path } });
      await parseInput(path, command, found.rest);
    }
  });

  it('documents every option and argument, none twice', async () => {
    const command = await entry.load();
    const { stdout, status } = await runOrch([...path.split(' '), '--help']);
    expect(status).toBe(0);
    expect(stdout.startsWith(`orch ${path}: `)).toBe(true);
    for (const [key, option] of Object.entries(command.options)) expect(timesExplained(key, option, stdout)).toBe(1);
    expect(stdout).toContain('orch help options');
    for (const argument of Object.values(command.args)) expect(stdout).toContain(`  ${argument.placeholder}  `);
    const shorts = Object.values({ ...GLOBAL_OPTIONS, ...command.options }).flatMap(({ short }) => short ?? []);
    expect(new Set(shorts).size).toBe(shorts.length);
    expect(Object.keys(command.options).filter((key) => key in GLOBAL_OPTIONS)).toEqual([]);
  });
});

/** Returns how often a page explains an option, on a line that begins with its flags. */
function timesExplained(key: string, option: Option<unknown>, page: string): number {
  expect(option.summary.length).toBeGreaterThan(8);
  // A value that may be left out follows an equals sign, because a word behind the flag is an argument.
  const value = option.bare === null ? ` ${option.placeholder}` : `[=${option.placeholder}]`;
  const flag = `${flagOf(key, option)}${option.placeholder === null ? '' : value}`;
  const pattern = new RegExp(`^ {2}.{4}${flag.replace(/[[\]]/g, '\\$&')}( |$)`);
  return page.split('\n').filter((line) => pattern.test(line)).length;
}

describe('orch help options', () => {
  it('explains each common option once', async () => {
    const { stdout } = await runOrch(['help', 'options']);
    for (const [key, option] of Object.entries(GLOBAL_OPTIONS)) expect(timesExplained(key, option, stdout)).toBe(1);
  });
});

/** The words of an example, as a shell would see them, without what stands beside it in a pipe or a redirection. */
function wordsOf(example: string): readonly string[] {
  const inside = /^source <\((.*)\)$/.exec(example)?.[1] ?? example;
  const parts = inside.split(/ [>|] /);
  const command = parts.find((part) => part.startsWith('orch ')) ?? parts[0] ?? '';
  const words = command.match(/'[^']*'|"[^"]*"|\S+/g) ?? [];
  expect(words[0]).toBe('orch');
  return words.slice(1).map((word) => word.replace(/^(['"])(.*)\1$/, '$2'));
}

describe('the index', () => {
  it('has each path once, and a group for every shared beginning', () => {
    const paths = COMMANDS.map(({ path }) => path);
    expect(new Set(paths).size).toBe(paths.length);
    const parents = paths.filter((path) => path.includes(' ')).map((path) => path.split(' ')[0] ?? '');
    const known = new Set([...GROUPS.map(({ path }) => path), ...paths]);
    expect(parents.filter((parent) => !known.has(parent))).toEqual([]);
    for (const { path, standard } of GROUPS) if (standard) expect(entryOf(`${path} ${standard}`)).toBeDefined();
  });

  it('shows every top-level word in one section of the help', () => {
    const shown = SECTIONS.flatMap(([, words]) => words);
    expect([...shown].sort()).toEqual([...wordsBelow('')].sort());
  });
});

describe('orch help --all', () => {
  it('holds every command and every topic', async () => {
    const { stdout: text } = await runOrch(['help', '--all']);
    expect(listed.filter(({ path }) => !text.includes(`── orch ${path} ──`))).toEqual([]);
    for (const { name } of TOPICS) expect(text).toContain(`help ${name}`);
  });

  it('fits 120 columns', async () => {
    const tooLong = (await runOrch(['help', '--all'])).stdout.split('\n').filter((line) => line.length > 120);
    expect(tooLong).toEqual([]);
  });
});
