/** Steps that are due together: which become one command, and what becomes of each when it fails. */
import { describe, expect, it } from 'vitest';
import { type DueStep, performSteps, type Workshop } from '../../../src/agent/converge/perform-steps.js';
import { targetsOf } from '../../../src/agent/converge/target.js';
import type { Command, CommandResult } from '../../../src/resources/command.js';
import type { Host, RunStep, Step } from '../../../src/resources/host.js';
import { content, host as realHost, script } from '../../support/agent.js';

const shop = (host: Host): Workshop => ({ host, quotable: (_targets, result) => result });

/** A machine on which commands with a word among `bad` fail. */
function machine(...bad: readonly string[]) {
  const ran: string[] = [];
  const real = realHost();
  const host: Host = {
    platform: 'linux',
    accounts: () => real.accounts(),
    observe: (requests) => real.observe(requests),
    commit: async (steps) => steps.map(({ path }) => (path === '/bad' ? { code: 'read_only', message: 'no' } : null)),
    run: async ({ argv }: Command): Promise<CommandResult> => {
      ran.push(argv.join(' '));
      const code = argv.some((word) => bad.includes(word)) ? 1 : 0;
      return { end: { how: 'exited', code }, stdout: `${argv.join(' ')}\n`, stderr: '', truncated: false };
    },
  };
  return { host, ran };
}

function due(...steps: readonly Step[]): readonly DueStep[] {
  const resources = steps.map((_, index) => script(`s${index}`, { apply: 'true' }));
  const targets = targetsOf(content(resources), 'linux');
  return targets.flatMap((target, index) => {
    const step = steps[index];
    return step === undefined ? [] : [{ target, step }];
  });
}

const install = (...items: readonly string[]): RunStep => ({
  do: 'run',
  command: { argv: ['install', '--'] },
  items,
});
const reload: RunStep = { do: 'run', command: { argv: ['reload'] } };
const fates = async (host: Host, steps: readonly DueStep[]) =>
  (await performSteps(shop(host), steps)).map(({ refusal }) => refusal?.code ?? 'done');

describe('steps that are due together', () => {
  it('are one command with the items of all, each once, in their order', async () => {
    const { host, ran } = machine();
    const other: RunStep = { do: 'run', command: { argv: ['remove', '--'] }, items: ['c'] };
    expect(await fates(host, due(install('a'), reload, install('b', 'a'), other, reload))).toEqual(
      Array.from({ length: 5 }, () => 'done'),
    );
    expect(ran).toEqual(['install -- a b', 'reload', 'remove -- c']);
  });

  it('run alone when the command of all fails, so that only the culprit fails', async () => {
    const { host, ran } = machine('b');
    expect(await fates(host, due(install('a'), install('b'), install('c')))).toEqual(['done', 'script_failed', 'done']);
    expect(ran).toEqual(['install -- a b c', 'install -- a', 'install -- b', 'install -- c']);
  });

  it('fail together when they are the very same command', async () => {
    const { host, ran } = machine('reload');
    expect(await fates(host, due(reload, reload))).toEqual(['script_failed', 'script_failed']);
    expect(ran).toEqual(['reload']);
  });

  it('are kept apart by what counts as success, by their input and by the output that is kept', async () => {
    const { host, ran } = machine();
    const kept: RunStep = { ...reload, keepsOutput: true };
    const steps: readonly RunStep[] = [
      reload,
      { ...reload, ok: [0, 3] },
      { do: 'run', command: { argv: ['reload'], input: 'x' } },
      kept,
      kept,
    ];
    const performed = await performSteps(shop(host), due(...steps));
    expect(ran).toHaveLength(5);
    expect(performed.map(({ output }) => output?.stdout ?? null)).toEqual([null, null, null, 'reload\n', 'reload\n']);
  });

  it('are cut where the command line would be too long', async () => {
    const { host, ran } = machine();
    const long = Array.from({ length: 30 }, (_, index) => install(`${index}`.padEnd(10_000, 'x')));
    expect(new Set(await fates(host, due(...long)))).toEqual(new Set(['done']));
    expect(ran.length).toBe(4);
    expect(Math.max(...ran.map((line) => line.length))).toBeLessThan(110_000);
  });

  it('change files as one group beside the commands', async () => {
    const { host, ran } = machine();
    const file = (path: string): Step => ({ do: 'remove-file', path });
    expect(await fates(host, due(file('/good'), install('a'), file('/bad')))).toEqual(['done', 'done', 'read_only']);
    expect(ran).toEqual(['install -- a']);
  });
});
