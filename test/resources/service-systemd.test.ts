/** Unit files for hostile values, names of units, many units in one query, and what is said when systemd refuses. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { validator } from '../../src/kernel/validator.js';
import type { CommandResult } from '../../src/resources/command.js';
import type { RunStep } from '../../src/resources/host.js';
import { serviceSystemd } from '../../src/resources/service-systemd.js';
import { showCommand } from '../../src/resources/services/systemd-unit.js';
import { unitFileText, unitIdentity } from '../../src/resources/services/systemd-unit-file.js';
import { FakeHost, type Recorded, resultOf } from '../support/resources.js';

const { problems } = validator(serviceSystemd.schema);
type Body = Parameters<typeof serviceSystemd.check>[0];
const isAccepted = (body: Body) => problems(body).length === 0 && serviceSystemd.check(body).length === 0;

/** Reads one assignment as systemd.exec(5) and systemd.syntax(7) say: one quoted word, then specifiers. */
function readEnvironment(line: string): string {
  const word = /^Environment="((?:[^"\\]|\\.)*)"$/.exec(line)?.[1];
  if (word === undefined) throw new Error(`not one quoted word: ${line}`);
  const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', '"': '"', '\\': '\\' };
  const unescaped = word.replace(/\\(.)/g, (_, character: string) => escapes[character] ?? `?${character}?`);
  expect(unescaped.replaceAll('%%', '')).not.toContain('%');
  return unescaped.replaceAll('%%', '%');
}

const hostile = fc.string({
  unit: fc.oneof(fc.constantFrom('%', '$', '"', "'", '\\', '\n', '\t', ' ', '=', '#', ';', '[', ']', 'n'), fc.string()),
});

describe('a unit file', () => {
  it('brings every environment variable back as it was given', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,5}$/), hostile), (environment) => {
        const body: Body = { name: 'x', exec_start: '/bin/true', environment };
        fc.pre(isAccepted(body));
        const lines = unitFileText(body).split('\n');
        const found = lines.filter((line) => line.startsWith('Environment=')).map(readEnvironment);
        const given = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
        expect(found.sort()).toEqual(given.sort());
      }),
    );
  });

  it('has no line that a value has added', () => {
    const bare = unitFileText({ name: 'x', exec_start: '/bin/true', description: 'd', working_directory: '/w' });
    fc.assert(
      fc.property(hostile, hostile, hostile, (description, directory, exec) => {
        const body: Body = { name: 'x', exec_start: exec, description, working_directory: `/${directory}` };
        fc.pre(isAccepted(body));
        const keys = (text: string) => text.split('\n').map((line) => line.split('=')[0]);
        expect(keys(unitFileText(body))).toEqual(keys(bare));
        expect(unitFileText(body)).not.toMatch(/(?:^|[^\\])(?:\\\\)*\\$/m);
      }),
    );
  });

  it('is the same whatever the order of the variables', () => {
    const text = (environment: Record<string, string>) => unitFileText({ name: 'x', exec_start: '/x', environment });
    expect(text({ A: '1', B: '2' })).toBe(text({ B: '2', A: '1' }));
  });
});

it('knows one unit by all its names', () => {
  const names = ['nginx', 'nginx.service', 'getty@tty1', 'a.timer', 'a.timer.service', 'a.b', 'a.b.service'];
  expect(names.map(unitIdentity)).toEqual([
    ...['nginx', 'nginx', 'getty@tty1', 'a.timer', 'a.timer.service', 'a.b', 'a.b'],
  ]);
});

it('needs the accounts, the units and the files that it is made of', () => {
  const needs = (body: Body) => serviceSystemd.requires(body).map(({ family, identity }) => `${family} ${identity}`);
  const body = { name: 'web', exec_start: '/x', user: 'www', group: 'www', dependencies: ['db.service', 'srv.mount'] };
  expect(needs(body)).toEqual(['user www', 'group www', 'service db', 'service srv.mount']);
  expect(needs({ name: 'web@1' })).toContain('path /etc/systemd/system/web@.service');
});

describe('many units', () => {
  const block = (id: string, load = 'loaded') =>
    `Id=${id}\nLoadState=${load}\nActiveState=active\nUnitFileState=enabled\n`;
  const bodies = ['a', 'b.timer', 'c'].map((name) => ({ name, running: true }));
  const argv = showCommand(['a.service', 'b.timer', 'c.service']);

  it('are asked for by one command', async () => {
    const stdout = [block('a.service'), block('b.timer'), block('c.service', 'not-found')].join('\n');
    const host = new FakeHost({ commands: { [argv.join(' ')]: stdout } });
    const haves = await serviceSystemd.read(host, bodies, 'plan');
    expect(host.ran).toHaveLength(1);
    expect(haves.map((have) => serviceSystemd.exists(have))).toEqual([true, true, false]);
  });

  it('are known as far as systemd has reported them', async () => {
    const refusal = { code: 1, stdout: block('a.service'), stderr: 'Failed to get properties: b.timer\n' };
    const host = new FakeHost({ commands: { [argv.join(' ')]: refusal } });
    const haves = await serviceSystemd.read(host, bodies, 'plan');
    expect(haves.map((have) => ('refusal' in have ? have.refusal.message : 'known'))).toEqual([
      'known',
      'systemctl ended with status 1: Failed to get properties: b.timer',
      'systemctl ended with status 1: Failed to get properties: b.timer',
    ]);
  });
});

describe('what is said when it fails', () => {
  const step = (verb: string): RunStep => ({
    do: 'run',
    command: { argv: ['systemctl', verb, '--'] },
    items: ['web.service'],
  });
  const shown = (values: string) => `Id=web.service\nLoadState=loaded\n${values}`;
  const told = async (
    verb: string,
    result: CommandResult,
    facts: { readonly shown: string; readonly log: Recorded },
  ) => {
    const host = new FakeHost({
      commands: {
        [showCommand(['web.service']).join(' ')]: facts.shown,
        'journalctl --sync': { missing: true },
        'journalctl --unit=web.service --lines=10 --output=cat --no-pager --quiet': facts.log,
      },
    });
    return serviceSystemd.explain?.(host, { name: 'web' }, step(verb), result);
  };
  const failure = resultOf({ code: 1, stderr: 'Job for web.service failed.\nSee "systemctl status web.service".\n' });
  const log = 'Started web.service.\nno such table: users\n';

  it('names the state, the reason and the last lines of the log', async () => {
    const failed = shown('ActiveState=failed\nSubState=failed\nResult=exit-code\n');
    expect(await told('start', failure, { shown: failed, log })).toEqual({
      code: 'service_failed',
      message: 'web.service could not be started: it is failed, exit-code\nStarted web.service.\nno such table: users',
    });
    const waiting = shown('ActiveState=activating\nSubState=auto-restart\nResult=exit-code\n');
    expect(await told('is-active', resultOf({ code: 3, stdout: 'activating\n' }), { shown: waiting, log })).toEqual({
      code: 'service_failed',
      message:
        'web.service was started and does not run: it is activating (auto-restart), exit-code\nStarted web.service.\nno such table: users',
    });
  });

  it('is known of each unit of one command, so that those that were restarted are not restarted again', async () => {
    const facts = {
      commands: {
        [showCommand(['web.service']).join(' ')]: shown('ActiveState=failed\nSubState=failed\nResult=exit-code\n'),
        'journalctl --sync': { missing: true } as const,
        'journalctl --unit=web.service --lines=10 --output=cat --no-pager --quiet': log,
      },
    };
    const judged = (name: string, result: CommandResult, verb = 'restart') =>
      serviceSystemd.judge?.(new FakeHost(facts), { name }, step(verb), result);
    expect(await judged('api', failure)).toBe('done');
    expect(await judged('web', failure)).toMatchObject({ code: 'service_failed' });
    const silent = resultOf({ code: 1, stderr: 'Failed to connect to bus: No such file or directory\n' });
    expect(await judged('api', silent)).toBe('undone');
    expect(await judged('api', failure, 'enable')).toBe('undone');
    // In time that grows with the square of the length, this would take a minute.
    expect(await judged('api', { ...failure, stderr: 'a'.repeat(260_000) })).toBe('undone');
  });

  it('does without a journal', async () => {
    const failed = shown('ActiveState=failed\nSubState=failed\nResult=timeout\n');
    const said = await told('start', failure, { shown: failed, log: { missing: true } });
    expect(said?.message).toBe('web.service could not be started: it is failed, timeout');
  });

  it('gives the words of systemctl where systemd has not tried', async () => {
    const down = shown('ActiveState=inactive\nSubState=dead\nResult=success\n');
    const refused = resultOf({ code: 5, stderr: 'Failed to start web.service: Unit db.service not found.\n' });
    expect((await told('start', refused, { shown: down, log: '' }))?.message).toBe(
      'web.service could not be started: it is inactive (dead): systemctl ended with status 5: Failed to start web.service: Unit db.service not found.',
    );
  });

  it('says who may change units, also where no unit was to be started or stopped', async () => {
    const up = { shown: shown('ActiveState=active\nSubState=running\nResult=success\n'), log };
    for (const [verb, stderr] of [
      [
        'stop',
        "Failed to stop web.service: Access denied\nSee system logs and 'systemctl status web.service' for details.\n",
      ],
      ['start', 'Failed to start web.service: Interactive authentication required.\n'],
      ['mask', 'Unit web.service does not exist, proceeding anyway.\nFailed to mask unit: Access denied\n'],
    ] as const) {
      expect(await told(verb, resultOf({ code: 1, stderr }), up)).toEqual({
        code: 'permission_denied',
        message: expect.stringMatching(/^this user may not change the unit web\.service; run the agent as root \(/),
      });
    }
  });

  it('says that a unit runs on after a reload that failed, or does not stop', async () => {
    const up = shown('ActiveState=active\nSubState=running\nResult=success\n');
    expect((await told('try-reload-or-restart', failure, { shown: up, log: '' }))?.message).toMatch(
      /^web\.service could not be reloaded and runs as before: systemctl ended with status 1/,
    );
    expect((await told('stop', failure, { shown: up, log: '' }))?.message).toMatch(
      /^web\.service could not be stopped/,
    );
  });

  it('leaves what is not about the unit as it is', async () => {
    const none = { shown: '', log: '' };
    expect((await told('daemon-reload', failure, none))?.code).toBe('command_failed');
    const late: CommandResult = { ...failure, end: { how: 'timed-out', seconds: 300 } };
    expect((await told('start', late, none))?.code).toBe('command_timed_out');
  });
});
