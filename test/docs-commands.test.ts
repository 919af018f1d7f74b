/** Every command line of `orch` in the documents is one that the command accepts: its words, options and number of arguments. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findCommand } from '../src/cli/find-command.js';
import { parseInput } from '../src/cli/parse-input.js';
import { messageOf } from '../src/kernel/fault.js';

const root = fileURLToPath(new URL('..', import.meta.url));

const pages = ['README.md', 'examples/README.md'].concat(
  readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
);

/** Returns the command lines of a page: the lines of its blocks of commands that begin with `orch`, also after a prompt or a pipe. */
function commandsOf(page: string): readonly string[] {
  const text = readFileSync(join(root, page), 'utf8');
  const blocks = [...text.matchAll(/^ *```(?:sh|bash|console|shell)?\n([\s\S]*?)^ *```$/gm)].map(
    ([, block = '']) => block,
  );
  return blocks
    .flatMap((block) => block.replaceAll(/\\\n\s*/g, ' ').split('\n'))
    .flatMap((line) =>
      line
        .replace(/^\s*\$ /, '')
        .replace(/(^|\s+)#.*$/, '')
        .split(/ \| | && |; /),
    )
    .map((line) => line.trim())
    .filter((line) => /^orch(?= |$)/.test(line));
}

/** Splits a line as a shell does; placeholders of usage lines are not commands. */
function wordsOf(line: string): readonly string[] {
  const [command = ''] = line.split(/ (?:\d?>|<) ?\S/);
  return [...command.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) => word.replaceAll(/['"]/g, ''));
}

const isUsage = (line: string): boolean =>
  /\[OPTIONS\]|\[[A-Z]+[\].]|<[A-Z]|…\]|\|/.test(line) || line.includes('orch COMMAND');

async function problemOf(line: string): Promise<string | null> {
  const [, ...argv] = wordsOf(line);
  if (argv.some((word) => word === '--help' || word === '--version') || argv[0] === undefined) return null;
  const found = findCommand(argv);
  if (found.kind === 'group') return `${line}: there is no such command`;
  try {
    await parseInput(found.entry.path, await found.entry.load(), found.rest);
    return null;
  } catch (error) {
    return `${line}: ${messageOf(error)}`;
  }
}

describe('the command lines', () => {
  it.each(pages)('of %s are accepted', async (page) => {
    const problems = await Promise.all(
      commandsOf(page)
        .filter((line) => !isUsage(line))
        .map(problemOf),
    );
    expect(problems.filter((problem) => problem !== null)).toEqual([]);
  });

  it('are found', () => {
    expect(pages.flatMap(commandsOf).length).toBeGreaterThan(300);
    expect(commandsOf('docs/start.md')).toContain('orch agents approve 799bfa6f8f7e --name web-01');
  });

  it('are refused when they are wrong', async () => {
    expect(await problemOf('orch agents aprove web-01')).toMatch(/agents aprove/);
    expect(await problemOf('orch plan web-01 --fiel x')).toMatch(/unknown option/);
    expect(await problemOf('orch assignments create')).toMatch(/missing/);
  });
});
