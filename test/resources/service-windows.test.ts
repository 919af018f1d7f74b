/** Services of Windows: starting, stopping, restarting, and what the error numbers mean. Nothing here runs on a real Windows. */
import { describe, expect, it } from 'vitest';
import type { RunStep } from '../../src/resources/host.js';
import type { Decision, PlanContext } from '../../src/resources/kind.js';
import { type ServiceFact, serviceWindows, type WindowsService } from '../../src/resources/service-windows.js';
import { RESTART_SERVICE, START_SERVICE, STOP_SERVICE } from '../../src/resources/windows/windows-service-control.js';
import { FakeHost, resultOf } from '../support/resources.js';

const CONTEXT: PlanContext = {
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
  digest: String,
};

const SERVICE: WindowsService = {
  isRunning: true,
  binary_path: 'C:\\web\\web.exe',
  display_name: 'Web',
  description: '',
  start_type: 'auto',
  account: 'LocalSystem',
  dependencies: [],
};

const there = (service: Partial<WindowsService> = {}): ServiceFact => ({
  is: 'there',
  computer: 'WEB-01',
  service: { ...SERVICE, ...service },
});

/** Each step in a word: the verb of `sc.exe`, or what the script does. */
function wordsOf(decision: Decision): readonly string[] {
  if (!('steps' in decision)) return [];
  return decision.steps.map((step) => {
    if (step.do !== 'run') throw new Error('a command was expected');
    const { argv, script, input } = step.command;
    if (argv[0] === 'sc.exe') return argv.slice(1).join(' ');
    expect(JSON.parse(input ?? '')).toEqual({ name: 'web' });
    const scripts = [
      ['start', START_SERVICE],
      ['stop', STOP_SERVICE],
      ['restart', RESTART_SERVICE],
    ] as const;
    return scripts.find(([, text]) => script?.text.endsWith(text))?.[0] ?? 'unknown';
  });
}

const plan = (body: object, have: ServiceFact, context: Partial<PlanContext> = {}) =>
  serviceWindows.plan({ name: 'web', ...body }, have, { ...CONTEXT, ...context });

describe('a service', () => {
  it('is made, described and started', () => {
    const body = { binary_path: 'C:\\web\\web.exe', description: 'Serves', running: true };
    expect(wordsOf(plan(body, { is: 'absent' }))).toEqual([
      'create web binPath= C:\\web\\web.exe',
      'description web Serves',
      'start',
    ]);
  });

  it.each([
    [{ running: true }, false, ['start']],
    [{ running: false }, true, ['stop']],
    [{ running: true }, true, []],
    [{ running: false }, false, []],
    [{}, false, []],
  ])('with %j that runs: %s needs %j', (body, isRunning, words) => {
    expect(wordsOf(plan(body, there({ isRunning })))).toEqual(words);
  });

  it('restarts when another program or account is set, and owes that until it is done', () => {
    const decision = plan({ binary_path: 'C:\\web\\new.exe' }, there());
    expect(wordsOf(decision)).toEqual(['config web binPath= C:\\web\\new.exe', 'restart']);
    expect(decision).toMatchObject({ action: 'update', owes: 'restart_on' });
    expect(wordsOf(plan({ account: 'NT SERVICE\\web' }, there()))).toEqual([
      'config web obj= NT SERVICE\\web',
      'restart',
    ]);
    expect(wordsOf(plan({ binary_path: 'C:\\web\\new.exe' }, there({ isRunning: false })))).toEqual([
      'config web binPath= C:\\web\\new.exe',
    ]);
    expect(wordsOf(plan({ binary_path: 'C:\\web\\new.exe', running: false }, there()))).toEqual([
      'config web binPath= C:\\web\\new.exe',
      'stop',
    ]);
  });

  it('does not restart for what counts without it', () => {
    expect(wordsOf(plan({ display_name: 'W' }, there()))).toEqual(['config web DisplayName= W']);
  });

  it('restarts when that is due, once', () => {
    const due = new Set(['restart_on'] as const);
    expect(plan({}, there(), { due })).toMatchObject({ action: 'restart', changes: [] });
    expect(wordsOf(plan({ running: true }, there(), { due }))).toEqual(['restart']);
    expect(wordsOf(plan({ binary_path: 'C:\\n.exe' }, there(), { due }))).toEqual([
      'config web binPath= C:\\n.exe',
      'restart',
    ]);
    expect(wordsOf(plan({ running: true }, there({ isRunning: false }), { due }))).toEqual(['start']);
    expect(wordsOf(plan({ running: false }, there(), { due }))).toEqual(['stop']);
  });

  it('is stopped before it is deleted', () => {
    const decision = serviceWindows.planRemoval({ name: 'web', binary_path: 'x' }, there(), CONTEXT);
    expect(wordsOf(decision)).toEqual(['stop', 'delete web']);
  });

  it('may be brought by what comes before', () => {
    expect(plan({ running: true }, { is: 'absent' }, { purpose: 'plan', mayAppear: true })).toMatchObject({
      action: 'update',
      steps: [],
    });
  });

  it('comes after the services that it depends on, not after groups of them', () => {
    expect(serviceWindows.requires({ name: 'web', dependencies: ['Tcpip', '+NetworkProvider'] })).toEqual([
      { family: 'service', identity: 'tcpip' },
    ]);
  });
});

describe('an argument of sc.exe', () => {
  it.each(['a"b\\', 'obj= LocalSystem', '$(x) %PATH% ‘’', '/delete', '日本'])(
    'is one argument as it is: %j',
    (text) => {
      const decision = plan({ binary_path: text, display_name: text, description: text }, { is: 'absent' });
      if (!('steps' in decision)) throw new Error('steps were expected');
      expect(decision.steps.map((step) => step.do === 'run' && step.command.argv)).toEqual([
        ['sc.exe', 'create', 'web', 'binPath=', text, 'DisplayName=', text],
        ['sc.exe', 'description', 'web', text],
      ]);
    },
  );
});

/** Numbers of winerror.h, which sc.exe ends with and the service classes of .NET carry. */
describe('a failure', () => {
  const sc: RunStep = { do: 'run', command: { argv: ['sc.exe', 'config', 'web'] } };
  const ps: RunStep = { do: 'run', command: { argv: ['powershell.exe'] } };
  const explain = (step: RunStep, code: number, stdout = '') =>
    serviceWindows.explain?.(new FakeHost({}), { name: 'web' }, step, resultOf({ code, stdout }));

  it.each([
    [1060, 'unit_missing', 'there is no service web'],
    [5, 'permission_denied', 'administrator'],
    [1072, 'service_failed', 'marked for deletion'],
    [1073, 'service_failed', 'exists already'],
    [1057, 'service_failed', 'account'],
    [1078, 'service_failed', 'display name'],
    [87, 'command_failed', 'sc.exe ended with status 87'],
  ])('of sc.exe with %d', async (code, fault, words) => {
    const refusal = await explain(sc, code, '[SC] OpenService FAILED 5:\r\n\r\nZugriff verweigert\r\n');
    expect(refusal).toMatchObject({ code: fault });
    expect(refusal?.message).toContain(words);
  });

  it.each([
    ['InvalidOperationException', 1053, 'service_failed', 'did not answer in time'],
    ['InvalidOperationException', 1069, 'service_failed', 'cannot log on'],
    ['InvalidOperationException', 1058, 'service_failed', 'start_type'],
    ['InvalidOperationException', 1060, 'unit_missing', 'there is no service web'],
    ['TimeoutException', null, 'service_failed', '90 seconds'],
    ['InvalidOperationException', 1234, 'service_failed', 'text of Windows'],
  ])('of a script with %s and %s', async (id, native, fault, words) => {
    const refusal = await explain(ps, 1, JSON.stringify({ error: { id, message: 'text of Windows', native } }));
    expect(refusal).toMatchObject({ code: fault });
    expect(refusal?.message).toContain(words);
  });
});
