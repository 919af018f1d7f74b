/** Assignments, and plan, apply and drift of the agents that one of them, or a selector, stands for. */
import { EventEmitter } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Assignment, Rollout, RolloutResult } from '../../src/contract/assignments.js';
import type { RunResult } from '../../src/contract/runs.js';
import { expectGolden, type RunOptions, runOrch, transcript } from '../support/cli.js';
import {
  agents,
  applied,
  db,
  driftDetail,
  inSync,
  partlyApplied,
  planned,
  readings,
  runResult,
  streamOf,
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
};

const assignmentReadings = {
  listAssignments: { body: [web, { ...web, name: 'zoo', modules: ['zoo'], selector: '*', description: null }] },
  getAssignment: {
    body: { ...web, agents: [web1, web2].map(({ node_id, name }) => ({ node_id, name })) },
  },
};

interface Told extends RolloutResult {
  readonly result: RunResult | null;
}

const told = (agent: typeof web1, result: RunResult, status: RolloutResult['status'] = 'succeeded'): Told => ({
  node_id: agent.node_id,
  name: agent.name,
  status,
  operation_id: result.operation_id,
  summary: result.summary,
  error: result.error,
  result: { ...result, node_id: agent.node_id },
});

const missed = (agent: typeof web1, status: RolloutResult['status'], code: string, message: string): Told => ({
  node_id: agent.node_id,
  name: agent.name,
  status,
  operation_id: null,
  summary: null,
  error: { code, message },
  result: null,
});

const OFFLINE = ['unreachable', 'agent_not_connected', 'agent db-01 is not connected'] as const;
const SKIPPED = ['skipped', 'rollout_stopped', 'not started: 1 agent has failed'] as const;

function rolloutOf(results: readonly Told[]): Rollout {
  const howMany = (status: string) => results.filter((one) => one.status === status).length;
  return {
    assignment: 'web',
    rollout_id: ulid(9),
    has_changes: results.some(({ result }) => result?.has_changes),
    results: results.map(({ result: _, ...rest }) => rest),
    summary: {
      agents: results.length,
      succeeded: howMany('succeeded'),
      failed: howMany('failed'),
      unreachable: howMany('unreachable'),
      skipped: howMany('skipped'),
    },
  };
}

const streamed = (results: readonly Told[]): Reply => ({
  lines: [
    { event: 'started', rollout_id: ulid(9), agents: results.length },
    ...results.map((agent) => ({ event: 'agent', agent })),
    { event: 'result', result: rolloutOf(results) },
  ],
});

const plan = (agent: typeof web1) => told(agent, runResult(planned.slice(0, 2)));
const done = (agent: typeof web1, number: number) =>
  told(agent, runResult(applied.slice(0, 2), { operation_id: ulid(number), plan_hash: null }));

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
    expect(bodies).toEqual([
      { name: 'web', modules: ['base', 'site'], selector: 'role=web', description: null },
      { modules: null, selector: 'env=prod', description: null },
      { modules: ['site'], selector: null, description: '' },
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
    expect(JSON.parse(json.stdout)).toEqual(rolloutOf([plan(web1), plan(web2), missed(db, ...OFFLINE)]));
    // Who asks whether something changes hears it, although an agent was missed.
    expect((await run(['plan', '--assignment', 'web', '--detailed-exitcode'])).status).toBe(2);
    api.answer({ planAssignment: streamed([missed(db, ...OFFLINE)]) });
    expect((await run(['plan', '--assignment', 'web', '--detailed-exitcode'])).status).toBe(5);
    api.answer({ planAssignment: streamed([plan(web1)]) });
    expect((await run(['plan', '--assignment', 'web', '--detailed-exitcode'])).status).toBe(2);
  });

  it('takes an assignment without agents for a mistake, unless told otherwise', async () => {
    api.answer({ planAssignment: streamed([]), applyAssignment: streamed([]) });
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
  const failed = told(web2, runResult(partlyApplied, { operation_id: ulid(2), plan_hash: null }), 'failed');

  it('hands the pace to the orchestrator, and tells who failed and who was not started', async () => {
    const bodies: unknown[] = [];
    api.answer({
      applyAssignment: ({ body, headers }) => {
        bodies.push(body);
        expect(headers['idempotency-key']).toBeDefined();
        return streamed([done(web1, 1), failed, missed(db, ...SKIPPED)]);
      },
    });
    const pace = ['--concurrency', '4', '--canary', '1', '--max-failures', '1'];
    const argv = ['apply', '--assignment', 'web', '--yes', '-m', 'extra', ...pace, '--allow-removals', '2'];
    expect((await golden('apply-assignment', argv)).status).toBe(3);
    expect(bodies).toEqual([
      { modules: ['extra'], concurrency: 4, canary: 1, max_failures: 1, allow_removals: 2, expect: null },
    ]);
  });

  it('asks on a terminal, and applies only what the plans showed', async () => {
    const bodies: unknown[] = [];
    api.answer({
      planAssignment: streamed([plan(web1), plan(web2), missed(db, ...OFFLINE)]),
      applyAssignment: ({ body }) => {
        bodies.push(body);
        return streamed([done(web1, 1), done(web2, 2)]);
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
    expect(ran.stderr).toContain(`watch it: orch ops list --rollout ${ulid(9)}`);
    expect(api.requests).toContain(`POST /rollouts/${ulid(9)}/cancel`);
  });

  it('tells how to go on when the connection breaks', async () => {
    api.answer({ applyAssignment: { lines: [{ event: 'started', rollout_id: ulid(9), agents: 2 }] } });
    const ran = await run(['apply', '--assignment', 'web', '--yes']);
    expect(ran.status).toBe(69);
    expect(ran.stderr).toContain(`orch ops list --rollout ${ulid(9)}`);
  });
});

describe('a selector', () => {
  const selected = { listAgents: { body: agents.filter(({ name }) => name?.startsWith('web')) } };

  it('chooses approved agents for plan, apply and drift', async () => {
    const asked: string[] = [];
    api.answer({
      listAgents: ({ query }) => {
        asked.push(`${query.status} ${query.filter}`);
        return selected.listAgents;
      },
      planAgent: ({ params }) => streamOf(runResult(planned.slice(0, 2), { node_id: params.node_id ?? '' })),
      applyAgent: ({ params }) =>
        streamOf(runResult(applied, { operation_id: ulid(1), node_id: params.node_id ?? '', plan_hash: null })),
      checkDrift: ({ params }) => ({ body: driftDetail(inSync, { node_id: params.node_id ?? '' }) }),
    });
    expect((await golden('plan-selector', ['plan', '-l', 'role=web', '-m', 'site'])).status).toBe(0);
    expect((await run(['apply', '--selector', 'role=web', '-m', 'site', '--yes'])).status).toBe(0);
    expect((await run(['drift', '-l', 'role=web'])).status).toBe(0);
    expect((await run(['drift', '--assignment', 'web'])).status).toBe(0);
    expect(asked).toEqual(Array(4).fill('approved role=web'));
  });

  it('that matches nothing is a mistake, unless told otherwise', async () => {
    api.answer({ listAgents: { body: [] } });
    const refused = await run(['drift', '-l', 'role=none']);
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain('no approved agent matches "role=none"');
    expect((await run(['drift', '-l', 'role=none', '--allow-empty'])).status).toBe(0);
  });

  it('takes ranges of names', async () => {
    const asked: (string | undefined)[] = [];
    api.answer({
      planAgent: ({ params }) => {
        asked.push(params.node_id);
        return streamOf(runResult(planned));
      },
    });
    expect((await run(['plan', 'web-[01-02]', 'web-02', '-m', 'site'])).status).toBe(0);
    expect(asked.toSorted()).toEqual([web1.node_id, web2.node_id].toSorted());
    const missing = await run(['plan', 'web-[01-03]', '-m', 'site']);
    expect(missing).toMatchObject({ status: 1, stderr: expect.stringContaining('there is no agent "web-03"') });
    const single = await run(['state', 'web-[01-02]']);
    expect(single).toMatchObject({ status: 64, stderr: expect.stringContaining('takes a single node') });
    expect((await run(['plan', 'web-[02-01]', '-m', 'site'])).stderr).toContain('"web-[02-01]" is no range of nodes');
  });

  it('that matches a single agent gives programs the same shape', async () => {
    api.answer({ listAgents: { body: [web1] }, planAgent: streamOf(runResult(planned)) });
    const { stdout } = await run(['plan', '-l', 'role=web', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ has_changes: true, summary: { agents: 1, succeeded: 1 } });
    api.answer({ planAgent: { problem: 'agent_not_connected', detail: 'web-01 is not connected' } });
    const missedOne = await run(['plan', '-l', 'role=web', '--json']);
    expect(missedOne.status).toBe(5);
    expect(JSON.parse(missedOne.stdout)).toMatchObject({ summary: { agents: 1, unreachable: 1 } });
  });

  it('keeps the rest from starting when a canary fails', async () => {
    const asked: string[] = [];
    api.answer({
      ...selected,
      applyAgent: ({ params }) => {
        asked.push(params.node_id ?? '');
        return streamOf(runResult(partlyApplied, { operation_id: ulid(2), plan_hash: null }));
      },
    });
    const ran = await run(['apply', '-l', 'role=web', '--yes', '--canary', '1']);
    expect(ran.status).toBe(3);
    expect(asked).toHaveLength(1);
    expect(ran.stdout).toContain('1 failed, 1 not started');
  });

  it('begins no further agent once Ctrl-C was pressed', async () => {
    const asked: string[] = [];
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const result = runResult(applied, { operation_id: ulid(1), plan_hash: null });
    api.answer({
      ...selected,
      applyAgent: ({ params }) => {
        asked.push(params.node_id ?? '');
        return {
          lines: (async function* () {
            yield { event: 'started', operation_id: ulid(1) };
            yield { event: 'resource', resource: applied[0] };
            await released;
            yield { event: 'result', result };
          })(),
        };
      },
    });
    const interrupts = new EventEmitter();
    let pressed = false;
    const onError = (shown: string) => {
      // The agent ends while the person could still press Ctrl-C again.
      if (shown.includes('Press Ctrl-C again within 2 seconds')) release();
      if (pressed || !shown.includes('1 resource')) return;
      pressed = true;
      interrupts.emit('SIGINT');
    };
    const argv = ['apply', '-l', 'role=web', '--yes', '--concurrency', '1'];
    const ran = await run(argv, { columns: 100, interrupts, onError });
    expect(asked).toHaveLength(1);
    expect(ran.stderr).toContain('No further agent begins.');
    expect(ran).toMatchObject({ status: 3, stdout: expect.stringContaining('1 not started') });
  });

  it('touches few of many agents when they fail under a bound', async () => {
    const fleet = Array.from({ length: 12 }, (_, index) => ({
      ...web1,
      node_id: index.toString(16).repeat(32),
      name: `web-${index}`,
    }));
    const asked: string[] = [];
    api.answer({
      listAgents: { body: fleet },
      applyAgent: ({ params }) => {
        asked.push(params.node_id ?? '');
        const result = asked.length > 2 ? partlyApplied : planned;
        return streamOf(runResult(result, { operation_id: ulid(asked.length), plan_hash: null }));
      },
    });
    const ran = await run(['apply', '-l', 'role=web', '--yes', '--canary', '3', '--max-failures', '1']);
    expect(ran.status).toBe(3);
    expect(asked).toHaveLength(3);
    expect(ran.stdout).toContain('1 failed, 9 not started');
  });
});

describe('orch ops list --rollout', () => {
  it('asks for the operations of a rollout', async () => {
    expect((await run(['ops', 'list', '--rollout', ulid(9)])).status).toBe(0);
    expect(api.requests.at(-2)).toContain(`rollout=${ulid(9)}`);
  });
});
