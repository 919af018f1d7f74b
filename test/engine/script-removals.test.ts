/** Removals of scripts: their undo may hold secrets, which the store does not. */

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import type { AgentSecrets } from '../../daemon/engine/agent-secrets.js';
import { listOperationOutputs } from '../../daemon/engine/operations/operation-outputs.js';
import { OutputCipher } from '../../daemon/secrets/ciphers.js';
import { newSecretKeys } from '../../daemon/secrets/key-file.js';
import { Keyring } from '../../daemon/secrets/keyring.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { SecretRefusal } from '../../src/language/filling.js';
import type { Removal } from '../../src/resources/desired.js';
import { rejection, temporaryDirectory } from '../support/database.js';
import { ALICE, type Bench, openBench } from '../support/engine.js';

/** Values of secrets, which the test changes; a refusal is why the agent does not get one. */
function changing(values: Map<string, string | SecretRefusal>): AgentSecrets {
  return {
    resolve: async () => {
      const hashes = new Map<string, string>();
      return {
        hashes,
        source: (name) => {
          const found = values.get(name);
          if (typeof found !== 'string') return found ?? null;
          hashes.set(name, Buffer.from(found).toString('hex').padEnd(32, '0'));
          return { value: found, tag: '1a2b' };
        },
      };
    },
  };
}

const scripts = (members: Readonly<Record<string, string>>): string =>
  `name: site
supports: [{platform: linux}]
resources:
  - resource: {file-unix: {path: /kept, content: kept}}
${Object.entries(members)
  .map(([id, text]) => `  - id: ${id}\n    resource: {script: {program: sh, ${text}}}\n`)
  .join('')}`;

const UNDO = `apply: "install", undo: "leave --token=\${{ secrets.TOKEN }}"`;
const LOGIN = `apply: "login \${{ secrets.LOGIN }}", undo: "logout"`;
const NO_UNDO = `apply: "echo \${{ secrets.LOGIN }}"`;

function cipher(): OutputCipher {
  const file = join(temporaryDirectory(), 'secrets.key');
  const keyring = new Keyring({ file, keys: newSecretKeys(randomBytes), randomBytes });
  return new OutputCipher({ keyring, logger: silentLogger });
}

async function applied(members: Readonly<Record<string, string>>) {
  const values = new Map<string, string | SecretRefusal>([
    ['TOKEN', 'first-value'],
    ['LOGIN', 'some-login'],
  ]);
  const bench = await openBench({ secrets: changing(values), outputCipher: cipher() });
  const agent = await bench.agent('1');
  await upload(bench, members);
  await bench.apply(agent, ['site']);
  return { bench, agent, values };
}

const upload = (bench: Bench, members: Readonly<Record<string, string>>) =>
  bench.engine.modules.upload({ name: 'site', content: scripts(members) }, ALICE);

/** The removals that the agent was sent last. */
function sent({ received }: Awaited<ReturnType<typeof applied>>['agent']): readonly Removal[] {
  const parts = received.filter((message) => message.type === 'run_part');
  return parts.at(-1)?.removals ?? [];
}

describe('a script that is no longer desired', () => {
  it('is sent with the secrets of its undo as they are now, and without the others', async () => {
    const { bench, agent, values } = await applied({ leave: UNDO, out: LOGIN });
    values.set('TOKEN', 'second-value');
    values.delete('LOGIN');
    await upload(bench, {});

    const operation = await bench.apply(agent, ['site'], { allowRemovals: 2 });

    expect(operation).toMatchObject({ status: 'succeeded', summary: { removed: 2 } });
    expect(sent(agent).map(({ identity, body, taint }) => [identity, body, Object.keys(taint ?? {})])).toEqual([
      ['leave', { program: 'sh', apply: 'install', undo: 'leave --token=second-value' }, ['/undo']],
      ['out', { program: 'sh', apply: 'login ‹secret LOGIN #1a2b›', undo: 'logout' }, ['/apply']],
    ]);
    expect(sent(agent)[0]?.taint).toEqual({ '/undo': [{ start: 14, end: 26, secret: 'TOKEN', tag: '1a2b' }] });
    const row = await bench.db.selectFrom('run_contents').selectAll().orderBy('content_id', 'desc').executeTakeFirst();
    expect(row?.content_json).toContain('leave --token=‹secret TOKEN #1a2b›');
    expect(JSON.stringify(row)).not.toContain('second-value');
    const used = bench.events.filter(({ type }) => type === 'secret.used').map(({ target }) => target.id);
    expect(used).toEqual(['TOKEN', 'LOGIN', 'TOKEN']);
  });

  it('has what its undo writes sealed, because that may hold the secret in any form', async () => {
    const { bench, agent } = await applied({ leave: UNDO });
    await upload(bench, {});
    agent.outputs.set('leave', { stdout: 'left', stderr: '', exit_code: 0, truncated: false });

    const { operation_id } = await bench.apply(agent, ['site'], { allowRemovals: 1 });

    expect(await bench.engine.operations.output(agent.nodeId, operation_id, ALL_RIGHTS)).toMatchObject({
      'site/leave': { stdout: 'left' },
    });
    const stored = await listOperationOutputs(bench.db, operation_id);
    expect(stored.map(({ key_id }) => key_id)).toEqual([expect.any(String)]);
  });

  it('is not sent and fails when a secret of its undo is not to be had, and the rest goes on', async () => {
    const { bench, agent, values } = await applied({ leave: UNDO, out: LOGIN });
    values.set('TOKEN', { refused: 'expired yesterday' });
    await upload(bench, {});

    const plan = await bench.plan(agent, ['site']);
    expect(plan).toMatchObject({ status: 'failed', summary: { total: 3, pending: 1, failed: 1 } });
    const operation = await bench.apply(agent, ['site'], { allowRemovals: 1 });

    expect(sent(agent).map(({ identity }) => identity)).toEqual(['out']);
    expect(operation).toMatchObject({ status: 'failed', error: null, summary: { total: 3, changed: 1, failed: 1 } });
    expect(operation.resources.at(-1)).toMatchObject({
      identity: 'leave',
      action: 'remove',
      status: 'failed',
      error: {
        code: 'secret_unavailable',
        message:
          'the secret "TOKEN" expired yesterday, and it takes that to remove this: give it back, and apply again',
      },
    });
    expect(await bench.engine.operations.list({ rights: ALL_RIGHTS, limit: 1, offset: 0, status: null })).toMatchObject(
      {
        operations: [{ status: 'failed', summary: { total: 3, failed: 1 } }],
      },
    );
    const { applied: believed } = await bench.engine.state.get(agent.nodeId);
    expect(believed.map(({ identity }) => identity)).toEqual(['/kept', 'leave']);

    values.set('TOKEN', 'it is back');
    expect(await bench.apply(agent, ['site'], { allowRemovals: 1 })).toMatchObject({ status: 'succeeded' });
    expect(sent(agent)[0]?.body).toMatchObject({ undo: 'leave --token=it is back' });
  });

  it('fails also when nothing else is left to do, or the orchestrator restarts in between', async () => {
    const { bench, agent, values } = await applied({ leave: UNDO });
    values.delete('TOKEN');
    await upload(bench, {});
    agent.diligent = false;
    const id = await bench.start(agent, ['site']);
    await bench.settle();
    await bench.restart();
    agent.diligent = true;
    agent.connect();
    await bench.settle();
    expect(await bench.engine.operations.detail(id)).toMatchObject({
      status: 'failed',
      resources: [{ identity: '/kept' }, { identity: 'leave', error: { code: 'secret_unavailable' } }],
    });
    expect(bench.events.at(-1)?.summary).toBe('the apply of module site on web-1 failed: 1 failed of 2');
  });

  it('tells nothing of it when the apply was refused as a whole', async () => {
    const { bench, agent, values } = await applied({ leave: UNDO });
    values.delete('TOKEN');
    await upload(bench, {});
    const { plan_hash: expect_ } = await bench.plan(agent, ['site']);
    agent.machine.set('/else', '"changed"');
    const operation = await bench.apply(agent, ['site'], { expect: expect_ ?? '' });
    expect(operation).toMatchObject({ error: { code: 'plan_stale' }, resources: [], summary: { total: 2, failed: 0 } });
  });

  it('makes a plan stale once its secret is to be had again', async () => {
    const { bench, agent, values } = await applied({ leave: UNDO });
    await upload(bench, {});
    values.delete('TOKEN');
    const { plan_hash } = await bench.plan(agent, ['site']);
    values.set('TOKEN', 'back');
    const stale = rejection(bench.start(agent, ['site'], { expect: plan_hash ?? '', allowRemovals: 1 }));
    expect((await stale).code).toBe('plan_stale');
  });

  it('counts for the removal guard only when it has an undo', async () => {
    const many = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`s${index}`, NO_UNDO]));
    const { bench, agent } = await applied(many);
    await upload(bench, {});
    expect(await bench.apply(agent, ['site'])).toMatchObject({ status: 'succeeded' });

    const undone = await applied(Object.fromEntries(Object.keys(many).map((id) => [id, 'apply: a, undo: b'])));
    await upload(undone.bench, {});
    const refused = await rejection(undone.bench.start(undone.agent, ['site']));
    expect(refused).toMatchObject({ code: 'removal_guard', data: { reason: 'many', allow_removals: 12 } });
  });
});
