/** From the words of a command line to a command, or to a sentence about them. */
import { describe, expect, it } from 'vitest';
import { EXIT, EXIT_MEANINGS, exitStatusOf } from '../../src/cli/exit-status.js';
import { findCommand } from '../../src/cli/find-command.js';
import { expandRanges } from '../../src/cli/nodes/resolve-node.js';
import { parseAhead, parseWhen } from '../../src/cli/parse-time.js';
import { Fault } from '../../src/kernel/fault.js';
import { expectGolden, NOW, runOrch, transcript } from '../support/cli.js';

const pathOf = (line: string) => {
  const found = findCommand(line.split(' '));
  return found.kind === 'command' ? found.entry.path : `group ${found.path}`;
};

describe('which command is meant', () => {
  it.each([
    ['agents', 'agents list'],
    ['agents --status pending', 'agents list'],
    ['agents list', 'agents list'],
    ['-o json agents show web-01', 'agents show'],
    ['agents --profile list show web-01', 'agents show'],
    ['--profile=home -v agents', 'agents list'],
    ['agents -ojson show web-01', 'agents show'],
    ['drift web-01', 'drift'],
    ['drift list', 'drift list'],
    ['drift -- list', 'drift'],
    ['ops', 'ops list'],
    ['audit --all', 'audit list'],
    ['operator', 'group operator'],
    ['agents lst', 'group agents'],
    ['agnets', 'group '],
  ])('orch %s: %s', (line, path) => expect(pathOf(line)).toBe(path));

  it('hands the other words on', () => {
    expect(findCommand(['-o', 'json', 'agents', 'show', '-v', 'web-01'])).toMatchObject({
      rest: ['-o', 'json', '-v', 'web-01'],
    });
  });
});

describe('ranges of nodes', () => {
  it.each([
    ['web-01', ['web-01']],
    ['web[08-11]', ['web08', 'web09', 'web10', 'web11']],
    ['db[1,3,7-8]-x', ['db1-x', 'db3-x', 'db7-x', 'db8-x']],
    ['r[1-2]n[1-2]', ['r1n1', 'r1n2', 'r2n1', 'r2n2']],
    ['[3]', ['3']],
  ])('%s', (text, names) => expect(expandRanges(text)).toEqual(names));

  it.each(['web[', 'web]', 'web[]', 'web[a-c]', 'web[3-1]', 'web[1-]', 'web[[1]]', 'web[1,]', 'web[1-2]]'])(
    '%s is none',
    (text) => expect(() => expandRanges(text)).toThrow(/is no range of nodes/),
  );

  it.each(['web[1-999999999]', 'a[1-999]b[1-999]'])('%s is too many', (text) => {
    expect(() => expandRanges(text)).toThrow(/more than 10000 nodes/);
  });
});

describe('wrong words', () => {
  it.each([
    ['unknown-command', ['agnets']],
    ['version-as-a-word', ['version']],
    ['unknown-subcommand', ['agents', 'lst']],
    ['secrets-get', ['secrets', 'get', 'x']],
    ['word-of-another-tool', ['module', 'delete', 'x']],
    ['no-property-of-objects', ['module', 'constructor']],
    ['group-alone', ['operator']],
    ['unknown-option', ['agents', '--sttaus', 'pending']],
    ['option-before-command', ['--jsn', 'agents']],
    ['option-of-group', ['module', '--nope', 'list']],
    ['missing-argument', ['agents', 'show']],
    ['empty-argument', ['maintenance', 'show', '']],
    ['empty-list-argument', ['agents', 'untag', 'web-01', '']],
    ['surplus-argument', ['agents', 'show', 'a', 'b']],
    ['missing-value', ['agents', '--status']],
    ['missing-value-before-dashes', ['exec', 'web-01', '--timeout', '--', 'ls', '-l']],
    ['unknown-option-after-number', ['ops', 'show', '-5', '--bad']],
    ['bad-choice', ['agents', '--status', 'gone']],
    ['bad-number', ['ops', '--limit', '0']],
    ['required-option', ['operator', 'add', '00']],
    ['json', ['agents', '--json', '--status', 'gone']],
    ['yaml', ['agents', '-o', 'yaml', '--status', 'gone']],
    ['bad-output', ['agents', '-o', 'xml']],
    ['no-help-on', ['help', 'outputt']],
    ['bad-time', ['audit', '--after', 'yesterday']],
    ['all-and-limit', ['audit', '--all', '--limit', '3']],
    ['approve-nobody', ['agents', 'approve']],
    ['approve-all-yes', ['agents', 'approve', '--all-pending', '--yes']],
    ['completion-of-csh', ['completion', 'csh']],
  ])('%s', async (name, argv) => {
    const ran = await runOrch(argv);
    expect(ran).toMatchObject({ status: EXIT.usage, stdout: '' });
    expectGolden(`usage-${name}`, transcript(argv, ran));
  });
});

describe('help and version', () => {
  it.each([
    ['overview', []],
    ['overview', ['--help']],
    ['overview', ['help']],
    ['group', ['operator', '--help']],
    ['group', ['help', 'operator']],
    ['group-with-standard', ['help', 'agents']],
    ['group-with-standard', ['agents', '--help']],
    ['group-with-otherwise', ['term', '--help']],
    ['command', ['apply', '--help']],
    ['command', ['help', 'apply']],
    ['command', ['apply', 'web-01', '-h']],
    ['command-with-below', ['drift', '--help']],
    ['exit-codes', ['help', 'exit-codes']],
    ['environment', ['help', 'environment']],
    ['selectors', ['help', 'selectors']],
    ['output', ['help', 'output']],
  ])('%s: orch %j', async (name, argv) => {
    const ran = await runOrch(argv);
    expect(ran).toMatchObject({ status: 0, stderr: '' });
    expectGolden(`help-${name}`, ran.stdout);
  });

  it('knows its version, also for programs', async () => {
    expect((await runOrch(['--version'])).stdout).toMatch(/^orch \d+\.\d+\.\d+\n$/);
    expect(JSON.parse((await runOrch(['--version', '-o', 'json'])).stdout)).toHaveProperty('version');
  });
});

describe('exit statuses', () => {
  it.each([
    ['unauthenticated', 4],
    ['admin_required', 4],
    ['agent_not_connected', 5],
    ['operation_in_progress', 6],
    ['plan_stale', 6],
    ['removal_guard', 6],
    ['outside_window', 6],
    ['usage', 64],
    ['confirmation_required', 64],
    ['tls_unknown', 64],
    ['unreachable', 69],
    ['agent_timeout', 124],
    ['agent_not_found', 1],
    ['internal', 1],
  ] as const)('%s ends with %d', (code, status) => expect(exitStatusOf(new Fault(code, ''))).toBe(status));

  it('explains each', () => {
    expect(EXIT_MEANINGS.map(([status]) => status)).toEqual(Object.values(EXIT));
  });
});

describe('times', () => {
  it.each([
    ['2h ago', '2025-03-01T10:00:00.000Z'],
    ['30m', '2025-03-01T11:30:00.000Z'],
    ['1 d ago', '2025-02-28T12:00:00.000Z'],
    ['2025-02-03', '2025-02-03T00:00:00.000Z'],
    ['2025-02-03T04:05:06+02:00', '2025-02-03T02:05:06.000Z'],
    ['2025-02-03 04:05Z', '2025-02-03T04:05:00.000Z'],
  ])('%s is %s', (text, time) => expect(parseWhen(text, '--after', NOW)).toBe(time));

  it('takes a leap second', () => {
    expect(parseWhen('2016-12-31T23:59:60Z', '--since', NOW)).toBe('2016-12-31T23:59:59.999Z');
  });

  it('takes the seconds of the API', () => {
    expect(parseWhen('1740826800', '--since', NOW)).toBe('2025-03-01T11:00:00.000Z');
  });

  it.each([
    '',
    'now',
    '3600',
    '2025-02-30',
    '2025-02-30T10:00:00Z',
    '2025-02-03T04:05:60Z',
    '2025-02-30T99:00:00Z',
    '03/02/2025',
    '5 parsecs ago',
    '2025-02-03T04:05:06',
  ])('%s is none', (text) => {
    expect(() => parseWhen(text, '--after', NOW)).toThrow(/--after takes a time/);
  });

  it.each([
    ['2h', '2025-03-01T14:00:00.000Z'],
    ['1740834000', '2025-03-01T13:00:00.000Z'],
    ['in 30 d', '2025-03-31T12:00:00.000Z'],
    ['2030-01-31', '2030-01-31T00:00:00.000Z'],
    ['2025-03-01T13:30:00+01:00', '2025-03-01T12:30:00.000Z'],
  ])('%s is ahead, at %s', (text, time) => expect(parseAhead(text, '--from', NOW)).toBe(time));

  it.each([
    ['2h ago', '--from takes a time, not "2h ago"'],
    ['tomorrow', '--from takes a time, not "tomorrow"'],
    ['2025-03-01', '--from 2025-03-01 is over already'],
    ['0m', '--from 0m is over already'],
  ])('%s is not ahead', (text, message) => expect(() => parseAhead(text, '--from', NOW)).toThrow(message));
});

describe('an error about the words', () => {
  it.each([
    [['--no-color'], false],
    [[], true],
  ])('has colours as %j says', async (more, hasColors) => {
    const { stderr } = await runOrch(['agnets', ...more], { env: { FORCE_COLOR: '1', NO_COLOR: '' } });
    expect(stderr).toContain('agnets');
    expect(stderr.includes('\u001b[')).toBe(hasColors);
  });
});
