/** The settings of a machine decide about its terminals, whatever the orchestrator asks for. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  findUser,
  isProgram,
  knownTerm,
  machineLanguage,
  parseShells,
  readShells,
} from '../../../src/agent/terminal/login.js';
import { type PolicyOptions, permit, type TerminalSettings } from '../../../src/agent/terminal/policy.js';
import { isFault } from '../../../src/kernel/fault.js';
import { AGENT_DEFAULTS } from '../../../src/settings/agent.js';
import type { OrchestratorMessageOf } from '../../../src/wire/messages.js';
import { isRoot, needs, place } from '../../support/agent.js';

type Request = OrchestratorMessageOf<'terminal_open'>;

const request = (more: Partial<Request> = {}): Request => ({
  type: 'terminal_open',
  session_id: '01K00000000000000000000001',
  ticket: 'x'.repeat(20),
  operator: 'ada',
  kind: 'shell',
  cols: 80,
  rows: 24,
  term: 'xterm',
  shell: null,
  command: null,
  timeout_secs: null,
  stdin: false,
  ...more,
});

const settings = (more: Partial<TerminalSettings> = {}): TerminalSettings => ({
  ...AGENT_DEFAULTS,
  'remote_terminal.enabled': true,
  ...more,
});

const options = (more: Partial<PolicyOptions> = {}): PolicyOptions => ({
  settings: settings(),
  shells: 0,
  commands: 0,
  ...more,
});

async function refusal(asked: Partial<Request>, given: Partial<PolicyOptions>): Promise<readonly [string, string]> {
  const error: unknown = await permit(request(asked), options(given)).then(
    () => 'it was allowed',
    (caught) => caught,
  );
  if (!isFault(error)) throw error;
  return [error.code, error.message];
}

const shells = readShells();
const other = shells.find((path) => path === '/bin/sh') ?? '/bin/sh';

describe('the policy', () => {
  it('allows nothing unless the machine says so', async () => {
    expect(AGENT_DEFAULTS['remote_terminal.enabled']).toBe(false);
    const off = { settings: settings({ 'remote_terminal.enabled': false }) };
    expect((await refusal({}, off))[0]).toBe('terminal_disabled');
    expect((await refusal({ kind: 'exec', command: ['true'] }, off))[0]).toBe('terminal_disabled');
  });

  it('gives the shell of the settings, else that of the user', async () => {
    const standard = await permit(request(), options());
    expect(standard.shell).toMatch(/^\//);
    const chosen = await permit(request(), options({ settings: settings({ 'remote_terminal.shell': other }) }));
    expect(chosen.shell).toBe(other);
    expect(chosen.order.launch).toMatchObject({ file: other, argv0: '-sh', args: [] });
  });

  it.each([
    ['another than the standard one, unless that is allowed', '/usr/bin/sh', false],
    ['one that is not in /etc/shells', '/usr/bin/env', true],
    ['one with a space and a command behind it', '/bin/sh -c id', true],
    ['a relative path', 'bash', true],
  ])('refuses %s', async (_, shell, override) => {
    const given = settings({
      'remote_terminal.shell': '/bin/sh',
      'remote_terminal.allow_operator_shell_override': override,
    });
    expect((await refusal({ shell }, { settings: given }))[0]).toBe('shell_not_allowed');
  });

  it('gives another one where that is allowed', async () => {
    const given = settings({
      'remote_terminal.shell': '/bin/sh',
      'remote_terminal.allow_operator_shell_override': true,
    });
    const [found] = shells.filter((path) => path.endsWith('/bash'));
    if (found === undefined) throw new Error('these tests need bash in /etc/shells');
    expect((await permit(request({ shell: found }), options({ settings: given }))).shell).toBe(found);
  });

  it('refuses a shell of the settings that is not in /etc/shells', async () => {
    const given = settings({ 'remote_terminal.shell': '/usr/sbin/nologin' });
    expect((await refusal({}, { settings: given }))[0]).toBe('shell_not_allowed');
  });

  it('takes for a shell only a file that can be run', () => {
    const directory = place();
    const file = join(directory, 'shell');
    expect([isProgram(file), isProgram(directory)]).toEqual([false, false]);
    writeFileSync(file, '#!/bin/sh\n', { mode: 0o644 });
    expect(isProgram(file)).toBe(false);
    chmodSync(file, 0o755);
    expect(isProgram(file)).toBe(true);
  });

  it('counts shells and commands apart', async () => {
    const given = settings({ 'remote_terminal.max_sessions': 2 });
    expect(await refusal({}, { settings: given, shells: 2 })).toEqual([
      'terminal_limit',
      'this agent allows at most 2 open shells at a time',
    ]);
    await permit(request(), options({ settings: given, shells: 1, commands: 199 }));
    const exec: Partial<Request> = { kind: 'exec', command: ['true'] };
    await permit(request(exec), options({ settings: given, shells: 2 }));
    expect((await refusal(exec, { settings: given, commands: 200 }))[0]).toBe('terminal_limit');
  });

  it('names a user that is not there', async () => {
    const given = { settings: settings({ 'remote_terminal.user': 'no-such-user' }) };
    expect(await refusal({}, given)).toEqual([
      'terminal_unsupported',
      'there is no user "no-such-user" on this machine: change remote_terminal.user in the configuration file of the agent',
    ]);
  });

  it('becomes another user only as root', async (context) => {
    const given = { settings: settings({ 'remote_terminal.user': 'nobody', 'remote_terminal.shell': '/bin/sh' }) };
    if (!isRoot) {
      expect((await refusal({}, given))[1]).toContain('does not run as root');
      needs(context, false, 'root for the rest');
    }
    const { order, user } = await permit(request(), options(given));
    expect(user).toBe('nobody');
    expect(order.launch.user).toMatchObject({ uid: 65_534 });
    expect(order.launch.env).toMatchObject({ USER: 'nobody', LOGNAME: 'nobody' });
    // Whose login shell is none.
    expect((await refusal({}, { settings: settings({ 'remote_terminal.user': 'nobody' }) }))[0]).toBe(
      'shell_not_allowed',
    );
  });
});

describe('what a machine says of itself', () => {
  it('names shells line by line', () => {
    expect(parseShells('# /bin/evil\n/bin/sh\n  /bin/bash  # the usual\n\nzsh\n/bin/s h\n')).toEqual([
      '/bin/sh',
      '/bin/bash',
      '/bin/s h',
    ]);
    expect(readShells('/no/such/file')).toContain('/bin/sh');
  });

  it('names users by name or id', () => {
    const text =
      'root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000:Ada,,,:/home/ada:\n# no:x:1\n+::::::\nbad:x:a:b::/:\n';
    expect(findUser(text, 'ada')).toEqual({ name: 'ada', uid: 1000, gid: 1000, home: '/home/ada', shell: '' });
    expect(findUser(text, 0)?.name).toBe('root');
    expect(findUser(text, 'bad')).toBeNull();
    expect(findUser(text, '0')).toBeNull();
  });

  it('knows some terminals, in directories by letter or code', () => {
    const root = place();
    mkdirSync(join(root, 'f'));
    mkdirSync(join(root, '67'));
    writeFileSync(join(root, 'f', 'foo'), '');
    writeFileSync(join(root, '67', 'ghostty'), '');
    expect(knownTerm('foo', [root])).toBe('foo');
    expect(knownTerm('ghostty', [root])).toBe('ghostty');
    for (const term of ['', 'bar', '../f/foo', 'foo\nX=1', 'x'.repeat(100)]) {
      expect(knownTerm(term, [root])).toBe('xterm-256color');
    }
  });

  it('may have a language', () => {
    const file = join(place(), 'locale');
    expect(machineLanguage([file])).toBeNull();
    writeFileSync(file, '# LANG=xx\nLC_TIME=C\nLANG="de_DE.UTF-8"\n');
    expect(machineLanguage([file])).toBe('de_DE.UTF-8');
    writeFileSync(file, 'LANG=$(id)\n');
    expect(machineLanguage([file])).toBeNull();
  });
});
