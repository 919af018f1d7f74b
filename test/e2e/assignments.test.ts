/** Three agents as real processes, assignments that decide what they have, and rollouts over a selector. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { AssignmentDetail } from '../../src/contract/assignments.js';
import type { Operation, State } from '../../src/contract/operations.js';
import type { Rollout, RolloutRecord } from '../../src/contract/rollouts.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';

const sandbox = new Sandbox();
const NAMES = ['web-01', 'web-02', 'web-03'] as const;
const running = new Map<string, Running>();
let ready: Ready;

/** The file that an agent manages; its directory is there already. */
const place = (name: string, ...parts: readonly string[]) => sandbox.path('machines', name, ...parts);

const moduleText = (name: string, content: string) => `name: ${name}
supports:
  - platform: linux
resources:
  - resource:
      file-unix: {path: "${sandbox.path('machines')}/\${{ agent.name }}/${name}", content: "${content}\\n"}
`;

const push = async (name: string, content: string) => {
  const file = sandbox.path(`${name}.orch.yaml`);
  writeFileSync(file, moduleText(name, content));
  await sandbox.json(['module', 'publish', file]);
};

const content = (agent: string, module: string) =>
  existsSync(place(agent, module)) ? readFileSync(place(agent, module), 'utf8').trim() : null;

const startAgent = (name: string) => {
  const connect = ['agent', 'connect', ready.agent_address, '--orchestrator-key', ready.public_key];
  running.set(name, sandbox.start([...connect, '--data-dir', sandbox.path('agents', name)]));
};

const connectedNames = async () => {
  const agents = await sandbox.json<Agent[]>(['agents', 'list']);
  return agents.filter(({ connected }) => connected).map(({ name }) => name);
};

const apply = (...args: readonly string[]) => sandbox.orch(['apply', '--assignment', 'web', '--yes', ...args]);

/** The body of a rollout, whatever its exit status. */
async function rollout(...args: readonly string[]): Promise<Rollout & { status: number | null }> {
  const { status, stdout, stderr } = await apply(...args, '-o', 'json');
  if (stdout === '') throw new Error(stderr);
  return { status, ...(JSON.parse(stdout) as Rollout) };
}

const statuses = ({ results }: Rollout) => results.map(({ status }) => status);

beforeAll(async () => {
  await sandbox.orch(['operator', 'init']);
  ({ ready } = await sandbox.serve(['--drift-interval', '2', '--drift-skip-recently-applied', '0']));
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  await sandbox.orch(['profile', 'use', 'test']);
  for (const name of NAMES) {
    mkdirSync(place(name), { recursive: true });
    startAgent(name);
    let pending: Agent[] = [];
    await until(async () => {
      pending = await sandbox.json<Agent[]>(['agents', 'list', '--status', 'pending']);
      return pending.length === 1;
    }, `${name} is pending`);
    await sandbox.json(['agents', 'approve', (pending[0] as Agent).node_id, '--name', name, '--yes']);
  }
  await until(async () => (await connectedNames()).length === 3, 'all are connected');
  await push('site', 'one');
});

afterAll(async () => {
  await sandbox.dispose();
});

describe('assignments with real agents', () => {
  it('let tags decide who has what', async () => {
    await sandbox.json(['agents', 'tag', 'web-01', 'role=web']);
    await sandbox.json(['agents', 'tag', 'web-02', 'role=web']);
    expect(await sandbox.orch(['assignments', 'create', 'web', '-m', 'site', '-l', 'role=web'])).toMatchObject({
      status: 0,
    });
    const shown = await sandbox.json<AssignmentDetail>(['assignments', 'show', 'web']);
    expect(shown.agents.map(({ name }) => name)).toEqual(['web-01', 'web-02']);

    const plan = await sandbox.orch(['plan', '--assignment', 'web']);
    expect(plan.stdout).toContain('2 agents: 2 to change.');
    expect(content('web-01', 'site')).toBeNull();

    expect(await rollout()).toMatchObject({ status: 0, summary: { agents: 2, succeeded: 2 } });
    expect(NAMES.map((name) => content(name, 'site'))).toEqual(['one', 'one', null]);
    const removed = await sandbox.orch(['module', 'remove', 'site', '--yes']);
    expect(removed.stderr).toContain('module site is named by assignment web');
  });

  it('reach another agent as soon as it has the tag', async () => {
    await sandbox.json(['agents', 'tag', 'web-03', 'role=web']);
    const state = await sandbox.json<State>(['state', 'web-03']);
    expect(state.unapplied.map(({ module }) => module)).toEqual(['site']);
    const result = await rollout();
    expect(result).toMatchObject({ status: 0, has_changes: true, summary: { agents: 3, succeeded: 3 } });
    const { operations } = await sandbox.json<{ operations: Operation[] }>([
      'ops',
      'list',
      '--rollout',
      result.rollout_id,
    ]);
    expect(operations.map(({ assignments }) => assignments)).toEqual([['web'], ['web'], ['web']]);
    expect(operations.every(({ rollout_id }) => rollout_id === result.rollout_id)).toBe(true);
    expect(content('web-03', 'site')).toBe('one');
  });

  it('are checked for drift by themselves', async () => {
    writeFileSync(place('web-03', 'site'), 'by hand\n');
    await until(async () => {
      const drifted = await sandbox.json<{ records: { trigger: string }[] }>(['drift', 'list', '--status', 'drifted']);
      return drifted.records.some(({ trigger }) => trigger === 'scheduled');
    }, 'the drift is found');
    expect(await rollout()).toMatchObject({ status: 0, summary: { succeeded: 3 } });
    expect(content('web-03', 'site')).toBe('one');
  });

  it('miss an offline agent without failing', async () => {
    await running.get('web-02')?.stop();
    await until(async () => (await connectedNames()).length === 2, 'it is gone');
    await push('site', 'two');
    const result = await rollout('--canary', '2');
    expect(result.status).toBe(5);
    expect(statuses(result)).toEqual(['succeeded', 'unreachable', 'succeeded']);
    expect(NAMES.map((name) => content(name, 'site'))).toEqual(['two', 'one', 'two']);
    startAgent('web-02');
    await until(async () => (await connectedNames()).length === 3, 'it is back');
    expect(await rollout()).toMatchObject({ status: 0, summary: { succeeded: 3 } });
    expect(content('web-02', 'site')).toBe('two');
  });

  it('keep the failure of one agent with it, and stop at a failed canary or after too many', async () => {
    // A directory in the place of the file cannot be replaced.
    rmSync(place('web-01', 'site'));
    mkdirSync(place('web-01', 'site'));
    await push('site', 'three');
    const canary = await rollout('--canary', '1');
    expect(canary.status).toBe(3);
    expect(statuses(canary)).toEqual(['failed', 'skipped', 'skipped']);
    const few = await rollout('--concurrency', '1', '--max-failures', '1');
    expect(statuses(few)).toEqual(['failed', 'skipped', 'skipped']);
    expect(few.results[1]?.error).toEqual({ code: 'rollout_stopped', message: 'not started: 1 agent has failed' });
    expect(NAMES.slice(1).map((name) => content(name, 'site'))).toEqual(['two', 'two']);
    const all = await apply();
    expect(all.status).toBe(3);
    expect(all.stdout).toContain('3 agents: 2 changed, 1 failed.');
    expect(NAMES.slice(1).map((name) => content(name, 'site'))).toEqual(['three', 'three']);
    rmSync(place('web-01', 'site'), { recursive: true });
    expect(await rollout()).toMatchObject({ status: 0, summary: { succeeded: 3 } });
  });

  it('do not let a removed tag take a machine apart unseen', async () => {
    await sandbox.json(['agents', 'untag', 'web-02', 'role']);
    const state = await sandbox.json<State>(['state', 'web-02']);
    expect(state.pending_removals.map(({ module }) => module)).toEqual(['site']);
    expect(await rollout()).toMatchObject({ status: 0, summary: { agents: 2 } });
    const { operator } = await sandbox.json<{ operator: { username: string } }>(['operator', 'whoami']);
    const refused = await sandbox.orch(['apply', 'web-02', '--yes']);
    expect(refused.status).toBe(6);
    expect(refused.stderr.replace(/\s+/g, ' ')).toContain(
      `assignment web (role=web) no longer matches: tag role=web was removed by ${operator.username} at 20`,
    );
    expect(content('web-02', 'site')).toBe('three');
    expect(await sandbox.orch(['apply', 'web-02', '--yes', '--allow-removals', '1'])).toMatchObject({ status: 0 });
    expect(content('web-02', 'site')).toBeNull();
  });

  it('leave a rollout to the orchestrator, which can be asked about it', async () => {
    await push('site', 'four');
    const body = JSON.stringify({ wait: false });
    const started = await sandbox.json<Rollout>(['api', 'POST', '/assignments/web/apply', '--data', body]);
    expect(started).toMatchObject({ assignment: 'web', results: [], summary: { agents: 2, succeeded: 0 } });
    await until(async () => {
      const list = ['ops', 'list', '--rollout', started.rollout_id, '--status', 'succeeded'];
      return (await sandbox.json<{ total: number }>(list)).total === 2;
    }, 'both agents are done');
    expect(content('web-01', 'site')).toBe('four');
    const { events } = await sandbox.json<{ events: { event_type: string }[] }>([
      'audit',
      'list',
      '--type',
      'assignment.applied',
    ]);
    expect(events.length).toBeGreaterThan(5);
  });
});

describe('a rollout over a selector with real agents', () => {
  const select = (...args: readonly string[]) => sandbox.orch(['apply', '-l', 'platform=linux', '--yes', ...args]);
  const operationsOf = (rolloutId: string) =>
    sandbox.json<{ total: number; operations: Operation[] }>(['ops', 'list', '--rollout', rolloutId]);

  /** A module whose script waits for a file, which `open` makes. */
  const pushGate = async (name: string) => {
    const key = sandbox.path(`${name}.key`);
    const file = sandbox.path(`${name}.orch.yaml`);
    const gate = `until [ -e ${key} ]; do sleep 0.1; done`;
    const script = `  - id: gate\n    resource: {script: {program: sh, apply: "${gate}"}}\n`;
    writeFileSync(file, `${moduleText(name, 'through')}${script}`);
    await sandbox.json(['module', 'publish', file]);
    return { open: () => writeFileSync(key, '') };
  };

  beforeAll(async () => {
    for (const name of NAMES) await sandbox.json(['agents', 'untag', name, 'role']).catch(() => undefined);
    await push('extra', 'one');
  });

  it('stops at a failed canary and after too many failures, and leaves out what is offline', async () => {
    mkdirSync(place('web-01', 'extra'));
    const canary = await select('-m', 'extra', '--allow-removals', '9', '--canary', '1', '-o', 'json');
    expect(canary.status).toBe(3);
    expect(statuses(JSON.parse(canary.stdout))).toEqual(['failed', 'skipped', 'skipped']);
    const bounded = await select('-m', 'extra', '--allow-removals', '9', '--max-failures', '1');
    expect(bounded.stdout).toContain('3 agents: 1 failed, 2 not started.');
    rmSync(place('web-01', 'extra'), { recursive: true });
    await running.get('web-02')?.stop();
    await until(async () => (await connectedNames()).length === 2, 'it is gone');
    const result = await select('-m', 'extra', '--allow-removals', '9');
    expect(result.status).toBe(5);
    expect(result.stdout).toContain('3 agents: 2 changed, 1 offline.');
    expect(NAMES.map((name) => content(name, 'extra'))).toEqual(['one', null, 'one']);
    startAgent('web-02');
    await until(async () => (await connectedNames()).length === 3, 'it is back');
  });

  it('applies a saved plan, each agent only as it was planned', async () => {
    await push('extra', 'two');
    const file = sandbox.path('next.orchplan');
    const plan = await sandbox.orch(['plan', '-l', 'platform=linux', '-m', 'extra', '--out', file]);
    expect(plan.stderr).toContain('Saved the plan of 3 agents.');
    writeFileSync(place('web-01', 'extra'), 'by hand\n');
    const applied = await sandbox.orch(['apply', file, '--yes', '--allow-removals', '9', '-o', 'json']);
    expect(applied.status).toBe(3);
    const body = JSON.parse(applied.stdout);
    expect(statuses(body)).toEqual(['failed', 'succeeded', 'succeeded']);
    expect(body.results[0].error.code).toBe('plan_stale');
    expect(NAMES.map((name) => content(name, 'extra'))).toEqual(['by hand', 'two', 'two']);
  });

  it('goes on when the command that began it is interrupted', async () => {
    const gate = await pushGate('gate-one');
    const args = ['apply', '-l', 'platform=linux', '-m', 'extra', '-m', 'gate-one', '--yes'];
    const command = sandbox.start([...args, '--allow-removals', '9', '--concurrency', '1']);
    await until(async () => {
      const { operations } = await sandbox.json<{ operations: Operation[] }>(['ops', 'list', '--status', 'running']);
      return operations.length === 1;
    }, 'the first agent is at work');
    expect(await command.stop('SIGINT')).toBe(130);
    const [, rolloutId = ''] = /orch rollouts watch (\w+)/.exec(command.output()) ?? [];
    expect(command.output()).toContain(`Rollout ${rolloutId} goes on without you`);
    expect((await operationsOf(rolloutId)).total).toBe(1);
    gate.open();
    await until(async () => {
      const { operations } = await operationsOf(rolloutId);
      return operations.filter(({ status }) => status === 'succeeded').length === 3;
    }, 'all agents are done');
    expect(NAMES.map((name) => content(name, 'gate-one'))).toEqual(['through', 'through', 'through']);
  });

  it('reaches no further agent when its operator is removed', async () => {
    const gate = await pushGate('gate-three');
    const env = { XDG_CONFIG_HOME: sandbox.path('bob'), XDG_STATE_HOME: sandbox.path('bob') };
    const asBob = (...args: readonly string[]) => sandbox.orch(args, { env });
    const { stdout } = await asBob('operator', 'init', '-o', 'json');
    const { public_key } = JSON.parse(stdout);
    const added = await sandbox.json<{ operator_id: string }>(['operator', 'add', public_key, '--username', 'bob']);
    const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
    await asBob(...create);
    const body = {
      selector: 'platform=linux',
      modules: ['gate-three'],
      concurrency: 1,
      allow_removals: 9,
      wait: false,
    };
    const post = await asBob('--profile', 'test', 'api', 'POST', '/rollouts/apply', '--data', JSON.stringify(body));
    expect(post).toMatchObject({ status: 0, stderr: '' });
    const { rollout_id } = JSON.parse(post.stdout) as Rollout;
    await until(async () => (await operationsOf(rollout_id)).total === 1, 'the first agent is at work');
    expect(await sandbox.orch(['operator', 'remove', added.operator_id, '--yes'])).toMatchObject({ status: 0 });
    gate.open();
    await until(async () => {
      const { operations } = await operationsOf(rollout_id);
      return operations.every(({ status }) => status === 'succeeded');
    }, 'the first agent is done');
    const halted = await sandbox.json<RolloutRecord>(['api', 'GET', `/rollouts/${rollout_id}`]);
    expect(halted).toMatchObject({ state: 'halted', reason: 'operator bob was removed', counts: { waiting: 2 } });
    expect((await operationsOf(rollout_id)).total).toBe(1);
  });

  it('is cancelled later, and the audit log has all of it', async () => {
    await pushGate('gate-two');
    const body = {
      selector: 'platform=linux',
      modules: ['extra', 'gate-one', 'gate-two'],
      concurrency: 1,
      wait: false,
    };
    const post = ['api', 'POST', '/rollouts/apply', '--data', JSON.stringify(body)];
    const { rollout_id } = await sandbox.json<Rollout>(post);
    await until(async () => (await operationsOf(rollout_id)).total === 1, 'the first agent is at work');
    expect(await sandbox.orch(['ops', 'cancel', '--rollout', rollout_id])).toMatchObject({ status: 0 });
    await until(async () => {
      const { operations } = await operationsOf(rollout_id);
      return operations.every(({ status }) => status === 'cancelled');
    }, 'it is cancelled');
    expect((await operationsOf(rollout_id)).total).toBe(1);
    const { events } = await sandbox.json<{ events: { event_type: string; metadata: { rollout_id: string } }[] }>([
      'audit',
      'list',
      '--category',
      'rollout',
    ]);
    const types = events.map(({ event_type }) => event_type);
    expect(new Set(types)).toEqual(
      new Set([
        'rollout.applied',
        'rollout.planned',
        'rollout.cancelled',
        'rollout.halted',
        'rollout.succeeded',
        'rollout.failed',
      ]),
    );
    const own = events.filter(({ metadata }) => metadata.rollout_id === rollout_id);
    expect(own.map(({ event_type }) => event_type)).toEqual(['rollout.cancelled', 'rollout.applied']);
  });
});
