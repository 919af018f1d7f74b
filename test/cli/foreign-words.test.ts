/** The words of other tools lead to the commands of orch. */
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands/index.js';
import { findCommand } from '../../src/cli/find-command.js';
import { FOREIGN_WORDS } from '../../src/cli/foreign-words.js';
import { runOrch } from '../support/cli.js';

/** Returns the command lines that a hint names. */
const commandsOf = (hint: string): readonly string[] =>
  [...hint.matchAll(/\borch ((?:[a-z-]+ ?)+)/g)].map(([, words = '']) => words.trim());

describe.each(FOREIGN_WORDS)('orch %s', (words) => {
  it('is wrong usage, and its hint names commands that exist', async () => {
    const ran = await runOrch(words.split(' '));
    expect(ran).toMatchObject({ status: 64, stdout: '' });
    const hint = ran.stderr.split('hint: ')[1] ?? '';
    const named = commandsOf(hint);
    expect(named.length + (hint.includes('ctl') ? 1 : 0)).toBeGreaterThan(0);
    for (const line of named) expect([line, findCommand(line.split(' ')).kind]).toEqual([line, 'command']);
    expect(hint).not.toContain('see: orch --help');
  });
});

it.each([
  ['terminal', 'orch term NODE'],
  ['ssh', 'orch term NODE'],
  ['run', 'orch exec NODE -- COMMAND'],
  ['logs', 'orch ops output ID'],
  ['nodes', 'orch agents list'],
  ['assignments apply', 'orch apply --assignment NAME'],
  ['agent list', 'did you mean "orch agents list"?'],
  ['agent approve', 'did you mean "orch agents approve"?'],
  ['modules list', 'did you mean "orch module list"?'],
  ['secret set TOKEN', 'did you mean "orch secrets set"?'],
  ['rollout show 1', 'did you mean "orch rollouts show"?'],
  ['operators', 'did you mean "orch operator"?'],
  ['serve start', 'orch-serve is the orchestrator'],
  ['agnets', 'did you mean "orch agents"?'],
])('orch %s: %s', async (words, hint) => {
  const ran = await runOrch(words.split(' '));
  expect(ran).toMatchObject({ status: 64, stderr: expect.stringContaining(hint) });
});

it('lists no word that is a command', () => {
  const paths = COMMANDS.map(({ path }) => path);
  expect(FOREIGN_WORDS.filter((word) => paths.includes(word))).toEqual([]);
  expect(new Set(FOREIGN_WORDS).size).toBe(FOREIGN_WORDS.length);
});
