/** The jobs of the CI examples, with their own shell steps, against a real orchestrator and agent. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Agent } from '../../src/contract/agents.js';
import { ORCH, type Ready, type Running, Sandbox, until } from '../support/orch.js';

const example = (name: string) => parse(readFileSync(new URL(`../../examples/ci/${name}`, import.meta.url), 'utf8'));

/** A job of an example: its steps in their order without the installation, and the name of the secret that it gets. */
interface Job {
  readonly steps: readonly string[];
  readonly key: string;
}

interface GithubWorkflow {
  readonly jobs: Readonly<
    Record<
      string,
      { readonly env: { readonly ORCH_KEY: string }; readonly steps: readonly { readonly run?: string }[] }
    >
  >;
}
type GitlabPipeline = Readonly<
  Record<string, { readonly script: readonly string[]; readonly variables: { readonly ORCH_KEY_FILE: string } }>
>;

const isInstallation = (step: string) => step.startsWith('npm install ');

function githubJob(name: string): Job {
  const job = (example('github-actions.yml') as GithubWorkflow).jobs[name];
  const steps = (job?.steps ?? []).flatMap(({ run }) => (run === undefined || isInstallation(run) ? [] : [run]));
  const [, key = ''] = /secrets\.(\w+)/.exec(job?.env.ORCH_KEY ?? '') ?? [];
  return { steps, key };
}

/** GitLab runs all lines of a job in one shell. */
function gitlabJob(name: string): Job {
  const job = (example('gitlab-ci.yml') as GitlabPipeline)[name];
  return { steps: [(job?.script ?? []).join('\n')], key: job?.variables.ORCH_KEY_FILE.slice(1) ?? '' };
}

const sandbox = new Sandbox();
const checkout = sandbox.path('checkout');
const managed = sandbox.path('managed');
let ready: Ready;
let agent: Running;

const ROLES: Readonly<Record<string, string>> = { ORCH_VIEWER_KEY: 'viewer', ORCH_OPERATOR_KEY: 'operator' };
const keyFile = (key: string) => sandbox.path(`${ROLES[key]}.key`);

/** Runs a job as its system does, with the key of its secret. Ends at the first step that fails. */
function run(
  { steps, key }: Job,
  system: 'github' | 'gitlab',
): { readonly status: number | null; readonly output: string } {
  expect(steps.length).toBeGreaterThan(0);
  const secret =
    system === 'github' ? { ORCH_KEY: readFileSync(keyFile(key), 'utf8') } : { ORCH_KEY_FILE: keyFile(key) };
  // GitLab writes variables of the type "file" so that others can read them.
  chmodSync(keyFile(key), 0o644);
  const home = sandbox.path('home');
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home);
  const env = {
    PATH: `${sandbox.path('bin')}:${process.env.PATH}`,
    HOME: home,
    ORCH_URL: ready.api_url,
    ORCH_TLS_FINGERPRINT: ready.tls_fingerprint,
    GITHUB_STEP_SUMMARY: `${home}/summary.md`,
    ...secret,
  };
  let output = '';
  for (const step of steps) {
    const { status, stdout, stderr } = spawnSync('bash', ['-eo', 'pipefail', '-c', step], {
      cwd: checkout,
      env,
      encoding: 'utf8',
    });
    output += stdout + stderr;
    if (status !== 0) return { status, output };
  }
  const summary = `${home}/summary.md`;
  return { status: 0, output: existsSync(summary) ? output + readFileSync(summary, 'utf8') : output };
}

/** A module with a file that stays, because an apply that removes everything is refused, and with one more. */
const moduleText = (path: string, content: string) => `name: base
supports: [{platform: linux}]
resources:
  - resource:
      file-unix: {path: ${managed}/always, content: ""}
  - resource:
      file-unix:
        path: ${path}
        content: "${content}\\n"
`;

const commit = (text: string) => writeFileSync(`${checkout}/site/modules/base.orch.yaml`, text);

beforeAll(async () => {
  mkdirSync(`${checkout}/site/modules`, { recursive: true });
  mkdirSync(sandbox.path('bin'));
  writeFileSync(sandbox.path('bin/orch'), `#!/bin/sh\nexec ${process.execPath} ${ORCH} "$@"\n`, { mode: 0o755 });
  writeFileSync(
    `${checkout}/site/assignments.yaml`,
    'assignments:\n  - {name: base, modules: [base], selector: "*"}\n  - {name: empty, modules: [base], selector: role=none}\n',
  );
  await sandbox.json(['operator', 'init']);
  ({ ready } = await sandbox.serve());
  await sandbox.json(['profile', 'create', 't', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint]);
  for (const [key, role] of Object.entries(ROLES)) {
    const made = await sandbox.json<{ public_key: string }>(['operator', 'init', '--key-file', keyFile(key)]);
    await sandbox.json(['operator', 'add', made.public_key, '--username', `ci-${role}`, '--role', role]);
  }
  const words = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent')];
  agent = sandbox.start(['agent', 'connect', ready.agent_address, ...words]);
  let agents: Agent[] = [];
  await until(async () => {
    agents = await sandbox.json<Agent[]>(['agents', 'list']);
    return agents.length === 1;
  }, 'the agent waits');
  await sandbox.json(['agents', 'approve', agents[0]?.node_id ?? '', '--name', 'web-01', '--yes']);
});

afterAll(() => sandbox.dispose());

const isConnected = async () => (await sandbox.json<Agent[]>(['agents', 'list']))[0]?.connected === true;

describe.each([
  ['github', githubJob],
  ['gitlab', gitlabJob],
] as const)('%s', (system, job) => {
  const file = `${managed}/${system}`;

  beforeEach(() => until(isConnected, 'the agent is connected'));

  it('applies the branch main, and then has nothing to do', () => {
    commit(moduleText(file, 'first'));
    const applied = run(job('apply'), system);
    expect({ applied, text: existsSync(file) && readFileSync(file, 'utf8') }).toMatchObject({
      applied: { status: 0 },
      text: 'first\n',
    });
    const again = run(job('apply'), system);
    expect(again.status).toBe(0);
    expect(again.output).toContain('base: nothing to do');
    expect(again.output).toContain('empty: nothing to do');
  });

  it('shows the effect of a change with the key of a viewer, and changes nothing', async () => {
    commit(moduleText(file, 'second'));
    const review = run(job('review'), system);
    expect(review).toMatchObject({ status: 0 });
    expect(review.output).toContain('## Impact on the fleet');
    expect(review.output).toContain('+second');
    expect(readFileSync(file, 'utf8')).toBe('first\n');
    expect((await sandbox.json<{ content: string }>(['module', 'show', 'base'])).content).toContain('first');
  });

  it('fails the review of a module with a mistake', () => {
    commit(moduleText('relative', 'x'));
    const review = run(job('review'), system);
    expect(review.status).toBe(1);
    expect(review.output).toContain('base.orch.yaml:8');
  });

  it('cannot apply with the key of the review', () => {
    commit(moduleText(file, 'second'));
    expect(run({ ...job('apply'), key: job('review').key }, system).status).toBe(4);
    expect(readFileSync(file, 'utf8')).toBe('first\n');
  });

  it('fails when an apply fails', () => {
    commit(moduleText('/proc/orch/impossible', 'x'));
    expect(run(job('apply'), system).status).toBe(3);
  });

  it('warns and succeeds while the machines with changes are offline', async () => {
    commit(moduleText(file, 'third'));
    await agent.stop('SIGKILL');
    await until(async () => !(await isConnected()), 'the agent is away');
    const applied = run(job('apply'), system);
    expect(applied).toMatchObject({ status: 0 });
    expect(applied.output).toContain('offline');
    const words = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent')];
    agent = sandbox.start(['agent', 'connect', ready.agent_address, ...words]);
  });
});

describe('the two keys', () => {
  it('are different in each example, and the review has that of the viewer', () => {
    for (const job of [githubJob, gitlabJob]) {
      expect([job('review').key, job('apply').key]).toEqual(['ORCH_VIEWER_KEY', 'ORCH_OPERATOR_KEY']);
    }
  });
});
