/** The commands that change something: what they ask, what they send, how they end. */

import { EventEmitter } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Assignment } from '../../src/contract/assignments.js';
import type { OperationDetail } from '../../src/contract/operations.js';
import type { DriftResource, Verification } from '../../src/contract/runs.js';
import type { CheckResult } from '../../src/resources/checks/check.js';
import { summarize } from '../../src/resources/result.js';
import { expectGolden, Home, type RunOptions, runOrch, settledText, transcript } from '../support/cli.js';
import {
  agents,
  applied,
  appliedStream,
  db,
  driftDetail,
  inSync,
  missed,
  operations,
  operators,
  partlyApplied,
  pending,
  planned,
  readings,
  reported,
  runLines,
  runResult,
  streamed,
  streamOf,
  ulid,
  web1,
  web2,
} from '../support/cli-world.js';
import { type Answers, type FakeApi, loggedIn, REQUEST_ID, startFakeApi } from '../support/fake-api.js';

let api: FakeApi;
const home = new Home();
const siteFile = home.file('site.orch.yaml');

beforeAll(async () => {
  api = await startFakeApi();
  writeFileSync(siteFile, 'name: site\nsupports:\n  - platform: linux\nresources: []\n');
});
beforeEach(() => api.answer(readings));
afterAll(async () => {
  await api.stop();
  home.dispose();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(argv, { ...options, env: { ...loggedIn(api), NO_COLOR: '1', ...options.env } });

const golden = async (name: string, argv: readonly string[], options: RunOptions = {}) => {
  const ran = await run(argv, options);
  const shown = argv.map((word) => word.replace(home.path, '~'));
  const text = transcript(shown, ran).replaceAll(home.path, '~');
  // Of questions, the last state of the screen is shown; the library draws it anew at each key.
  expectGolden(name, settledText(text));
  return ran;
};

const done = runResult(applied, { operation_id: ulid(1), plan_hash: null });

const { resources: _, ...finished } = operations[1] as OperationDetail;
const cancelling = { ...finished, status: 'running' };

const SHA = 'a'.repeat(64);

const uploadAnswer: Answers = {
  uploadModule: ({ body }) => {
    const { name } = body as { name: string };
    return {
      body: { name, uploaded_at: 1, uploaded_by: 'ada', revision: 1, sha256: SHA, changed: true, warnings: [] },
    };
  },
};

/** Makes a file in the home directory. */
function write(name: string, text: string): string {
  const path = home.file(name);
  writeFileSync(path, text);
  return path;
}

describe('what is wrong is said before a request, and before consent', () => {
  it.each([
    [['plan', 'web-01', '--to', 'nosuch'], '--to takes the ID of an operation, not "nosuch"'],
    [['apply', 'web-01', '-f', '/no/such.orch.yaml'], '/no/such.orch.yaml does not exist'],
    [['apply', '/no/such.orchplan'], '/no/such.orchplan does not exist'],
    [['apply', '--local', '-f', '/no/such.orch.yaml'], '/no/such.orch.yaml does not exist'],
    [['apply', 'web-01', '--values', '/no/such.values.yaml', '-m', 'site'], '/no/such.values.yaml does not exist'],
  ])('orch %j', async (argv, message) => {
    const before = api.requests.length;
    expect(await run(argv)).toMatchObject({ status: 64, stdout: '', stderr: expect.stringContaining(message) });
    expect(api.requests.length).toBe(before);
  });
});

describe('orch plan', () => {
  it('shows a reviewer what would change', async () => {
    api.answer({ planAgent: streamOf(runResult(planned)) });
    const { status } = await golden('plan', ['plan', 'web-01', '-m', 'site']);
    expect(status).toBe(0);
    await golden('plan-verbose', ['plan', 'web-01', '-m', 'site', '-v']);
  });

  it('goes back to an earlier operation of one agent', async () => {
    const bodies: unknown[] = [];
    const notes = [
      `operation ${ulid(1)} failed: its desired state may never have been reached on this machine`,
      'assignment web matches this agent: the next apply without --to brings the assigned modules back',
    ];
    const back = { restores: ulid(1), notes };
    api.answer({
      planAgent: ({ body }) => {
        bodies.push(body);
        return streamOf(runResult(planned.slice(0, 2), back));
      },
      applyAgent: ({ body }) => {
        bodies.push(body);
        return streamOf(runResult(applied.slice(0, 2), { ...back, operation_id: ulid(2) }));
      },
    });
    expect((await golden('plan-to', ['plan', 'web-01', '--to', ulid(1)])).status).toBe(0);
    expect((await golden('apply-to', ['apply', 'web-01', '--to', ulid(1), '--yes'])).status).toBe(0);
    expect(bodies).toEqual([
      { modules: [], to: ulid(1) },
      { modules: [], to: ulid(1), allow_removals: null, expect: null },
    ]);
    const file = home.file('back.orchplan');
    const hash = `${'a'.repeat(64)}.${'b'.repeat(64)}`;
    api.answer({ planAgent: streamOf(runResult(planned.slice(0, 2), { ...back, plan_hash: hash })) });
    expect((await run(['plan', 'web-01', '--to', ulid(1), '--out', file])).status).toBe(0);
    expect((await run(['apply', file, '--yes'])).status).toBe(0);
    expect(bodies.at(-1)).toEqual({ modules: [], to: ulid(1), allow_removals: null, expect: hash });
  });

  it('goes back with one named agent only, and without modules', async () => {
    await golden('plan-to-modules', ['plan', 'web-01', '--to', ulid(1), '-m', 'site']);
    await golden('apply-to-fleet', ['apply', 'web-01', 'web-02', '--to', ulid(1), '--yes']);
    for (const argv of [
      ['apply', '--assignment', 'web', '--to', ulid(1), '--yes'],
      ['apply', 'next.orchplan', '--to', ulid(1), '--yes'],
      ['apply', '--local', '--to', ulid(1), '--yes'],
      ['apply', '--to', ulid(1), '--yes'],
      ['plan', 'web-01', '--to', ulid(1), '--canary', '1'],
    ]) {
      expect((await run(argv)).status, argv.join(' ')).toBe(64);
    }
  });

  it('colours it on request', async () => {
    api.answer({ planAgent: streamOf(runResult(planned)) });
    const { stdout } = await run(['plan', 'web-01', '-m', 'site'], { env: { FORCE_COLOR: '1', NO_COLOR: '' } });
    expectGolden('plan-colour', stdout.replaceAll('\x1b', '<esc>'));
  });

  it('tells programs and scripts', async () => {
    api.answer({ planAgent: streamOf(runResult(planned)) });
    const json = await run(['plan', 'web-01', '-m', 'site', '--json']);
    expect(json).toMatchObject({ status: 0, stderr: '' });
    expect(JSON.parse(json.stdout)).toEqual(runResult(planned));
    expect((await run(['plan', 'web-01', '-m', 'site', '--detailed-exitcode'])).status).toBe(2);
    api.answer({ planAgent: streamOf(runResult(inSync)) });
    expect((await run(['plan', 'web-01', '-m', 'site', '--detailed-exitcode'])).status).toBe(0);
    expect((await run(['plan', 'web-01', '-m', 'site', '-o', 'name'])).stdout).toBe('');
  });

  it('groups agents with the same result and names those that were missed', async () => {
    const plan = (agent: typeof web1) => reported(agent, runResult(planned.slice(0, 2)));
    const offline = missed(db, 'unreachable', 'agent_not_connected', `agent ${db.node_id} is not connected`);
    api.answer({ planRollout: streamed([plan(web1), plan(web2), offline]) });
    const argv = ['plan', 'web-01', 'web-02', 'db-01', 'web-01', '-m', 'site'];
    expect((await golden('plan-fleet', argv)).status).toBe(5);
    const json = await run([...argv, '-o', 'json']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      has_changes: true,
      results: [
        { name: 'web-01', status: 'succeeded', operation_id: null, error: null, result: { has_changes: true } },
        { name: 'web-02', status: 'succeeded' },
        { name: 'db-01', status: 'unreachable', result: null, error: { code: 'agent_not_connected' } },
      ],
      summary: { agents: 3, succeeded: 2, failed: 0, unreachable: 1, skipped: 0 },
    });
  });

  it('hides agents with nothing to do', async () => {
    const quiet = reported(web1, runResult(inSync));
    api.answer({ planRollout: streamed([quiet, reported(web2, runResult(planned.slice(0, 2)))]) });
    await golden('plan-fleet-quiet', ['plan', 'web-01', 'web-02', '-m', 'site']);
    await golden('plan-fleet-verbose', ['plan', 'web-01', 'web-02', '-m', 'site', '-v']);
  });

  it('sends files along without storing them, and names each module once', async () => {
    const bodies: unknown[] = [];
    const before = api.requests.length;
    api.answer({
      planAgent: ({ body }) => {
        bodies.push(body);
        return streamOf(runResult(inSync));
      },
    });
    await run(['plan', 'web-01', '-f', siteFile, '-m', 'base', '-m', 'site']);
    const sources = [{ name: 'site', content: readFileSync(siteFile, 'utf8') }];
    expect(bodies).toEqual([{ modules: ['base', 'site'], sources }]);
    expect(api.requests.slice(before).filter((request) => request.includes('/modules'))).toEqual([]);
  });

  it('refuses files that make too large a request, and tells another way', async () => {
    const content = 'x'.repeat(1_000_000);
    const files = Array.from({ length: 9 }, (_, at) => {
      const text = `name: large-${at}\nsupports: [{platform: linux}]\ntemplates: [{id: t, content: ${content}}]\nresources: []\n`;
      return write(`large-${at}.orch.yaml`, text);
    });
    const before = api.requests.length;
    const ran = await run(['plan', 'web-01', ...files.flatMap((file) => ['-f', file])]);
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain('one request takes at most 8.0 MiB');
    expect(ran.stderr).toContain('orch module publish');
    expect(api.requests.slice(before).filter((request) => request.includes('/plan'))).toEqual([]);
  });

  it('shows warnings of the files and of the plan', async () => {
    api.answer({
      planAgent: streamOf(
        runResult(inSync, {
          warnings: [{ module: 'site', path: '/x', line: 4, column: 3, message: 'unused template' }],
        }),
      ),
    });
    await golden('plan-warnings', ['plan', 'web-01', '-f', write('none.orch.yaml', 'name: site\nresources: []\n')]);
  });

  it('ends with the status of what one agent was refused for', async () => {
    api.answer({
      planAgent: { problem: 'operation_in_progress', detail: `operation ${ulid(3)} is running on web-01` },
    });
    expect((await golden('plan-busy', ['plan', 'web-01', '-v'])).status).toBe(6);
    const json = await run(['plan', 'web-01', '-o', 'json']);
    expect(json).toMatchObject({ status: 6, stdout: '' });
    expect(JSON.parse(json.stderr)).toMatchObject({
      code: 'operation_in_progress',
      status: 409,
      request_id: REQUEST_ID,
    });
  });
});

describe('orch apply', () => {
  const order = (bodies: unknown[], reply = streamOf(done)): Answers => ({
    applyAgent: ({ body }) => {
      bodies.push(body);
      return reply;
    },
  });

  it('asks for consent, and without a terminal for --yes, before anything is sent', async () => {
    const before = api.requests.length;
    expect((await golden('apply-no-terminal', ['apply', 'web-01', '-f', siteFile])).status).toBe(64);
    expect(api.requests.length).toBe(before);
  });

  it('applies at once with --yes, and tells what was done', async () => {
    const bodies: unknown[] = [];
    api.answer(order(bodies));
    expect((await golden('apply-yes', ['apply', 'web-01', '-m', 'site', '--yes'])).status).toBe(0);
    expect(bodies).toEqual([{ modules: ['site'], allow_removals: null, expect: null }]);
    const { status, stdout, stderr } = await run([
      'apply',
      'web-01',
      '-m',
      'site',
      '--yes',
      '--json',
      '--detailed-exitcode',
    ]);
    expect({ status, stderr }).toEqual({ status: 2, stderr: '' });
    expect(JSON.parse(stdout)).toEqual(done);
  });

  it('asks for a confirmation, waits for the machine, and ends with 7 when it was undone', async () => {
    const bodies: unknown[] = [];
    const undone = runResult(done.resources, {
      operation_id: ulid(7),
      status: 'rolled_back',
      error: {
        code: 'rolled_back',
        message: 'the agent has undone the apply, because the machine did not come back within 90 s',
      },
      confirm_secs: 90,
      restored: {
        restored: 1,
        not_restored: 1,
        resources: [
          { kind: 'package-apt', identity: 'nginx', reason: 'packages stay as they are' },
          { kind: 'file-unix', identity: '/etc/motd', reason: null },
        ],
      },
    });
    const [result] = runLines(undone).slice(-1);
    api.answer(
      order(bodies, { lines: [...runLines(undone).slice(0, -1), { event: 'awaiting', left_secs: 87 }, result] }),
    );
    const argv = ['apply', 'web-01', '-m', 'site', '--yes', '--confirm-within', '90s'];
    expect((await golden('apply-rolled-back', argv)).status).toBe(7);
    expect(bodies).toEqual([{ modules: ['site'], allow_removals: null, expect: null, confirm_secs: 90 }]);
    for (const given of ['9s', '2h', 'soon']) {
      const { status, stderr } = await run([...argv.slice(0, -1), given]);
      expect({ status, stderr }).toEqual({ status: 64, stderr: expect.stringContaining('--confirm-within takes') });
    }
    const local = await run(['apply', '--local', '-f', siteFile, '--yes', '--confirm-within', '90s']);
    expect(local).toMatchObject({
      status: 64,
      stderr: expect.stringContaining('--confirm-within needs an orchestrator'),
    });
  });

  it('shows in a plan what an apply with a confirmation could not undo', async () => {
    api.answer({ planAgent: streamOf(runResult(planned, { confirm_secs: 60 })) });
    await golden('plan-confirm', ['plan', 'web-01', '-m', 'site', '--confirm-within', '90s']);
  });

  it('sends files with the apply, after the answer, and publishes none itself', async () => {
    const bodies: unknown[] = [];
    api.answer({ planAgent: streamOf(runResult(planned)), ...order(bodies) });
    const argv = ['apply', 'web-01', '-f', siteFile];
    const refused = await run(argv, { columns: 100, answers: [{ at: /Apply it, with 1 removal\?/, type: 'n\r' }] });
    expect(refused.status).not.toBe(0);
    expect(bodies).toEqual([]);
    const agreed = await run(argv, { columns: 100, answers: [{ at: /Apply it, with 1 removal\?/, type: 'y\r' }] });
    expect(agreed.stderr).toContain('Module site is published with it: no other machine follows it.');
    const sources = [{ name: 'site', content: readFileSync(siteFile, 'utf8'), replaces: 'none' }];
    expect(bodies).toEqual([
      { modules: ['site'], sources, allow_removals: null, expect: runResult(planned).plan_hash },
    ]);
    expect(api.requests.filter((request) => request === 'POST /modules')).toEqual([]);
  });

  it('asks for the removals of a plan, and sends that many as allowed', async () => {
    const bodies: unknown[] = [];
    const refusal = {
      code: 'removal_guard',
      message: 'it would remove everything',
      hint: 'name the modules',
      allow_removals: 1,
    };
    api.answer({ planAgent: streamOf(runResult(planned, { refusals: [refusal] })), ...order(bodies) });
    const answers = [{ at: /Apply it, with 1 removal\?/, type: 'y\r' }];
    expect((await run(['apply', 'web-01'], { columns: 100, answers })).status).toBe(0);
    expect(bodies).toEqual([{ modules: [], allow_removals: 1, expect: runResult(planned).plan_hash }]);
    const tooFew = await run(['apply', 'web-01', '--allow-removals', '0'], { columns: 100 });
    expect(tooFew.stderr).toContain('it would remove everything');
    expect(tooFew.stderr).not.toContain('Apply it');
    expect(bodies).toHaveLength(1);
  });

  it('does not ask about a plan that no answer makes acceptable', async () => {
    const refusal = { code: 'outside_window', message: 'only within its windows', hint: 'wait for it' };
    api.answer({ planAgent: streamOf(runResult(planned, { refusals: [refusal] })) });
    const ran = await run(['apply', 'web-01'], { columns: 100 });
    expect(ran).toMatchObject({ status: 6 });
    expect(ran.stderr).toContain('only within its windows');
    expect(ran.stderr).not.toContain('Apply');
  });

  it('ends with 3 when resources failed', async () => {
    api.answer(order([], streamOf(runResult(partlyApplied, { operation_id: ulid(2), plan_hash: null }))));
    expect((await golden('apply-failed', ['apply', 'web-01', '-m', 'site', '--yes'])).status).toBe(3);
  });

  it('ends with 5 when the agent never came, and with 3 when it was interrupted', async () => {
    const error = { code: 'not_delivered', message: 'the agent was not connected for 10 minutes' };
    api.answer(order([], streamOf(runResult([], { operation_id: ulid(2), status: 'failed', error }))));
    expect((await golden('apply-not-delivered', ['apply', 'web-01', '--yes'])).status).toBe(5);
    api.answer(order([], streamOf(runResult([], { operation_id: ulid(2), status: 'interrupted' }))));
    expect((await run(['apply', 'web-01', '--yes'])).status).toBe(3);
  });

  it('shows the plan on a terminal, asks naming removals, and applies only that', async () => {
    const bodies: unknown[] = [];
    api.answer({ planAgent: streamOf(runResult(planned)), ...order(bodies) });
    const answers = [{ at: /Apply it, with 1 removal\?/, type: 'y\r' }];
    const ran = await run(['apply', 'web-01', '-m', 'site'], { columns: 100, answers });
    expect(ran.status).toBe(0);
    expect(ran.stderr).toContain('This removes from web-01:');
    expect(ran.stderr).toContain('  - file-unix /etc/old.conf');
    expect(ran.stderr).toContain('~ file-unix /etc/site.conf');
    expect(ran.stdout).toContain('Applied: ');
    expect(ran.stdout).not.toContain('Plan: ');
    expect(bodies).toEqual([{ modules: ['site'], allow_removals: null, expect: runResult(planned).plan_hash }]);
  });

  it('changes nothing after a no', async () => {
    const bodies: unknown[] = [];
    api.answer({ planAgent: streamOf(runResult(planned)), ...order(bodies) });
    const answers = [{ at: 'Apply it', type: 'n\r' }];
    const ran = await run(['apply', 'web-01', '-m', 'site'], { columns: 100, answers });
    expect(ran.status).toBe(1);
    expect(ran.stderr).toContain('orch: not confirmed, nothing was changed');
    expect(bodies).toEqual([]);
  });

  it('is interrupted by Ctrl-C at the question', async () => {
    const bodies: unknown[] = [];
    api.answer({ planAgent: streamOf(runResult(planned)), ...order(bodies) });
    const answers = [{ at: 'Apply it', type: '\x03' }];
    const ran = await run(['apply', 'web-01', '-m', 'site'], { columns: 100, answers });
    expect(ran.status).toBe(130);
    expect(bodies).toEqual([]);
  });

  it('does not ask when nothing changes, but applies, so that drift checks know it', async () => {
    const bodies: unknown[] = [];
    const nothing = runResult(inSync, { operation_id: ulid(1), plan_hash: null });
    api.answer({ planAgent: streamOf(runResult(inSync)), ...order(bodies, streamOf(nothing)) });
    const ran = await run(['apply', 'web-01', '-m', 'site'], { columns: 100 });
    expect(ran).toMatchObject({ status: 0 });
    expect(ran.stdout).toBe(`web-01  operation ${ulid(1)}\nApplied: everything was as it should be; 6 unchanged.\n`);
    expect(bodies).toHaveLength(1);
  });

  it('does not say that all is well when the agent could not begin', async () => {
    const summary = { total: 2, unchanged: 0, pending: 0, changed: 0, failed: 0, skipped: 0, removed: 0 };
    const error = { code: 'disk_full', message: 'the journal cannot be written: ENOSPC' };
    const full = runResult([], { operation_id: ulid(1), status: 'failed', summary, error });
    api.answer({ planAgent: streamOf(runResult(planned)), ...order([], streamOf(full)) });
    const ran = await run(['apply', 'web-01', '-m', 'site', '--yes'], { columns: 100 });
    expect(ran.status).toBe(3);
    expect(ran.stdout).toBe(`web-01 failed  operation ${ulid(1)}\n  error: the journal cannot be written: ENOSPC\n`);
  });

  it('passes the removal guard only with --allow-removals', async () => {
    api.answer(
      order([], { problem: 'removal_guard', detail: '12 resources would be removed; 10 are allowed' } as never),
    );
    expect((await golden('apply-guard', ['apply', 'web-01', '-m', 'site', '--yes'])).status).toBe(6);
    const bodies: unknown[] = [];
    api.answer(order(bodies));
    await run(['apply', 'web-01', '-m', 'site', '--yes', '--allow-removals', '12']);
    expect(bodies).toMatchObject([{ allow_removals: 12 }]);
  });

  it('applies to several, tells each as it finishes, and leaves out those that could not be planned', async () => {
    const bodies: unknown[] = [];
    const offline = missed(db, 'unreachable', 'agent_not_connected', `agent ${db.node_id} is not connected`);
    const finished = appliedStream([reported(web1, done), reported(web2, done)]);
    api.answer({
      planRollout: streamed([reported(web1, runResult(planned)), reported(web2, runResult(planned)), offline]),
      applyRollout: ({ body }) => {
        bodies.push(body);
        return finished;
      },
    });
    const argv = ['apply', 'web-01', 'web-02', 'db-01', '-m', 'site'];
    const ran = await run(argv, { columns: 100, answers: [{ at: 'with 2 removals?', type: 'y\r' }] });
    expect(ran.status).toBe(5);
    expect(ran.stderr).toContain('  - file-unix /etc/old.conf on web-02');
    expect(bodies).toMatchObject([{ agents: [web1.node_id, web2.node_id], modules: ['site'] }]);
    expectGolden('apply-fleet', ran.stdout);
    const plain = await run(['apply', 'web-01', 'web-02', '--yes']);
    expect(plain.stderr.trim().split('\n')).toEqual([
      `Rollout ${ulid(9)} on 2 agents`,
      'web-01: succeeded (6 changed, 0 failed, 1 unchanged)',
      'web-02: succeeded (6 changed, 0 failed, 1 unchanged)',
    ]);
  });

  it('ends at once without a login', async () => {
    api.answer({ applyRollout: { problem: 'role_forbidden', detail: 'viewers may not do that' } });
    const ran = await run(['apply', 'web-01', 'web-02', '--yes']);
    expect(ran).toMatchObject({ status: 4, stdout: '' });
  });

  /** A stream that begins and then waits. */
  const endless = (release: Promise<void>): Answers => ({
    applyAgent: {
      lines: (async function* () {
        const [started, first] = runLines(done);
        yield started;
        yield first;
        await release;
      })(),
    },
  });

  it('leaves the operation running at the first Ctrl-C, and says how to go on', async () => {
    let release = () => {};
    api.answer(
      endless(
        new Promise((resolve) => {
          release = resolve;
        }),
      ),
    );
    const interrupts = new EventEmitter();
    let pressed = false;
    const onError = (shown: string) => {
      if (pressed || !shown.includes('1 resource')) return;
      pressed = true;
      interrupts.emit('SIGINT');
    };
    const ran = await run(['apply', 'web-01', '--yes'], { columns: 100, interrupts, onError });
    release();
    expect(ran).toMatchObject({ status: 130, stdout: '' });
    expect(ran.stderr).toContain(`watch it:  orch ops watch ${ulid(1)}`);
    expect(ran.stderr).toContain(`cancel it: orch ops cancel ${ulid(1)}`);
    expect(api.requests).not.toContain(`POST /state/operations/${ulid(1)}/cancel`);
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('ends at once at %s and leaves the operation running', async (name, status) => {
    let release = () => {};
    api.answer(
      endless(
        new Promise((resolve) => {
          release = resolve;
        }),
      ),
    );
    const interrupts = new EventEmitter();
    let sent = false;
    const onError = (shown: string) => {
      if (sent || !shown.includes('1 resource')) return;
      sent = true;
      interrupts.emit(name);
    };
    const ran = await run(['apply', 'web-01', '--yes'], { columns: 100, interrupts, onError });
    release();
    expect(ran).toMatchObject({ status, stdout: '' });
    expect(ran.stderr).toContain(`watch it:  orch ops watch ${ulid(1)}`);
    expect(ran.stderr).not.toContain('Press Ctrl-C again');
    expect(api.requests).not.toContain(`POST /state/operations/${ulid(1)}/cancel`);
  });

  it('cancels it at the second', async () => {
    let release = () => {};
    api.answer(
      endless(
        new Promise((resolve) => {
          release = resolve;
        }),
      ),
    );
    api.answer({ cancelOperation: { body: cancelling } });
    const interrupts = new EventEmitter();
    let presses = 0;
    const onError = (shown: string) => {
      const at = ['1 resource', 'Press Ctrl-C again'][presses];
      if (at === undefined || !shown.includes(at)) return;
      presses += 1;
      setImmediate(() => interrupts.emit('SIGINT'));
    };
    const ran = await run(['apply', 'web-01', '--yes'], { columns: 100, interrupts, onError });
    release();
    expect(ran.status).toBe(130);
    expect(ran.stderr).toContain('is being cancelled: it stops at the next resource');
    expect(api.requests).toContain(`POST /state/operations/${ulid(1)}/cancel`);
  });

  /** Answers an apply with a stream that breaks after two lines; `arrived` is called when both have arrived. */
  const breakingApply = () => {
    let arrived = () => {};
    const seen = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const lines = (async function* () {
      const [started, , second] = runLines(done);
      yield started;
      yield second;
      await seen;
      throw new Error('the server dies');
    })();
    return { applyAgent: { lines }, arrived };
  };

  it('follows the operation again when the connection breaks', async () => {
    const { applyAgent, arrived } = breakingApply();
    api.answer({ applyAgent, getOperation: streamOf(done) });
    const ran = await run(['apply', 'web-01', '--yes'], { onError: arrived });
    expect(api.violations.splice(0)).toEqual(['Error: the server dies']);
    expect(ran.status).toBe(0);
    expect(ran.stderr).toContain(`The connection broke; operation ${ulid(1)} goes on, and is followed again.`);
    expect(ran.stdout).toContain('Applied:');
  });

  it('tells how to go on when the connection breaks and the operation cannot be followed', async () => {
    const { applyAgent, arrived } = breakingApply();
    api.answer({ applyAgent, getOperation: { problem: 'operation_not_found', detail: 'there is none' } });
    const ran = await run(['apply', 'web-01', '--yes'], { onError: arrived });
    expect(api.violations.splice(0)).toEqual(['Error: the server dies']);
    expect(ran.status).toBe(69);
    expect(ran.stderr).toContain(`orch ops watch ${ulid(1)}`);
  });
});

const healthy: CheckResult = {
  module: 'site',
  name: 'front page',
  kind: 'http',
  status: 'healthy',
  duration_ms: 120,
  reason: null,
};
const unhealthy: CheckResult = {
  ...healthy,
  name: 'unit nginx',
  kind: 'unit',
  status: 'unhealthy',
  duration_ms: 30_012,
  reason: 'nginx.service is failed\u001b[31m, for 30 s',
};
const checkFailed = {
  code: 'verify_failed',
  message: 'check "unit nginx" of module site failed: nginx.service is failed, for 30 s',
} as const;

describe('health checks', () => {
  const verification = (checks: readonly CheckResult[]): { body: Verification } => ({
    body: {
      node_id: web1.node_id,
      operation_id: ulid(1),
      ok: checks.every(({ status }) => status === 'healthy'),
      started_at: 1,
      finished_at: 2,
      checks: [...checks],
      error: checks.every(({ status }) => status === 'healthy') ? null : checkFailed,
    },
  });

  it('are named in a plan, in one line', async () => {
    const many = Array.from({ length: 7 }, (_, n) => ({ ...healthy, name: `check ${n}`, status: 'pending' as const }));
    api.answer({ planAgent: streamOf(runResult(planned.slice(0, 1), { checks: many })) });
    await golden('plan-checks', ['plan', 'web-01', '-m', 'site']);
  });

  it('are shown after an apply: the unhealthy ones, and all with --verbose', async () => {
    const result = runResult(applied, {
      operation_id: ulid(1),
      status: 'failed',
      error: checkFailed,
      plan_hash: null,
      checks: [healthy, unhealthy],
    });
    api.answer({ applyAgent: streamOf(result) });
    expect((await golden('apply-checks', ['apply', 'web-01', '-m', 'site', '--yes'])).status).toBe(3);
    const operation = {
      ...operations[1],
      checks: [healthy, unhealthy, { ...unhealthy, name: 'late', status: 'not_run', reason: null }],
    };
    api.answer({ getOperation: { body: operation } });
    await golden('ops-show-checks', ['ops', 'show', ulid(1), '--verbose']);
  });

  it('run again on one agent, with an exit status that says how they are', async () => {
    api.answer({ verifyAgent: verification([healthy]) });
    expect((await golden('verify', ['verify', 'web-01'])).status).toBe(0);
    api.answer({ verifyAgent: verification([healthy, unhealthy]) });
    expect((await golden('verify-unhealthy', ['verify', 'web-01'])).status).toBe(1);
    const json = await run(['verify', 'web-01', '-o', 'json']);
    expect(JSON.parse(json.stdout)).toEqual(verification([healthy, unhealthy]).body);
    expect((await run(['verify', 'web-01', '-o', 'name'])).stdout).toBe('web-01\n');
    api.answer({ verifyAgent: verification([]) });
    expect((await golden('verify-none', ['verify', 'web-01'])).status).toBe(0);
  });

  it('run on a fleet, and tell of each agent', async () => {
    api.answer({
      verifyAgent: ({ params }) =>
        params.node_id === web2.node_id
          ? { problem: 'agent_too_old', detail: 'agent web-02 is too old to run the health checks of modules' }
          : verification([healthy, unhealthy]),
    });
    expect((await golden('verify-fleet', ['verify', 'web-01', 'web-02'])).status).toBe(1);
  });

  it('cannot run on an agent that is away or old, and need an agent', async () => {
    api.answer({ verifyAgent: { problem: 'agent_not_connected', detail: 'agent web-01 is not connected' } });
    expect((await golden('verify-offline', ['verify', 'web-01'])).status).toBe(5);
    expect((await golden('verify-usage', ['verify'])).status).toBe(64);
    expect((await run(['verify', 'web-01', '-l', 'role=web'])).stderr).toContain('one of them');
  });
});

describe('orch drift', () => {
  it('shows what differs', async () => {
    api.answer({ checkDrift: { body: driftDetail(planned.slice(0, 3)) } });
    expect((await golden('drift', ['drift', 'web-01'])).status).toBe(0);
    expect((await run(['drift', 'web-01', '--detailed-exitcode'])).status).toBe(2);
    const json = await run(['drift', 'web-01', '-o', 'json']);
    expect(JSON.parse(json.stdout)).toEqual(driftDetail(planned.slice(0, 3)));
    api.answer({ checkDrift: { body: driftDetail(inSync) } });
    await golden('drift-none', ['drift', 'web-01', '--detailed-exitcode']);
  });

  it('erases its progress before a note', async () => {
    const enforced: Assignment = {
      name: 'web',
      modules: ['site'],
      selector: '*',
      description: '',
      mode: 'enforce',
      stopped_reason: null,
      values: null,
      created_at: 1,
      created_by: operators[0]?.operator_id ?? '',
    };
    api.answer({ checkDrift: { body: driftDetail(planned.slice(0, 3)) }, listAssignments: { body: [enforced] } });
    const { stderr } = await run(['drift', 'web-01', 'web-02'], { columns: 80 });
    const note = stderr.split('\n').find((line) => line.includes('the orchestrator is set to repair')) ?? '';
    expect(stderr).toContain('\u001b[2K');
    expect(note.split('\u001b[2K').at(-1)).toMatch(/^the orchestrator is set to repair/);
  });

  it('notes a repair only where assignments in mode enforce cover the drift', async () => {
    const enforced: Assignment = {
      name: 'web',
      modules: ['site'],
      selector: '*',
      description: '',
      mode: 'enforce',
      stopped_reason: null,
      values: null,
      created_at: 1,
      created_by: operators[0]?.operator_id ?? '',
    };
    const resources = planned.slice(0, 3);
    const notes = async (...assignments: readonly Assignment[]) => {
      api.answer({ checkDrift: { body: driftDetail(resources) }, listAssignments: { body: assignments } });
      return (await run(['drift', 'web-01'])).stderr;
    };
    const said =
      'the orchestrator is set to repair the drift of web-01 (mode enforce); to check: orch agents show web-01';
    expect(await notes(enforced)).toContain(said);
    expect(await notes({ ...enforced, mode: 'on-connect' })).not.toContain(said);
    expect(await notes({ ...enforced, modules: ['other'] })).not.toContain(said);
    expect(await notes({ ...enforced, selector: 'role=db' })).not.toContain(said);
    expect(await notes({ ...enforced, selector: 'of a newer (orchestrator' })).not.toContain(said);
    api.answer({ listAssignments: { problem: 'store_unavailable', detail: 'the store is away' } });
    expect(await run(['drift', 'web-01'])).toMatchObject({ status: 0, stdout: expect.stringContaining('Drift:') });
  });

  it('says of a check that was cancelled no more than why', async () => {
    const error = { code: 'cancelled', message: 'an apply has taken web-01' };
    api.answer({ getDrift: { body: driftDetail([], { status: 'cancelled', error }) } });
    expect((await run(['drift', 'show', ulid(7)])).stdout).toMatch(/Error +an apply has taken web-01\n$/);
  });

  it('shows what does not count, when a file was changed and what ran then', async () => {
    const AT = Date.UTC(2026, 2, 1, 12, 0, 0) / 1000;
    const [same, created, updated, script] = planned;
    const by = operators[0]?.operator_id ?? '';
    const session = { by: 'ada', started_at: AT - 25, ended_at: AT + 60, offset_secs: 3725 };
    const resources = [
      ...(same ? [same] : []),
      ...(created
        ? [{ ...created, excuse: { kind: 'snoozed', by, reason: 'until the move', until: AT + 600 } } as const]
        : []),
      ...(updated
        ? [
            {
              ...updated,
              changed_at: AT,
              likely_causes: [
                { kind: 'terminal', id: ulid(3), ...session },
                { kind: 'command', id: ulid(4), ...session, ended_at: null, offset_secs: null },
                { kind: 'apply', id: ulid(5), ...session, offset_secs: null },
              ],
            } satisfies DriftResource,
          ]
        : []),
      ...(script ? [{ ...script, excuse: { kind: 'accepted', by, reason: null, until: null } } as const] : []),
    ];
    api.answer({ checkDrift: { body: driftDetail(resources, { snoozed: 1, accepted: 1 }) } });
    await golden('drift-remarks', ['drift', 'web-01']);
  });

  it('snoozes drift of an agent and of resources', async () => {
    const bodies: unknown[] = [];
    const ends_at = Date.UTC(2030, 0, 31) / 1000;
    const made = {
      snooze_id: ulid(8),
      node_id: web1.node_id,
      resources: null,
      reason: 'until the move',
      ends_at,
      created_at: 1,
      created_by: operators[0]?.operator_id,
    };
    const motd = { module: 'site', kind: 'file-unix', identity: '/etc/motd' };
    const applied_at = { applied_at: 1, operation_id: ulid(1), origin: 'created' };
    api.answer({
      getState: {
        body: {
          node_id: web1.node_id,
          operation_id: ulid(1),
          applied: [
            { ...motd, ...applied_at },
            { ...motd, kind: 'script', ...applied_at },
          ],
          pending_removals: [],
          unapplied: [],
        },
      },
      snoozeDrift: ({ body }) => {
        bodies.push(body);
        const { resources = null } = body as { resources?: unknown };
        return { status: 201, body: { ...made, resources } };
      },
      endDriftSnooze: { status: 204, body: undefined },
      listDriftExcuses: {
        body: {
          snoozes: [made, { ...made, snooze_id: ulid(9), resources: [motd] }],
          accepts: [
            {
              node_id: web1.node_id,
              ...motd,
              reason: null,
              drift_id: ulid(7),
              accepted_at: 1,
              accepted_by: operators[0]?.operator_id,
            },
          ],
        },
      },
    });
    const when = ['--until', '2030-01-31', '--reason', 'until the move'];
    await golden('drift-snooze', ['drift', 'snooze', 'web-01', ...when]);
    await golden('drift-snooze-resource', ['drift', 'snooze', 'web-01', 'file-unix /etc/motd', ...when]);
    await golden('drift-snooze-unknown', ['drift', 'snooze', 'web-01', '/etc/mtd', ...when]);
    await golden('drift-snooze-ambiguous', ['drift', 'snooze', 'web-01', '/etc/motd', ...when]);
    await golden('drift-snooze-no-time', ['drift', 'snooze', 'web-01', '--reason', 'x']);
    expect(bodies).toEqual([
      { ends_at, reason: 'until the move' },
      { ends_at, reason: 'until the move', resources: [motd] },
    ]);
    expect((await run(['drift', 'snooze', 'web-01', ...when, '-o', 'json'])).status).toBe(0);
    await golden('drift-snoozes', ['drift', 'snoozes', '-o', 'wide']);
    await golden('drift-unsnooze', ['drift', 'unsnooze', ulid(8)]);
  });

  it('accepts what a check has found, and asks before it does', async () => {
    const bodies: unknown[] = [];
    api.answer({
      checkDrift: { body: driftDetail(planned.slice(0, 3)) },
      acceptDrift: ({ body }) => {
        bodies.push(body);
        const { resources } = body as { resources: object[] };
        const how = { reason: null, drift_id: ulid(7), accepted_at: 1, accepted_by: operators[0]?.operator_id };
        return { body: resources.map((one) => ({ node_id: web1.node_id, ...one, ...how })) };
      },
    });
    expect((await golden('drift-accept-no-terminal', ['drift', 'accept', 'web-01', '/etc/site.conf'])).status).toBe(64);
    await golden('drift-accept', ['drift', 'accept', 'web-01', '/etc/site.conf', '--yes']);
    await golden('drift-accept-same', ['drift', 'accept', 'web-01', '/srv/site', '--yes']);
    const resources = [{ module: 'site', kind: 'file-unix', identity: '/etc/site.conf' }];
    expect(bodies).toEqual([{ drift_id: ulid(7), resources }]);
    const ran = await run(['drift', 'accept', 'web-01', '/etc/site.conf', '--yes', '-o', 'json']);
    expect(JSON.parse(ran.stdout)).toMatchObject([{ drift_id: ulid(7) }]);
  });

  it('prints a patch of module files, and names what is to be done by hand', async () => {
    const text = [
      'name: site',
      'supports:',
      '  - platform: linux',
      'resources:',
      '  - resource:',
      '      file-unix:',
      '        path: /etc/motd',
      '        content: |  # the greeting',
      '          hello',
      `  - resource: {file-unix: {path: /etc/secret, content: "$\{{ tags.role }}"}}`,
      '',
    ].join('\n');
    const path = write('adopted.orch.yaml', text);
    const file = {
      module: 'site',
      kind: 'file-unix',
      id: null,
      name: null,
      action: 'update',
      status: 'pending',
    } as const;
    const rest = { sensitive: false, reason: null, error: null, duration_ms: 1 } as const;
    const changes = [{ field: 'content', before: null, after: null }];
    api.answer({
      checkDrift: {
        body: driftDetail([
          {
            ...file,
            ...rest,
            identity: '/etc/motd',
            changes,
            diff: '--- a/m\n+++ b/m\n@@ -1,1 +1,1 @@\n-bye\n+hello\n',
          },
          { ...file, ...rest, identity: '/etc/secret', changes, diff: '--- a/m\n+++ b/m\n@@ -1,1 +1,1 @@\n-x\n+web\n' },
        ]),
      },
      listAssignments: { body: [] },
    });
    const adopt = ['drift', 'adopt', 'web-01'];
    const { status } = await golden('drift-adopt', [...adopt, '/etc/motd', '/etc/secret', '-f', path]);
    expect(status).toBe(3);
    const json = JSON.parse((await run([...adopt, '/etc/motd', '-f', path, '-o', 'json'])).stdout);
    expect(json).toMatchObject({ by_hand: [], patches: [{ module: 'site' }] });
    expect((await run([...adopt, '/etc/none', '-f', path])).stderr).toContain('no drifted resource');
  });

  it('finds what is declared with the values that the orchestrator keeps', async () => {
    const path = write(
      'valued.orch.yaml',
      `name: site
supports: [{platform: linux}]
inputs: {place: {type: string}, greeting: {type: string}}
resources:
- file-unix: {path: "$\{{ inputs.place }}", content: hello}
- {if: 'inputs.greeting == "long"', file-unix: {path: /etc/long, content: hello}}
`,
    );
    const text = 'values: [{when: {agent: web-01}, set: {site: {place: /etc/motd}}}]\n';
    const set = {
      name: 'fleet',
      revision: 1,
      sha256: 'a'.repeat(64),
      uploaded_at: 1,
      uploaded_by: 'ada',
      modules: ['site'],
    };
    const drifted = (identity: string): DriftResource => ({
      module: 'site',
      kind: 'file-unix',
      identity,
      id: null,
      name: null,
      action: 'update',
      status: 'pending',
      changes: [{ field: 'content', before: null, after: null }],
      diff: '--- a/m\n+++ b/m\n@@ -1,1 +1,1 @@\n-bye\n\\ No newline at end of file\n+hello\n\\ No newline at end of file\n',
      sensitive: false,
      reason: null,
      error: null,
      duration_ms: 1,
    });
    const assignment: Assignment = {
      name: 'web',
      modules: ['site'],
      selector: '*',
      description: '',
      mode: 'manual',
      stopped_reason: null,
      values: { site: { greeting: 'long' } },
      created_at: 1,
      created_by: operators[0]?.operator_id ?? '',
    };
    api.answer({
      checkDrift: { body: driftDetail([drifted('/etc/motd'), drifted('/etc/long')]) },
      listAssignments: { body: [assignment] },
      listValueSets: { body: [set] },
      getValueSet: { body: { ...set, content: text } },
    });
    const ran = await run(['drift', 'adopt', 'web-01', '/etc/motd', '/etc/long', '-f', path, '-o', 'json']);
    const { by_hand: byHand, patches } = JSON.parse(ran.stdout);
    expect(byHand).toEqual([]);
    const added = patches[0].patch.split('\n').filter((line: string) => /^\+[^+]/.test(line));
    expect(added).toEqual([
      `+- file-unix: {path: "$\{{ inputs.place }}", content: bye}`,
      `+- {if: 'inputs.greeting == "long"', file-unix: {path: /etc/long, content: bye}}`,
    ]);
    api.answer({ listValueSets: { body: [] } });
  });

  it('says when there is nothing to compare with', async () => {
    api.answer({ checkDrift: { problem: 'no_snapshot', detail: 'nothing was ever applied to web-01' } });
    expect((await golden('drift-no-snapshot', ['drift', 'web-01'])).status).toBe(1);
  });
});

describe('orch ops', () => {
  it('watches to the end', async () => {
    api.answer({
      getOperation: (request) =>
        request.headers.accept?.includes('ndjson') ? streamOf(done) : { body: operations[1] },
    });
    expect((await golden('ops-watch', ['ops', 'watch', ulid(1)])).status).toBe(0);
  });

  it('watches on when the session ends meanwhile, and tells nothing twice', async () => {
    const whole = [...runLines(done)];
    const over = {
      type: 'urn:orch:problem:unauthenticated',
      title: 'Not logged in',
      status: 401,
      detail: 'the session is unknown or over',
      code: 'unauthenticated',
      request_id: REQUEST_ID,
    };
    let asked = 0;
    api.answer({
      getOperation: (request) => {
        if (!request.headers.accept?.includes('ndjson')) return { body: operations[1] };
        asked += 1;
        return asked === 1 ? { lines: [...whole.slice(0, 3), { event: 'error', error: over }] } : { lines: whole };
      },
    });
    const ran = await run(['ops', 'watch', ulid(1), '--verbose']);
    api.answer({
      getOperation: (request) =>
        request.headers.accept?.includes('ndjson') ? streamOf(done) : { body: operations[1] },
    });
    expect(ran).toEqual(await run(['ops', 'watch', ulid(1), '--verbose']));
    expect(asked).toBe(2);
  });

  it('claims nothing of an operation that is still under way', async () => {
    const running = { ...finished, status: 'running' as const, finished_at: null };
    api.answer({ getOperation: { body: { ...running, resources: inSync, summary: summarize(inSync) } } });
    expect((await run(['ops', 'show', ulid(1)])).stdout).toContain('\n\nApplied: nothing so far; 6 unchanged.\n');
  });

  it('cancels', async () => {
    api.answer({ cancelOperation: { body: cancelling } });
    expect((await golden('ops-cancel', ['ops', 'cancel', ulid(1)])).status).toBe(0);
    api.answer({ cancelOperation: { problem: 'operation_finished', detail: `operation ${ulid(1)} has ended` } });
    expect((await run(['ops', 'cancel', ulid(1)])).status).toBe(1);
  });
});

describe('orch agents', () => {
  const approve: Answers = {
    setAgentStatus: ({ params, body }) => {
      const agent = agents.find(({ node_id }) => node_id === params.node_id) ?? pending;
      const { name, status } = body as { name?: string; status: 'approved' };
      return { body: { ...agent, node_id: params.node_id ?? '', name: name ?? agent.name, status } };
    },
  };

  it('approve shows the key and asks', async () => {
    api.answer(approve);
    const answers = [{ at: 'Approve this agent as web-03?', type: 'y\r' }];
    const ran = await run(['agents', 'approve', '77aa55ee', '--name', 'web-03'], { columns: 100, answers });
    expect(ran.status).toBe(0);
    expect(ran.stderr).toMatch(/Public key +77aa 55ee 4444/);
    expect(ran.stderr).toMatch(/Address +2001:db8::3/);
    expect(ran.stdout).toBe(`Approved web-03 (${pending.node_id}).\n`);
  });

  it.each([
    ['short', ['agents', 'approve', '77aa55e', '--name', 'web-03', '--yes'], 64],
    ['no-name', ['agents', 'approve', '77aa55ee', '--yes'], 1],
    ['no-terminal', ['agents', 'approve', '77aa55ee', '--name', 'web-03'], 64],
    ['yes', ['agents', 'approve', '77aa55ee', '--name', 'web-03', '--yes'], 0],
    ['all-no-terminal', ['agents', 'approve', '--all-pending'], 64],
  ])('approve, %s', async (name, argv, status) => {
    api.answer(approve);
    expect((await golden(`approve-${name}`, argv)).status).toBe(status);
  });

  it('approve does not pass over a name that the agent cannot take', async () => {
    api.answer({ ...approve, listAgents: { body: [web1] } });
    const again = ['agents', 'approve', web1.node_id, '--yes'];
    const asked = `POST /agents/${web1.node_id}`;
    const before = api.requests.length;
    expect(await run([...again, '--name', 'web-09'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('this agent is web-01, and an approval does not rename it'),
    });
    expect(api.requests.slice(before)).not.toContain(asked);
    expect((await run([...again, '--name', 'web-01'])).status).toBe(0);
    expect(api.requests.slice(before)).toContain(asked);
  });

  it('approve warns of an agent with the same hostname', async () => {
    const twin = { ...pending, initial_hostname: 'web-01.example' };
    api.answer({ ...approve, listAgents: { body: [web1, twin] } });
    const { stderr } = await run(['agents', 'approve', '77aa55ee', '--name', 'web-03', '--yes']);
    expect(stderr).toContain(`warning: the approved agent web-01 (${web1.node_id}) has the hostname web-01.example`);
  });

  it('approve --all-pending asks about each', async () => {
    const second = { ...pending, node_id: '9'.repeat(32), initial_hostname: 'spare' };
    api.answer({ ...approve, listAgents: { body: [web1, pending, second] } });
    const answers = [
      { at: 'Approve it as web-03', type: 'n\r' },
      { at: 'Approve it as spare', type: 'y\r' },
    ];
    const ran = await run(['agents', 'approve', '--all-pending'], { columns: 100, answers });
    expect(ran).toMatchObject({
      status: 0,
      stdout: `Approved spare (${second.node_id}).\nApproved 1 of 2 pending agents.\n`,
    });
  });

  it('reject, remove, tag and untag', async () => {
    const tagged = { ...web1, tags: { role: 'db', 'a.b': 'x=y' } };
    api.answer({
      setAgentStatus: { body: { ...web1, status: 'rejected' } },
      removeAgent: { status: 204, body: undefined },
      setTag: { status: 204, body: undefined },
      removeTag: { problem: 'tag_not_found', detail: 'web-01 has no tag canary' },
      getAgent: { body: tagged },
    });
    await golden('agents-reject', ['agents', 'reject', 'web-01', '--yes']);
    await golden('agents-remove', ['agents', 'remove', 'web-01', '--yes']);
    await golden('agents-tag', ['agents', 'tag', 'web-01', 'role=db', 'a.b=x=y']);
    expect(api.requests.slice(-3)).toEqual([
      `PUT /agents/${web1.node_id}/tags/role`,
      `PUT /agents/${web1.node_id}/tags/a.b`,
      `GET /agents/${web1.node_id}`,
    ]);
    expect((await golden('agents-untag', ['agents', 'untag', 'web-01', 'canary'])).status).toBe(1);
    const before = api.requests.length;
    expect((await golden('agents-tag-no-key', ['agents', 'tag', 'web-01', 'role=db', '=x'])).status).toBe(64);
    expect(api.requests.slice(before).filter((line) => line.startsWith('PUT'))).toEqual([]);
  });
});

describe('orch operator', () => {
  const key = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';

  it('add takes hex, an OpenSSH line or a file', async () => {
    const bodies: unknown[] = [];
    api.answer({
      addOperator: ({ body }) => {
        bodies.push(body);
        const added = { operator_id: 'e'.repeat(32), username: 'ada', role: 'operator', bootstrap: false, added_at: 1 };
        return { body: { ...added, added_by: 'x', removed_at: null, removed_by: null, public_key: key } };
      },
    });
    const line = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea ada@home';
    writeFileSync(home.file('ada.pub'), `${line}\n`);
    for (const given of [key.toUpperCase(), line, `@${home.file('ada.pub')}`]) {
      expect(await run(['operator', 'add', given, '--username', 'ada', '--role', 'viewer'])).toMatchObject({
        status: 0,
      });
    }
    expect(bodies).toEqual(Array(3).fill({ public_key: key, username: 'ada', role: 'viewer' }));
  });

  it.each([
    ['bad-key', ['operator', 'add', 'abc', '--username', 'ada'], 64],
    ['missing-file', ['operator', 'add', '@/nonexistent/ada.pub', '--username', 'ada'], 64],
    ['bad-role', ['operator', 'add', key, '--username', 'ada', '--role', 'root'], 64],
  ])('add, %s', async (name, argv, status) => {
    expect((await golden(`operator-add-${name}`, argv)).status).toBe(status);
  });

  it('remove asks, and tells what the orchestrator refuses', async () => {
    api.answer({ removeOperator: { problem: 'last_admin', detail: 'ada is the last admin and cannot be removed' } });
    expect((await golden('operator-remove-last', ['operator', 'remove', 'ada', '--yes'])).status).toBe(1);
    expect((await golden('operator-remove-no-terminal', ['operator', 'remove', 'ada'])).status).toBe(64);
    expect((await golden('operator-unknown', ['operator', 'show', 'adaa'])).status).toBe(1);
  });
});

describe('orch module', () => {
  const folder = home.file('modules');
  beforeAll(() => {
    mkdirSync(`${folder}/deep`, { recursive: true });
    mkdirSync(`${folder}/.hidden`);
    mkdirSync(home.file('empty'));
    writeFileSync(`${folder}/b.orch.yaml`, 'name: b\nsupports:\n  - platform: linux\nresources: []\n');
    writeFileSync(`${folder}/deep/a.orch.yaml`, 'name: a\nsupports:\n  - platform: linux\nresources: []\n');
    writeFileSync(`${folder}/notes.yaml`, 'not: a module');
    writeFileSync(`${folder}/.hidden/c.orch.yaml`, 'broken');
    const bad =
      'name: bad\nsupports:\n  - platform: linux\nresources:\n  - resource:\n      file-unix:\n        path: relative\n        mode: "9"\n  - resuorce: {}\n';
    writeFileSync(home.file('bad.orch.yaml'), bad);
    writeFileSync(home.file('copy.orch.yaml'), 'name: site\nsupports:\n  - platform: linux\nresources: []\n');
    writeFileSync(home.file('latin1.orch.yaml'), Buffer.from([0x6e, 0xe4]));
  });

  it('validate shows every mistake with its place', async () => {
    expect((await golden('validate-bad', ['module', 'validate', home.file('bad.orch.yaml'), siteFile])).status).toBe(1);
    expect((await golden('validate-good', ['module', 'validate', siteFile, folder])).status).toBe(0);
    const json = await run(['module', 'validate', home.file('bad.orch.yaml'), '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject([
      { name: null, valid: false, diagnostics: [{ line: 7 }, { line: 8 }, { line: 9 }, { line: 9 }] },
    ]);
  });

  it.each([
    ['missing', ['nope.orch.yaml'], 64],
    ['empty', ['empty'], 64],
    ['encoding', ['latin1.orch.yaml'], 64],
  ])('validate, %s', async (name, files, status) => {
    const argv = ['module', 'validate', ...files.map((file) => home.file(file))];
    expect((await golden(`validate-${name}`, argv)).status).toBe(status);
  });

  it('publish sends files of directories, and nothing when one is broken', async () => {
    api.answer(uploadAnswer);
    await golden('publish', ['module', 'publish', folder, siteFile]);
    const before = api.requests.length;
    expect((await golden('publish-bad', ['module', 'publish', siteFile, home.file('bad.orch.yaml')])).status).toBe(1);
    expect((await golden('publish-twice', ['module', 'publish', siteFile, home.file('copy.orch.yaml')])).status).toBe(
      64,
    );
    expect(api.requests.length).toBe(before);
    const json = await run(['module', 'publish', siteFile, '-o', 'json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ name: 'site', warnings: [] });
    const same = {
      name: 'site',
      uploaded_at: 1,
      uploaded_by: 'ada',
      revision: 1,
      sha256: SHA,
      changed: false,
      warnings: [],
    };
    api.answer({ uploadModule: { body: same } });
    expect((await run(['module', 'publish', siteFile])).stdout).toBe(`Unchanged: site (${siteFile}).\n`);
  });

  it('publish shows what only the orchestrator refuses, with its places', async () => {
    api.answer({
      uploadModule: {
        problem: 'invalid_module',
        detail: 'the module "site" has 1 error',
        more: { errors: [{ path: '/resources/0', message: 'no such kind', line: 4, column: 5 }] },
      },
    });
    expect((await golden('publish-refused', ['module', 'publish', siteFile])).status).toBe(1);
  });

  it('remove and schema', async () => {
    api.answer({ removeModule: { status: 204, body: undefined } });
    await golden('module-remove', ['module', 'remove', 'site', '--yes']);
    const schema = JSON.parse((await run(['module', 'schema'])).stdout);
    expect(schema).toMatchObject({ $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' });
  });
});
