/** Cases of `script` that a data file cannot express: several at once, the name of a failure, and its identity. */
import { describe, expect, it } from 'vitest';
import type { CommandEnd, CommandResult } from '../../src/resources/command.js';
import type { RunStep } from '../../src/resources/host.js';
import type { PlanContext } from '../../src/resources/kind.js';
import { script } from '../../src/resources/script.js';
import { FakeHost } from '../support/resources.js';

const ended = (end: CommandEnd, stderr = ''): CommandResult => ({ end, stdout: '', stderr, truncated: false });

const context: PlanContext = {
  accounts: new FakeHost({}).accounts(),
  declares: () => false,
  cleared: [],
  written: () => null,
  removes: () => false,
  sensitive: false,
  purpose: 'apply',
  due: new Set(),
  memo: null,
  mayAppear: false,
  comesLater: () => false,
  isMade: () => false,
  digest: (value) => JSON.stringify(value),
};

/** A machine whose checks end as their texts say. */
class CheckingHost extends FakeHost {
  private readonly ends: Readonly<Record<string, CommandEnd>>;

  constructor(ends: Readonly<Record<string, CommandEnd>>) {
    super({});
    this.ends = ends;
  }

  override async run(command: Parameters<FakeHost['run']>[0]): Promise<CommandResult> {
    this.ran.push(command);
    return ended(this.ends[command.script?.text ?? ''] ?? { how: 'exited', code: 0 });
  }
}

describe('a check', () => {
  it('runs for each script that has one, in order, and is ended with the run', async () => {
    const host = new CheckingHost({ second: { how: 'exited', code: 1 } });
    const wants = [
      { program: 'sh', apply: 'a', check: 'first' },
      { program: 'sh', apply: 'b' },
      { program: 'bash', apply: 'c', check: 'second' },
    ] as const;
    const haves = await script.read(host, wants, 'plan');
    expect(haves.map((have) => script.exists(have))).toEqual([true, false, false]);
    expect(host.ran).toEqual([
      { argv: ['sh'], script: { text: 'first', suffix: '.sh' }, timeoutSecs: 'script', lifetime: 'end' },
      { argv: ['bash'], script: { text: 'second', suffix: '.sh' }, timeoutSecs: 'script', lifetime: 'end' },
    ]);
  });

  it.each<[string, CommandEnd, string, string]>([
    [
      'timed out',
      { how: 'timed-out', seconds: 600 },
      'command_timed_out',
      'check was stopped after 600 seconds, which is the script_timeout of the agent',
    ],
    ['was killed', { how: 'killed', signal: 'SIGKILL' }, 'script_failed', 'check was ended by SIGKILL'],
    ['was cancelled', { how: 'cancelled' }, 'cancelled', 'check was stopped because the operation was cancelled'],
    [
      'could not be started',
      { how: 'not-started', missing: false, message: 'no memory' },
      'command_failed',
      'sh could not be started: no memory',
    ],
  ])('that %s says neither yes nor no, even in a plan', async (_, end, code, message) => {
    const want = { program: 'sh', apply: 'a', check: 'look' } as const;
    const [have] = await script.read(new CheckingHost({ look: end }), [want], 'plan');
    if (!have) throw new Error('one was asked for');
    const decision = script.plan(want, have, { ...context, purpose: 'plan', mayAppear: true });
    expect(decision).toEqual({ action: 'fail', code, message });
  });
});

describe('a failure', () => {
  const body = { program: 'sh', apply: 'make it', undo: 'unmake it' } as const;
  const stepFor = (text: string): RunStep => ({
    do: 'run',
    command: { argv: ['sh'], script: { text, suffix: '.sh' } },
  });
  const explained = (text: string, result: CommandResult) =>
    script.explain?.(new FakeHost({}), body, stepFor(text), result);

  it('has the status and the last lines', () => {
    const lines = Array.from({ length: 9 }, (_, at) => `line ${at}`).join('\n');
    expect(explained('make it', ended({ how: 'exited', code: 3 }, lines))).toEqual({
      code: 'script_failed',
      message: `apply ended with status 3: ${['line 3', 'line 4', 'line 5', 'line 6', 'line 7', 'line 8'].join('\n')}`,
    });
    expect(explained('unmake it', ended({ how: 'exited', code: 3 }))).toEqual({
      code: 'script_failed',
      message: 'undo ended with status 3',
    });
  });

  it('says which limit it ran into, and what is not there', () => {
    expect(explained('make it', ended({ how: 'timed-out', seconds: 5 }, 'still going'))).toEqual({
      code: 'command_timed_out',
      message: 'apply was stopped after 5 seconds, which is the script_timeout of the agent: still going',
    });
    expect(explained('make it', ended({ how: 'not-started', missing: true, message: '' }))).toEqual({
      code: 'command_missing',
      message: 'sh is not installed on this machine',
    });
    expect(explained('make it', ended({ how: 'cancelled' }))).toMatchObject({ code: 'cancelled' });
  });
});

describe('its identity', () => {
  it('is what it manages, else its id, else nothing', () => {
    const body = { program: 'sh', apply: 'a' } as const;
    expect(script.identity({ ...body, manages: 'swap' }, 'id')).toBe('swap');
    expect(script.identity(body, 'id')).toBe('id');
    expect(script.identity(body, null)).toBe('');
  });

  it('counts as removed only when it has an undo', () => {
    const body = { program: 'sh', apply: 'a' } as const;
    expect(script.removes?.(body)).toBe(false);
    expect(script.removes?.({ ...body, undo: 'b' })).toBe(true);
  });
});
