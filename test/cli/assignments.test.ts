/** Assignments, and plan, apply and drift of the agents that one of them, or a selector, stands for. */
import { EventEmitter } from 'node:events';
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Assignment } from '../../src/contract/assignments.js';
import { expectGolden, Home, type RunOptions, runOrch, transcript } from '../support/cli.js';
import {
  agents,
  applied,
  appliedStream,
  db,
  driftDetail,
  inSync,
  missed,
  OFFLINE,
  partlyApplied,
  planned,
  readings,
  reported,
  rolloutOf,
  runResult,
  SKIPPED,
  streamed,
  ulid,
  web1,
  web2,
} from '../support/cli-world.js';
import { type FakeApi, loggedIn, type Reply, startFakeApi } from '../support/fake-api.js';

let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi();
});
beforeEach(() => api.answer({ ...readings, ...assignmentReadings }));
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(argv, { ...options, env: { ...loggedIn(api), NO_COLOR: '1', ...options.env } });

const golden = async (name: string, argv: readonly string[]) => {
  const ran = await run(argv);
  expectGolden(name, transcript(argv, ran));
  return ran;
};

const web: Assignment = {
  name: 'web',
  modules: ['base', 'site'],
  selector: 'role=web',
  description: 'what every web server has',
  created_at: 1740823200,
  created_by: 'aaaa1111',
  mode: 'manual',
  stopped_reason: null,
  values: null,
};

const assignmentReadings = {
  listAssignments: { body: [web, { ...web, name: 'zoo', modules: ['zoo'], selector: '*', description: null }] },
  getAssignment: {
    body: { ...web, agents: [web1, web2].map(({ node_id, name }) => ({ node_id, name })) },
  },
};

const plan = (agent: typeof web1) => reported(agent, runResult(planned.slice(0, 2)));
const done = (agent: typeof web1, number: number) =>
  reported(agent, runResult(applied.slice(0, 2), { operation_id: ulid(number), plan_hash: null }));

describe('orch assignments', () => {
  it('are listed and shown', async () => {
    await golden('assignments', ['assignments']);
    await golden('assignments-show', ['assignments', 'show', 'web']);
    expect((await run(['assignments', 'list', '-o', 'name'])).stdout).toBe('web\nzoo\n');
    api.answer({ listAssignments: { body: [] } });
    expect((await run(['assignments'])).stdout).toMatch(/^No assignments\./);
  });

  it('are created, changed and deleted', async () => {
    const bodies: unknown[] = [];
    const keep = ({ body }: { readonly body: unknown }): Reply => {
      bodies.push(body);
      return { body: web };
    };
    api.answer({ createAssignment: keep, updateAssignment: keep, removeAssignment: { body: undefined, status: 204 } });
    const create = ['assignments', 'create', 'web', '-m', 'base', '-m', 'site', '-l', 'role=web'];
    expect((await golden('assignments-create', create)).status).toBe(0);
    expect((await run(['assignments', 'edit', 'web', '--selector', 'env=prod'])).status).toBe(0);
    expect((await run(['assignments', 'edit', 'web', '-m', 'site', '--description', ''])).status).toBe(0);
    expect((await run(['assignments', 'edit', 'web', '--mode', 'enforce'])).status).toBe(0);
    expect(bodies).toEqual([
      { name: 'web', modules: ['base', 'site'], selector: 'role=web', description: null },
      { modules: null, selector: 'env=prod', description: null },
      { modules: ['site'], selector: null, description: '' },
      { modules: null, selector: null, description: null, mode: 'enforce' },
    ]);
    expect(await run(['assignments', 'remove', 'web', '--yes'])).toMatchObject({
      status: 0,
      stdout: 'Deleted assignment web.\n',
    });
    const asked = await run(['assignments', 'remove', 'web']);
    expect(asked.status).toBe(64);
  });

  it.each([
    [['assignments', 'create', 'web', '-l', '*'], 'an assignment needs a module'],
    [['assignments', 'create', 'web', '-m', 'site'], '--selector'],
    [['assignments', 'edit', 'web'], 'nothing to change'],
    [['plan'], 'needs an agent'],
    [['plan', 'web-01', '-l', '*'], 'one of them'],
    [['drift', '--assignment', 'web', '--selector', '*'], 'one of them'],
    [['plan', '--local', '--assignment', 'web'], '--assignment needs an orchestrator'],
    [['apply', '--assignment', 'web', '--yes', '--max-failures', '0'], 'at least 1'],
  ])('refuse %j', async (argv, message) => {
    const { status, stderr } = await run(argv);
    expect(status).toBe(64);
    expect(stderr).toContain(message);
  });

  it('tell what the orchestrator refuses', async () => {
    api.answer({ removeModule: { problem: 'module_in_use', detail: 'module site is named by assignment web' } });
    expect(await run(['module', 'remove', 'site', '--yes'])).toMatchObject({ status: 1 });
    api.answer({ createAssignment: { problem: 'invalid_selector', detail: 'position 3: a value is expected' } });
    expect((await run(['assignments', 'create', 'x', '-m', 'm', '-l', 'a=='])).stderr).toContain('position 3');
  });
});

describe('orch plan --assignment', () => {
  it('shows agents with the same plan together', async () => {
    api.answer({ planAssignment: streamed([plan(web1), plan(web2), missed(db, ...OFFLINE)]) });
    expect((await golden('plan-assignment', ['plan', '--assignment', 'web'])).status).toBe(5);
    const json = await run(['plan', '--assignment', 'web', '--json']);
    const body = rolloutOf([plan(web1), plan(web2), missed(db, ...OFFLINE)], { assignment: 'web' });
    expect(JSON.parse(json.stdout)).toEqual({
      ...body,
      results: body.results.map(({ error, ...one }, at) => ({
        ...one,
        error: error && { code: error.code, message: error.message },
        result: [plan(web1), plan(web2), null][at]?.result ?? null,
      })),
    });
    // Who asks whether something changes hears it, although an agent was missed.
    expect((await run(['plan', '--assignment', 'web', '--detailed-exitcode'])).status).toBe(2);
    api.answer({ planAssignment: streamed([missed(db, ...OFFLINE)]) });
    expect((await run(['plan', '--assignment', 'web', '--detailed-exitcode'])).status).toBe(5);
    api.answer({ planAssignment: streamed([plan(web1)]) });
    expect((await run(['plan', '--assignment', 'web', '--detailed-exitcode'])).status).toBe(2);
  });

  it('takes an assignment without agents for a mistake, except when it is allowed', async () => {
    api.answer({ planAssignment: streamed([]), applyAssignment: appliedStream([]) });
    const refused = await run(['plan', '--assignment', 'web']);
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain('no approved agent matches the selector of assignment web');
    const allowed = await run(['plan', '--assignment', 'web', '--allow-empty']);
    expect(allowed).toMatchObject({ status: 0, stdout: 'No agent matches, so there is nothing to do.\n' });
    expect((await run(['apply', '--assignment', 'web', '--yes'])).status).toBe(1);
    expect((await run(['apply', '--assignment', 'web', '--yes', '--allow-empty'])).status).toBe(0);
  });
});

describe('orch apply --assignment', () => {
  const failed = reported(web2, runResult(partlyApplied, { operation_id: ulid(2), plan_hash: null }), 'failed');

  it('hands the pace to the orchestrator, and tells who failed and who was not started', async () => {
    const bodies: unknown[] = [];
    api.answer({
      applyAssignment: ({ body, headers }) => {
        bodies.push(body);
        expect(headers['idempotency-key']).toBeDefined();
        return appliedStream([done(web1, 1), failed, missed(db, ...SKIPPED)], { assignment: 'web' });
      },
    });
    const pace = ['--concurrency', '4', '--canary', '1', '--max-failures', '1'];
    const argv = ['apply', '--assignment', 'web', '--yes', '-m', 'extra', ...pace, '--allow-removals', '2'];
    expect((await golden('apply-assignment', argv)).status).toBe(3);
    expect(bodies).toEqual([
      {
        modules: ['extra'],
        concurrency: 4,
        canary: 1,
        max_failures: 1,
        allow_removals: 2,
        expect: null,
        progress: false,
      },
    ]);
  });

  it('asks on a terminal, and applies only what the plans showed', async () => {
    const bodies: unknown[] = [];
    api.answer({
      planAssignment: streamed([plan(web1), plan(web2), missed(db, ...OFFLINE)]),
      applyAssignment: ({ body }) => {
        bodies.push(body);
        return appliedStream([done(web1, 1), done(web2, 2)], { assignment: 'web' });
      },
    });
    const answers = [{ at: 'Apply this to 2 agents?', type: 'y\r' }];
    const ran = await run(['apply', '--assignment', 'web'], { columns: 100, answers });
    expect(ran.status).toBe(5);
    expect(ran.stdout).toContain('3 agents: 2 changed, 1 offline.');
    const { plan_hash } = runResult(planned);
    expect(bodies).toMatchObject([{ expect: { [web1.node_id]: plan_hash, [web2.node_id]: plan_hash } }]);
  });

  it('leaves the rollout to the orchestrator at the first Ctrl-C, and cancels it at the second', async () => {
    let release = () => {};
    const until = new Promise<void>((resolve) => {
      release = resolve;
    });
    api.answer({
      applyAssignment: {
        lines: (async function* () {
          yield { event: 'started', rollout_id: ulid(9), agents: 2 };
          yield { event: 'agent', agent: done(web1, 1) };
          await until;
        })(),
      },
      cancelRollout: { body: { rollout_id: ulid(9), cancelled: [ulid(2)] } },
    });
    const interrupts = new EventEmitter();
    let presses = 0;
    const onError = (shown: string) => {
      const at = ['1 of 2 agents', 'Press Ctrl-C again'][presses];
      if (at === undefined || !shown.includes(at)) return;
      presses += 1;
      setImmediate(() => interrupts.emit('SIGINT'));
    };
    const ran = await run(['apply', '--assignment', 'web', '--yes'], { columns: 100, interrupts, onError });
    release();
    expect(ran.status).toBe(130);
    expect(ran.stderr).toContain(`watch it:  orch rollouts watch ${ulid(9)}`);
    expect(ran.stderr).toContain(`cancel it: orch rollouts cancel ${ulid(9)}`);
    expect(api.requests).toContain(`POST /rollouts/${ulid(9)}/cancel`);
  });

  it('tells how to go on when the connection breaks and the rollout cannot be followed', async () => {
    api.answer({
      applyAssignment: { lines: [{ event: 'started', rollout_id: ulid(9), agents: 2 }] },
      getRollout: { problem: 'rollout_not_found', detail: 'there is none' },
    });
    const ran = await run(['apply', '--assignment', 'web', '--yes']);
    expect(ran.status).toBe(69);
    expect(ran.stderr).toContain(`orch rollouts watch ${ulid(9)}`);
  });
});

describe('a selector', () => {
  const selector = 'role=web';
  const failed = (agent: typeof web1) =>
    reported(agent, runResult(partlyApplied, { operation_id: ulid(2), plan_hash: null }), 'failed');

  it('is evaluated by the orchestrator for plan and apply, and by this end for drift', async () => {
    const asked: string[] = [];
    const bodies: unknown[] = [];
    const keep =
      (reply: Reply) =>
      ({ body }: { readonly body: unknown }) => {
        bodies.push(body);
        return reply;
      };
    api.answer({
      listAgents: ({ query }) => {
        asked.push(`${query.status} ${query.filter}`);
        return { body: agents.filter(({ name }) => name?.startsWith('web')) };
      },
      planRollout: keep(streamed([plan(web1), plan(web2)], { selector })),
      applyRollout: keep(appliedStream([done(web1, 1), done(web2, 2)], { selector })),
      checkDrift: ({ params }) => ({ body: driftDetail(inSync, { node_id: params.node_id ?? '' }) }),
    });
    expect((await golden('plan-selector', ['plan', '-l', selector, '-m', 'site'])).status).toBe(0);
    expect((await golden('apply-selector', ['apply', '-l', selector, '-m', 'site', '--yes'])).status).toBe(0);
    const pace = { concurrency: null, canary: null, max_failures: null, progress: false };
    expect(bodies).toEqual([
      { selector, agents: null, modules: ['site'], ...pace },
      { selector, agents: null, modules: ['site'], ...pace, allow_removals: null, expect: null },
    ]);
    expect(asked).toEqual([]);
    expect((await run(['drift', '-l', selector])).status).toBe(0);
    expect((await run(['drift', '--assignment', 'web'])).status).toBe(0);
    expect(asked).toEqual(Array(2).fill(`approved ${selector}`));
  });

  it('that matches nothing is a mistake, except when it is allowed', async () => {
    api.answer({ listAgents: { body: [] }, planRollout: streamed([]), applyRollout: appliedStream([]) });
    for (const argv of [['drift'], ['plan'], ['apply', '--yes']]) {
      const refused = await run([...argv, '-l', 'role=none']);
      expect(refused.status).toBe(1);
      expect(refused.stderr).toContain('no approved agent matches "role=none"');
      expect((await run([...argv, '-l', 'role=none', '--allow-empty'])).status).toBe(0);
    }
  });

  it('that matches nothing stores no file', async () => {
    const home = new Home();
    onTestFinished(() => home.dispose());
    const file = home.file('site.orch.yaml');
    writeFileSync(file, 'name: site\nsupports: [{platform: linux}]\nresources: []\n');
    api.answer({ listAgents: { body: [] } });
    const before = api.requests.length;
    expect((await run(['apply', '-l', 'role=none', '-f', file, '--yes'])).status).toBe(1);
    expect((await run(['apply', '-l', 'role=none', '-f', file, '--yes', '--allow-empty'])).status).toBe(0);
    expect(api.requests.slice(before).filter((request) => !request.startsWith('GET'))).toEqual([]);
  });

  it('takes ranges of names', async () => {
    const bodies: { readonly agents?: unknown }[] = [];
    api.answer({
      planRollout: ({ body }) => {
        bodies.push(body as object);
        return streamed([plan(web1), plan(web2)]);
      },
    });
    expect((await run(['plan', 'web-[01-02]', 'web-02', '-m', 'site'])).status).toBe(0);
    expect(bodies).toMatchObject([{ selector: null, agents: [web1.node_id, web2.node_id] }]);
    const missing = await run(['plan', 'web-[01-03]', '-m', 'site']);
    expect(missing).toMatchObject({ status: 1, stderr: expect.stringContaining('there is no agent "web-03"') });
    const single = await run(['agents', 'show', 'web-[01-02]']);
    expect(single).toMatchObject({ status: 64, stderr: expect.stringContaining('takes a single node') });
    expect((await run(['plan', 'web-[02-01]', '-m', 'site'])).stderr).toContain('"web-[02-01]" is no range of nodes');
  });

  it('that matches a single agent gives programs the same shape', async () => {
    api.answer({ planRollout: streamed([plan(web1)], { selector }) });
    const { stdout } = await run(['plan', '-l', selector, '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      assignment: null,
      selector,
      rollout_id: ulid(9),
      has_changes: true,
      results: [{ name: 'web-01', result: { node_id: web1.node_id, has_changes: true } }],
      summary: { agents: 1, succeeded: 1 },
    });
    api.answer({ planRollout: streamed([missed(db, ...OFFLINE)], { selector }) });
    const missedOne = await run(['plan', '-l', selector, '--json']);
    expect(missedOne.status).toBe(5);
    expect(JSON.parse(missedOne.stdout)).toMatchObject({ summary: { agents: 1, unreachable: 1 } });
  });

  it('is applied to the agents that were planned, with what their plans showed', async () => {
    const bodies: unknown[] = [];
    api.answer({
      planRollout: streamed([plan(web1), plan(web2), missed(db, ...OFFLINE)], { selector }),
      applyRollout: ({ body }) => {
        bodies.push(body);
        return appliedStream([done(web1, 1), failed(web2)]);
      },
    });
    const answers = [{ at: 'Apply this to 2 agents?', type: 'y\r' }];
    const ran = await run(['apply', '-l', selector], { columns: 100, answers });
    expect(ran.status).toBe(3);
    expect(ran.stdout).toContain('3 agents: 1 changed, 1 failed, 1 offline.');
    const { plan_hash } = runResult(planned);
    expect(bodies).toMatchObject([
      {
        selector: null,
        agents: [web1.node_id, web2.node_id],
        expect: { [web1.node_id]: plan_hash, [web2.node_id]: plan_hash },
        progress: true,
      },
    ]);
  });

  it('tells which agents were not started, and what helps those that were refused', async () => {
    const busy = missed(web1, 'failed', 'operation_in_progress', 'operation X is in progress on web-01');
    const hint = 'wait for it, or cancel it: orch ops cancel X';
    const refused = { ...busy, error: busy.error && { ...busy.error, hint } };
    api.answer({ applyRollout: appliedStream([refused, missed(web2, ...SKIPPED)], { selector }) });
    const argv = ['apply', '-l', selector, '--yes', '--canary', '1', '--max-failures', '1'];
    expect((await golden('apply-selector-stopped', argv)).status).toBe(3);
  });

  it('leaves the rollout to the orchestrator at Ctrl-C', async () => {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const resource = { module: 'site', kind: 'file-unix', identity: '/etc/motd', action: 'update', status: 'changed' };
    api.answer({
      applyRollout: {
        lines: (async function* () {
          yield { event: 'started', rollout_id: ulid(9), agents: 2 };
          yield { event: 'resource', node_id: web1.node_id, name: 'web-01', resource };
          await released;
        })(),
      },
    });
    const interrupts = new EventEmitter();
    let pressed = false;
    const onError = (shown: string) => {
      if (pressed || !shown.includes('0 of 2 agents, 1 resource, 1 change  web-01: changed file-unix /etc/motd'))
        return;
      pressed = true;
      interrupts.emit('SIGINT');
    };
    const before = api.requests.length;
    const ran = await run(['apply', '-l', selector, '--yes'], { columns: 120, interrupts, onError });
    release();
    expect(ran).toMatchObject({ status: 130, stdout: '' });
    expect(ran.stderr).toContain(`Rollout ${ulid(9)} goes on without you, also when the orchestrator restarts.`);
    expect(api.requests.slice(before).filter((request) => request.includes('cancel'))).toEqual([]);
  });
});

describe('orch ops cancel --rollout', () => {
  it('cancels a rollout', async () => {
    api.answer({ cancelRollout: { body: { rollout_id: ulid(9), cancelled: [ulid(2)] }, status: 202 } });
    expect((await golden('ops-cancel-rollout', ['ops', 'cancel', '--rollout', ulid(9)])).status).toBe(0);
    expect((await run(['ops', 'cancel'])).status).toBe(64);
    expect((await run(['ops', 'cancel', ulid(2), '--rollout', ulid(9)])).status).toBe(64);
  });
});

describe('orch ops list --rollout', () => {
  it('asks for the operations of a rollout', async () => {
    expect((await run(['ops', 'list', '--rollout', ulid(9)])).status).toBe(0);
    expect(api.requests.at(-2)).toContain(`rollout=${ulid(9)}`);
  });
});
