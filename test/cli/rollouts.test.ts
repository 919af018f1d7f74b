/** Rollouts: the commands of their life, the pace of an apply, and how both end. */
import { EventEmitter } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FleetSummary } from '../../src/contract/agents.js';
import type { RolloutDetail } from '../../src/contract/rollouts.js';
import { expectGolden, type RunOptions, runOrch, transcript } from '../support/cli.js';
import {
  applied,
  appliedStream,
  db,
  haltedRollout,
  inSync,
  missed,
  OFFLINE,
  operations,
  planned,
  readings,
  reported,
  rolloutOf,
  rolloutRecord,
  runResult,
  streamed,
  ulid,
  web1,
  web2,
} from '../support/cli-world.js';
import { type FakeApi, loggedIn, type Reply, type Request, startFakeApi } from '../support/fake-api.js';

let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi();
});
beforeEach(() => api.answer(readings));
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(argv, { ...options, env: { ...loggedIn(api), NO_COLOR: '1', ...options.env } });

const golden = async (name: string, argv: readonly string[], options: RunOptions = {}) => {
  const ran = await run(argv, options);
  expectGolden(name, transcript(argv, ran));
  return ran;
};

const { agents: _, ...haltedRecord } = haltedRollout;
const id = haltedRollout.rollout_id;
const plan = (agent: typeof web1) => reported(agent, runResult(planned.slice(0, 2)));
const done = (agent: typeof web1, number: number) =>
  reported(agent, runResult(applied.slice(0, 2), { operation_id: ulid(number), plan_hash: null }));
const wantsStream = ({ headers }: Request) => headers.accept?.includes('ndjson') === true;

describe('orch rollouts', () => {
  it('lists them within 80 columns', async () => {
    const { stdout } = await run(['rollouts'], { columns: 80 });
    expectGolden('rollouts-80', stdout);
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    await golden('rollouts', ['rollouts']);
    await golden('rollouts-wide', ['rollouts', 'list', '-o', 'wide']);
    expect((await run(['rollouts', '-o', 'name'])).stdout).toBe(`${ulid(7)}\n${ulid(8)}\n${ulid(9)}\n`);
  });

  it('filters them, and says when none matches', async () => {
    const { stdout } = await run([
      'rollouts',
      '--state',
      'halted',
      '--assignment',
      'web',
      '--limit',
      '2',
      '-o',
      'json',
    ]);
    expect(JSON.parse(stdout).rollouts).toEqual([haltedRecord]);
    expect(api.requests.at(-1)).toBe('GET /rollouts?state=halted&assignment=web&limit=2');
    expect((await run(['rollouts', '--state', 'cancelled'])).stdout).toMatch(/^No matching rollouts\./);
    expect(await run(['rollouts', '--state', 'broken'])).toMatchObject({ status: 64 });
  });

  it('shows one with the agents that need attention first', async () => {
    expect((await golden('rollouts-show', ['rollouts', 'show', id])).status).toBe(0);
    await golden('rollouts-show-verbose', ['rollouts', 'show', id, '--verbose']);
    const { stdout } = await run(['rollouts', 'show', id, '-o', 'json']);
    expect(JSON.parse(stdout)).toEqual(haltedRollout);
  });

  it('shows hundreds of agents in a few lines', async () => {
    const [, failed] = haltedRollout.agents.filter(({ state }) => state === 'failed');
    const many = Array.from({ length: 200 }, (_none, at) => ({
      ...failed,
      name: `${'a-machine-with-a-very-long-name-'.repeat(2)}${at}`,
      error: { code: 'script_failed', message: `exit status ${at}`, hint: null },
    }));
    api.answer({ getRollout: { body: { ...haltedRollout, agents: many } } });
    const few = (await run(['rollouts', 'show', id])).stdout.split('\n');
    expect(few).toContain('  and 180 more with other errors: --verbose shows all');
    const all = (await run(['rollouts', 'show', id, '-v'])).stdout;
    expect(all.match(/exit status \d+/g)).toHaveLength(200);
    const alike = many.map((agent) => ({ ...agent, error: { code: 'x', message: 'no space', hint: null } }));
    api.answer({ getRollout: { body: { ...haltedRollout, agents: alike } } });
    expect((await run(['rollouts', 'show', id])).stdout).toContain('-9 and 190 more: no space\n');
  });

  it('pauses, resumes, retries and cancels', async () => {
    const bodies: unknown[] = [];
    const counts = { ...haltedRecord.counts, running: 2, waiting: 26 };
    const paused = { ...haltedRecord, state: 'paused', reason: 'errors at the load balancer', counts };
    const running = { ...haltedRecord, state: 'running', reason: null };
    api.answer({
      pauseRollout: ({ body }) => {
        bodies.push(body);
        return { body: paused };
      },
      resumeRollout: { body: running },
      retryRollout: { body: running },
      cancelRollout: { body: { rollout_id: id, cancelled: [ulid(1), ulid(2)] } },
    });
    await golden('rollouts-pause', ['rollouts', 'pause', id, '--reason', 'errors at the load balancer']);
    expect(bodies).toEqual([{ reason: 'errors at the load balancer' }]);
    await golden('rollouts-resume', ['rollouts', 'resume', id, '--yes']);
    await golden('rollouts-retry', ['rollouts', 'retry', id, '--yes']);
    await golden('rollouts-cancel', ['rollouts', 'cancel', id]);
  });

  it('asks before it acts on machines again', async () => {
    api.answer({ resumeRollout: { body: haltedRecord }, retryRollout: { body: haltedRecord } });
    const before = api.requests.length;
    for (const [verb, question] of [
      ['resume', 'Resume the rollout of web, with 28 waiting agents?'],
      ['retry', 'Apply web again to 3 agents (2 failed, 1 offline, 0 skipped)?'],
    ] as const) {
      const refused = await run(['rollouts', verb, id]);
      expect(refused).toMatchObject({ status: 64, stderr: expect.stringContaining(question) });
      const no = await run(['rollouts', verb, id], { columns: 100, answers: [{ at: question, type: 'n\r' }] });
      expect(no).toMatchObject({ status: 1, stderr: expect.stringContaining('nothing was changed') });
    }
    expect(api.requests.slice(before).filter((request) => request.startsWith('POST'))).toEqual([]);
    const yes = { columns: 100, answers: [{ at: 'waiting agents?', type: 'y\r' }] };
    expect((await run(['rollouts', 'resume', id], yes)).status).toBe(0);
    expect(api.requests.at(-1)).toBe(`POST /rollouts/${id}/resume`);
  });

  it('tells what the orchestrator refuses', async () => {
    api.answer({ pauseRollout: { problem: 'rollout_finished', detail: `rollout ${id} has ended` } });
    expect(await run(['rollouts', 'pause', id])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('has ended'),
    });
    api.answer({ retryRollout: { problem: 'rollout_in_progress', detail: `rollout ${id} is running` } });
    expect(await run(['rollouts', 'retry', id, '--yes'])).toMatchObject({ status: 6 });
  });

  it('explains an ID of the other kind', async () => {
    api.answer({ cancelRollout: { problem: 'rollout_not_found', detail: 'there is no such rollout' } });
    await golden('rollouts-show-operation', ['rollouts', 'show', ulid(1)]);
    await golden('ops-show-rollout', ['ops', 'show', id]);
    expect((await run(['rollouts', 'show', ulid(55)])).stderr).toContain(`there is no rollout "${ulid(55)}"`);
    expect((await run(['ops', 'cancel', '--rollout', ulid(1)])).stderr).toContain('is an operation, not a rollout');
    for (const verb of ['watch', 'output']) {
      expect((await run(['ops', verb, id])).stderr).toContain(`${id} is a rollout, not an operation`);
    }
    api.answer({
      getOperation: ({ params }) =>
        params.operation_id === ulid(1)
          ? { body: { ...operations[1], rollout_id: id } }
          : { problem: 'operation_not_found', detail: 'there is no such operation' },
    });
    expect((await run(['rollouts', 'watch', ulid(1)])).stderr).toContain(`its rollout: orch rollouts show ${id}`);
  });

  it('completes IDs', async () => {
    const { stdout } = await run(['__complete', '--', 'rollouts', 'pause', ulid(8).slice(0, -1)]);
    expect(stdout).toContain(`${ulid(8)} halted web\n`);
  });
});

describe('orch rollouts watch', () => {
  const ended: RolloutDetail = {
    ...haltedRollout,
    state: 'failed',
    reason: '1 agent did not succeed',
    agents: haltedRollout.agents.slice(8, 12),
    counts: { ...haltedRollout.counts, agents: 4, waiting: 0, succeeded: 1 },
  };
  const record = (fields: object) => ({ event: 'rollout', rollout: rolloutRecord({ rollout_id: id, ...fields }) });
  const running = { ...haltedRollout, state: 'running' as const, reason: null };
  const soaking = { number: 1, of: 3, soaking_until: 1740823500 };
  const lines = [
    { event: 'started', rollout_id: id, agents: 40 },
    record({ state: 'running', wave: { ...soaking, soaking_until: null } }),
    { event: 'agent', agent: done(web1, 1) },
    record({ state: 'running', wave: soaking }),
    { event: 'agent', agent: { ...missed(web2, 'failed', 'agent_timeout', 'it says nothing'), operation_id: ulid(2) } },
    record({ state: 'halted', reason: '1 of 11 agents of wave 2 did not succeed' }),
  ];
  const result = { event: 'result', result: rolloutOf([done(web1, 1)]) };

  /** Answers the details until the stream has ended, and others after it. */
  const following = (stream: () => Reply, last: RolloutDetail) => {
    let isOver = false;
    return (request: Request): Reply => {
      if (!wantsStream(request)) return { body: isOver ? last : running };
      isOver = true;
      return stream();
    };
  };

  it('follows until it halts, and ends as the apply would', async () => {
    api.answer({ getRollout: following(() => ({ lines: [...lines, result] }), haltedRollout) });
    expect((await golden('rollouts-watch', ['rollouts', 'watch', id])).status).toBe(3);
  });

  it('follows a restart of the orchestrator, and tells nothing twice', async () => {
    const whole = await (async () => {
      api.answer({ getRollout: following(() => ({ lines: [...lines, result] }), haltedRollout) });
      return run(['rollouts', 'watch', id]);
    })();
    let streams = 0;
    let details = 0;
    api.answer({
      getRollout: (request) => {
        if (wantsStream(request)) {
          streams += 1;
          const stopping = {
            event: 'error',
            error: {
              code: 'shutting_down',
              status: 503,
              detail: 'it stops',
              type: 'urn:orch:problem:shutting_down',
              title: 't',
            },
          };
          return { lines: streams === 1 ? [...lines.slice(0, 3), stopping] : [...lines, result] };
        }
        details += 1;
        return { body: details === 1 ? running : haltedRollout };
      },
    });
    const ran = await run(['rollouts', 'watch', id]);
    expect(streams).toBe(2);
    expect(ran.stdout).toBe(whole.stdout);
    expect(ran.stderr).toContain('waiting for the orchestrator\n');
    expect(ran.stderr.match(/web-01: succeeded/g)).toHaveLength(1);
  });

  it.each([
    ['succeeded', [] as const, 0],
    ['failed', ['unreachable'] as const, 5],
    ['failed', ['failed'] as const, 3],
    ['failed', ['failed', 'unreachable'] as const, 3],
    ['cancelled', ['skipped'] as const, 3],
    ['reverted', ['reverted'] as const, 3],
    ['halted', ['waiting'] as const, 3],
  ])('ends %s with %j with %i', async (state, states, status) => {
    const agents = states.map((one, at) => ({ ...ended.agents[0], name: `a${at}`, state: one }));
    api.answer({ getRollout: { body: { ...ended, state, agents: [...agents, ended.agents[0]] } } });
    expect((await run(['rollouts', 'watch', id, '-o', 'json'])).status).toBe(status);
  });

  it('leaves it at Ctrl-C', async () => {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const open = async function* () {
      yield* lines.slice(0, 3);
      await released;
    };
    api.answer({ getRollout: following(() => ({ lines: open() }), running) });
    const interrupts = new EventEmitter();
    const onError = (shown: string) => {
      if (shown.includes('web-01: succeeded')) interrupts.emit('SIGINT');
    };
    const before = api.requests.length;
    const ran = await run(['rollouts', 'watch', id], { interrupts, onError });
    release();
    expect(ran).toMatchObject({ status: 130, stdout: '' });
    expect(api.requests.slice(before).filter((request) => request.startsWith('POST'))).toEqual([]);
  });
});

describe('the pace of orch apply', () => {
  const apply = ['apply', '-l', 'role=web', '-m', 'site', '--yes'];

  it('is handed to the orchestrator', async () => {
    const bodies: unknown[] = [];
    api.answer({
      applyRollout: ({ body }) => {
        bodies.push(body);
        return appliedStream([done(web1, 1), done(web2, 2)], { selector: 'role=web' });
      },
    });
    const pace = ['--canary', '1', '--waves', '10%,50%,100%', '--soak', '5m', '--max-failures', '5%'];
    const rest = ['--concurrency', '25%', '--on-failure', 'revert', '--when-online', '--expires', '36h'];
    expect((await run([...apply, ...pace, ...rest])).status).toBe(0);
    expect((await run([...apply, '--skip-offline'])).status).toBe(0);
    expect((await run([...apply, '--when-online'])).status).toBe(0);
    expect(bodies).toMatchObject([
      {
        canary: 1,
        waves: ['10%', '50%', '100%'],
        soak_secs: 300,
        max_failures: '5%',
        concurrency: '25%',
        on_failure: 'revert',
        when_online_secs: 129_600,
      },
      { skip_offline: true },
      { when_online_secs: 86_400 },
    ]);
    expect(bodies[1]).not.toHaveProperty('waves');
  });

  it.each([
    [['--waves', '10%,5%'], '--waves must rise, and 5% follows 10%'],
    [['--waves', '1,1,100%'], '--waves must rise, and 1 follows 1'],
    [['--waves', '1,,100%'], '--waves takes a number of agents of at least 1, or a share of them, not ""'],
    [['--waves', '0,100%'], '--waves takes a number of agents of at least 1'],
    [['--waves', '0%,100%'], '--waves takes a share from 1% to 100%, not "0%"'],
    [['--canary', '101%'], '--canary takes a share from 1% to 100%, not "101%"'],
    [['--canary', 'two'], 'such as --canary 2 or --canary 10%'],
    [['--max-failures', '0'], '--max-failures takes a number of agents of at least 1'],
    [['--soak', '5m'], '--soak is a pause between waves'],
    [['--soak', '5m', '--waves', '100%'], '--soak is a pause between waves'],
    [['--soak', '5', '--canary', '1'], '--soak takes a duration, not "5"'],
    [['--on-failure', 'revert'], '--on-failure says what a bound does'],
    [['--on-failure', 'stop', '--canary', '1'], '--on-failure takes halt or revert, not "stop"'],
    [['--expires', '2h'], '--when-online --expires 2h'],
    [['--when-online', '--expires', 'soon'], '--expires takes a duration, not "soon"'],
    [['--when-online', '--skip-offline'], 'exclude each other'],
  ])('is refused when it makes no sense: %j', async (options, message) => {
    const before = api.requests.length;
    const { status, stderr } = await run([...apply, ...options]);
    expect(status).toBe(64);
    expect(stderr).toContain(message);
    expect(api.requests.length).toBe(before);
  });

  it.each(['--waves', '--soak', '--on-failure', '--expires'])('is no pace of a plan: %s', async (option) => {
    expect(await run(['plan', 'web-01', option, '1'])).toMatchObject({ status: 64 });
  });

  it.each([
    ['--when-online', undefined],
    ['--detach', undefined],
    ['--canary', '1'],
  ])('is nothing for --local: %s', async (option, value) => {
    const argv = ['apply', '--local', '-f', 'x.orch.yaml', '--yes', option, ...(value === undefined ? [] : [value])];
    const ran = await run(argv);
    expect(ran.status).toBe(64);
    expect(ran.stderr).toContain(`${option} needs an orchestrator, and --local has none`);
  });
});

describe('an apply in a rollout', () => {
  const apply = ['apply', '-l', 'role=web', '-m', 'site', '--yes'];

  it('tells its ID at once, and at its end how to go on', async () => {
    const halted = { wave: { number: 1, of: 3, soaking_until: null }, rollout_id: ulid(9) };
    const waiting = missed(web2, 'skipped', 'rollout_stopped', 'not started: 1 agent has failed');
    const failed = missed(web1, 'failed', 'agent_timeout', 'agent web-01 says nothing');
    api.answer({ applyRollout: appliedStream([failed, waiting], { selector: 'role=web' }, halted) });
    expect((await golden('apply-halted', [...apply, '--waves', '1,100%'])).status).toBe(3);
    const { stdout } = await run([...apply, '--waves', '1,100%', '-o', 'json']);
    expect(JSON.parse(stdout)).toMatchObject({ rollout_id: ulid(9), state: 'halted', reason: '1 agent has failed' });
  });

  it('does not count agents that are skipped on request', async () => {
    const skipped = missed(web2, 'skipped', 'agent_not_connected', 'agent web-02 is offline');
    const fields = { state: 'succeeded', reason: null } as const;
    api.answer({ applyRollout: appliedStream([done(web1, 1), skipped], {}, fields) });
    expect((await run([...apply, '--skip-offline'])).status).toBe(0);
  });

  it('ends with 3 if it was cancelled by another operator, although no agent failed', async () => {
    const fields = { state: 'cancelled', reason: 'ada cancelled the rollout' } as const;
    api.answer({ applyRollout: appliedStream([done(web1, 1)], {}, fields) });
    const ran = await run(apply);
    expect(ran.status).toBe(3);
    expect(ran.stdout).toContain(`Rollout ${ulid(9)} was cancelled: ada cancelled the rollout\n`);
  });

  it('is left to the orchestrator with --detach', async () => {
    const bodies: unknown[] = [];
    const answer = ({ body }: Request): Reply => {
      bodies.push(body);
      return { body: { ...rolloutOf([]), summary: { ...rolloutOf([]).summary, agents: 2 } }, status: 202 };
    };
    const running = runResult(inSync, { operation_id: ulid(1), plan_hash: null, status: 'running', finished_at: null });
    api.answer({
      applyRollout: answer,
      applyAgent: ({ body }) => {
        bodies.push(body);
        return { body: running, status: 202 };
      },
    });
    expect((await golden('apply-detach', [...apply, '--detach'])).status).toBe(0);
    expect((await run([...apply, '--detach', '-o', 'name'])).stdout).toBe(`${ulid(9)}\n`);
    await golden('apply-detach-agent', ['apply', 'web-01', '-m', 'site', '--yes', '--detach']);
    expect(bodies).toMatchObject([{ wait: false }, { wait: false }, { wait: false }]);
  });

  it('takes a single agent that is to be waited for', async () => {
    const bodies: unknown[] = [];
    api.answer({
      applyRollout: ({ body }) => {
        bodies.push(body);
        return appliedStream([done(web1, 1)]);
      },
    });
    expect((await run(['apply', 'web-01', '-m', 'site', '--yes', '--when-online'])).status).toBe(0);
    expect(bodies).toMatchObject([{ agents: [web1.node_id], when_online_secs: 86_400 }]);
  });

  it('asks about offline agents that it waits for, and holds the others to their plans', async () => {
    const bodies: unknown[] = [];
    api.answer({
      planRollout: streamed([plan(web1), missed(db, ...OFFLINE)]),
      applyRollout: ({ body }) => {
        bodies.push(body);
        return appliedStream([done(web1, 1), done(db, 2)]);
      },
    });
    const argv = ['apply', '-l', 'role=web', '--when-online'];
    const answers = [{ at: /applied to if back within 24 h: db-01\.\s+Apply this to web-01\?/, type: 'y\r' }];
    const ran = await run(argv, { columns: 100, answers });
    expect(ran.status).toBe(0);
    const { plan_hash } = runResult(planned);
    expect(bodies).toMatchObject([
      { agents: [web1.node_id, db.node_id], expect: { [web1.node_id]: plan_hash, [db.node_id]: null } },
    ]);
    api.answer({ planRollout: streamed([missed(db, ...OFFLINE)]) });
    const no = await run(argv, { columns: 100, answers: [{ at: /db-01\.\s+Begin\?/, type: 'n\r' }] });
    expect(no.status).toBe(1);
    expect(bodies).toHaveLength(1);
  });

  it('leaves offline agents out with --skip-offline, and does not count them', async () => {
    api.answer({
      planRollout: streamed([plan(web1), missed(db, ...OFFLINE)]),
      applyRollout: appliedStream([done(web1, 1)]),
    });
    const answers = [{ at: 'Apply this to web-01?', type: 'y\r' }];
    const ran = await run(['apply', '-l', 'role=web', '--skip-offline'], { columns: 100, answers });
    expect(ran.status).toBe(0);
    expect(ran.stdout).toContain('db-01 is offline, so it is skipped');
  });

  it('is followed by operations that name it', async () => {
    const [first] = operations;
    const { resources: __, ...operation } = { ...first, rollout_id: id };
    api.answer({ listOperations: { body: { operations: [operation], total: 1, limit: 50, offset: 0 } } });
    expect((await run(['ops', '--rollout', id, '-o', 'wide'])).stdout).toMatch(new RegExp(`ROLLOUT.*\\n.*${id}`));
    api.answer({ listOperations: { body: { operations: [], total: 0, limit: 50, offset: 0 } } });
    expect((await run(['ops', '--rollout', id])).stdout).toMatch(/^No matching operations/);
    expect(await run(['ops', '--rollout', ulid(55)])).toMatchObject({ status: 1 });
  });
});

describe('orch status', () => {
  const { body } = readings.getFleet as { readonly body: FleetSummary };

  it('tells of rollouts that have not ended, and warns of halted ones', async () => {
    api.answer({ getFleet: { body: { ...body, rollouts: { running: 2, paused: 0, halted: 1 } } } });
    const { status, stdout, stderr } = await run(['status']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Rollouts +2 running, 1 halted$/m);
    expect(stderr).toBe('warning: 1 rollout has halted: orch rollouts --state halted\n');
    api.answer({ getFleet: { body } });
    expect((await run(['status'])).stdout).not.toContain('Rollouts');
  });

  it('shows the health also when it is not told the counts', async () => {
    api.answer({ getFleet: { problem: 'not_found', detail: 'there is no such operation' } });
    const { status, stdout, stderr } = await run(['status']);
    api.answer({ getFleet: { body } });
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Status +ok$/m);
    expect(stdout).not.toMatch(/Agents|Rollouts/);
    expect(stderr).toContain('Agents and rollouts are not shown: there is no such operation');
  });
});
