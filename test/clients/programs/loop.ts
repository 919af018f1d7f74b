/**
 * The loop that each generated client runs: log in, approve the waiting agent, publish and assign a module, plan, apply what was
 * planned, follow the operation, and find a change by hand. The answers have the types of the generated client, of which each
 * program gives what is used here.
 */
import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

interface Agent {
  readonly node_id: string;
  readonly status: 'pending' | 'approved' | 'rejected';
  readonly name: string | null;
  readonly connected: boolean;
  readonly tags: Readonly<Record<string, string>>;
}

interface Run {
  readonly operation_id: string | null;
  readonly status: 'queued' | 'running' | 'succeeded' | 'failed' | 'interrupted' | 'cancelled' | 'rolled_back';
  readonly has_changes: boolean;
  readonly plan_hash: string | null;
  readonly summary: { readonly total: number };
}

interface Operation {
  readonly status: Run['status'];
  readonly summary: { readonly changed: number };
  readonly resources: readonly { readonly kind: string; readonly identity: string; readonly status: string }[];
}

interface Drift {
  readonly status: 'drifted' | 'in_sync' | 'failed' | 'cancelled';
  readonly resources: readonly { readonly identity: string; readonly diff: string | null }[];
}

export interface Orchestrator {
  challenge(publicKey: string): Promise<string>;
  logIn(publicKey: string, signature: string): Promise<void>;
  agents(): Promise<readonly Agent[]>;
  approve(nodeId: string, name: string): Promise<Agent>;
  setTag(nodeId: string, key: string, value: string): Promise<void>;
  uploadModule(name: string, content: string): Promise<{ readonly name: string }>;
  assign(name: string, modules: string[], selector: string): Promise<{ readonly modules: readonly string[] }>;
  plan(nodeId: string): Promise<Run>;
  apply(nodeId: string, planHash: string): Promise<Run>;
  operation(operationId: string): Promise<Operation>;
  checkDrift(nodeId: string): Promise<Drift>;
  /** Asks for a module that is not there, and returns the code of the problem. */
  refusal(): Promise<string | undefined>;
}

const { ORCH_URL: url = '', ORCH_KEY_FILE: keyFile = '', SITE_FILE: site = '' } = process.env;

const MODULE = `name: site
supports:
  - platform: linux
resources:
  - file-unix: {path: ${site}, content: "\${{ agent.name }} is \${{ tags.role }}\\n"}
`;

async function until<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await sleep(50);
  }
}

async function run(orchestrator: Orchestrator): Promise<void> {
  const key = createPrivateKey(readFileSync(keyFile));
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex');
  const nonce = await orchestrator.challenge(publicKey);
  await orchestrator.logIn(publicKey, sign(null, Buffer.from(nonce, 'hex'), key).toString('hex'));

  const waiting = await until(async () => (await orchestrator.agents()).find(({ status }) => status === 'pending'));
  const { node_id, name } = await orchestrator.approve(waiting.node_id, 'web-01');
  await until(async () =>
    (await orchestrator.agents()).find(({ connected, status }) => connected && status === 'approved'),
  );
  await orchestrator.setTag(node_id, 'role', 'web');
  const tagged = (await orchestrator.agents()).find((agent) => agent.node_id === node_id);
  await orchestrator.uploadModule('site', MODULE);
  const { modules } = await orchestrator.assign('sites', ['site'], 'tag.role=web');

  const plan = await orchestrator.plan(node_id);
  if (plan.plan_hash === null) throw new Error('the plan has no hash');
  const begun = await orchestrator.apply(node_id, plan.plan_hash);
  const { operation_id } = begun;
  if (operation_id === null) throw new Error('the apply has no operation');
  const ended = await until(async () => {
    const operation = await orchestrator.operation(operation_id);
    return operation.status === 'queued' || operation.status === 'running' ? undefined : operation;
  });
  const before = await orchestrator.checkDrift(node_id);
  appendFileSync(site, 'by hand\n');
  const after = await orchestrator.checkDrift(node_id);
  process.stdout.write(
    JSON.stringify({
      name,
      tags: tagged?.tags,
      modules,
      plan: { has_changes: plan.has_changes, total: plan.summary.total },
      apply: {
        status: ended.status,
        changed: ended.summary.changed,
        resources: ended.resources.map(({ identity }) => identity),
      },
      drift: [before.status, after.status],
      diff: after.resources.map(({ diff }) => diff),
      refusal: await orchestrator.refusal(),
    }),
  );
}

export const loop = { url, run };
