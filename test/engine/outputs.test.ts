/** Outputs of scripts; until they come from one, any resource of the scripted agent may write something. */

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS } from '../../daemon/core/rights.js';
import type { EngineOptions } from '../../daemon/engine/engine.js';
import { MAX_OPERATION_OUTPUT } from '../../daemon/engine/operations/operation-outputs.js';
import { OutputCipher } from '../../daemon/secrets/ciphers.js';
import { newSecretKeys } from '../../daemon/secrets/key-file.js';
import { Keyring } from '../../daemon/secrets/keyring.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { Output } from '../../src/resources/result.js';
import { LINK_LIMITS } from '../../src/wire/limits.js';
import { rejection, temporaryDirectory } from '../support/database.js';
import { type Bench, oneSecret, openBench, type ScriptedAgent } from '../support/engine.js';
import { StoreLab } from '../support/store-lab.js';

const SECRET = 'p4$$ w/"quotes"';

const output = (change: Partial<Output> = {}): Output => ({
  stdout: 'done\n',
  stderr: '',
  exit_code: 0,
  truncated: false,
  ...change,
});

function cipher(): OutputCipher {
  const file = join(temporaryDirectory(), 'secrets.key');
  const keyring = new Keyring({ file, keys: newSecretKeys(randomBytes), randomBytes });
  return new OutputCipher({ keyring, logger: silentLogger });
}

async function benchWith(files: Readonly<Record<string, string>>, options: Partial<EngineOptions> = {}) {
  const bench = await openBench(options);
  const agent = await bench.agent('1');
  await bench.upload('site', files);
  return { bench, agent };
}

/** Every byte of the store and its log, as text. */
const bytesOf = ({ file }: Bench): string => new StoreLab(file).bytes();

async function applied(bench: Bench, agent: ScriptedAgent, modules = ['site']) {
  const { operation_id, resources } = await bench.apply(agent, modules);
  return {
    operation_id,
    resources,
    outputs: await bench.engine.operations.output(agent.nodeId, operation_id, ALL_RIGHTS),
  };
}

describe('what scripts write in an apply', () => {
  it('is kept by module and identity, and only what was written', async () => {
    const { bench, agent } = await benchWith({ '/a': 'x', '/b': 'x', '/c': 'x' });
    agent.outputs.set('/a', output()).set('/c', output({ stderr: 'no\n', exit_code: 3, truncated: true }));
    agent.mishaps.set('/c', 'fail');
    const { operation_id, outputs } = await applied(bench, agent);
    expect(outputs).toEqual({
      'site//a': output(),
      'site//c': output({ stderr: 'no\n', exit_code: 3, truncated: true }),
    });
    await bench.restart();
    expect(await bench.engine.operations.output(agent.nodeId, operation_id, ALL_RIGHTS)).toEqual(outputs);
  });

  it('is there while the rest is still under way', async () => {
    const { bench, agent } = await benchWith({ '/a': 'x', '/b': 'x' });
    agent.outputs.set('/a', output());
    agent.diligent = false;
    const id = await bench.start(agent, ['site']);
    await bench.settle();
    agent.work();
    await bench.settle();
    expect(await bench.engine.operations.output(agent.nodeId, id, ALL_RIGHTS)).toEqual({ 'site//a': output() });
  });

  it('is not given out as that of another agent', async () => {
    const { bench, agent } = await benchWith({ '/a': 'x' });
    const other = await bench.agent('2');
    const { operation_id } = await applied(bench, agent);
    const { operations } = bench.engine;
    expect((await rejection(operations.output(other.nodeId, operation_id, ALL_RIGHTS))).code).toBe(
      'operation_not_found',
    );
    expect((await rejection(operations.output(agent.nodeId, bench.newId(), ALL_RIGHTS))).code).toBe(
      'operation_not_found',
    );
    expect((await rejection(operations.output('3'.repeat(32), operation_id, ALL_RIGHTS))).code).toBe('agent_not_found');
  });

  it('is sealed when secrets were sent with it, and masked should the agent not have done it', async () => {
    const options = { secrets: oneSecret(SECRET), outputCipher: cipher() };
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the module language
    const { bench, agent } = await benchWith({ '/a': 'token=${{ secrets.TOKEN }}', '/b': 'open' }, options);
    const forms = [
      SECRET,
      Buffer.from(SECRET).toString('base64'),
      encodeURIComponent(SECRET),
      JSON.stringify({ token: SECRET }),
    ];
    agent.outputs.set('/a', output({ stdout: forms.join('\n'), stderr: 'in the clear all the same' }));
    agent.outputs.set('/b', output({ stdout: `leaked by another one: ${SECRET}`, stderr: 'nothing to hide' }));
    const { outputs } = await applied(bench, agent);
    const mask = '‹secret TOKEN #1a2b›';
    expect(outputs['site//a']?.stdout.replace('==', '')).toBe([mask, mask, mask, `{"token":"${mask}"}`].join('\n'));
    expect(outputs['site//b']?.stdout).toBe(`leaked by another one: ${mask}`);
    const bytes = bytesOf(bench);
    expect(bytes).toContain('nothing to hide');
    expect(bytes).not.toContain('in the clear all the same');
    for (const form of forms) expect(bytes).not.toContain(form);
  });

  it('is masked in errors and reasons should the agent not have done it', async () => {
    const options = { secrets: oneSecret(SECRET), outputCipher: cipher() };
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the module language
    const { bench, agent } = await benchWith({ '/a': 'token=${{ secrets.TOKEN }}', '/b': 'open' }, options);
    agent.mishaps.set('/a', 'fail').set('/b', 'skip');
    agent.messages.set('/a', `no login with ${SECRET}`).set('/b', `it waits for ${SECRET}`);
    const { resources } = await applied(bench, agent);
    expect(resources.map(({ error, reason }) => error?.message ?? reason)).toEqual([
      'no login with ‹secret TOKEN #1a2b›',
      'it waits for ‹secret TOKEN #1a2b›',
    ]);
    expect(bytesOf(bench)).not.toContain(SECRET);
  });

  it('is sealed also when it comes after a restart, which forgets the values', async () => {
    const options = { secrets: oneSecret(SECRET), outputCipher: cipher() };
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the module language
    const { bench, agent } = await benchWith({ '/a': '${{ secrets.TOKEN }}' }, options);
    agent.outputs.set('/a', output({ stdout: 'in the clear all the same' }));
    agent.diligent = false;
    const id = await bench.start(agent, ['site']);
    await bench.settle();
    await bench.restart();
    agent.diligent = true;
    agent.connect();
    await bench.settle();
    expect(await bench.engine.operations.output(agent.nodeId, id, ALL_RIGHTS)).toMatchObject({
      'site//a': { stdout: 'in the clear all the same' },
    });
    expect(bytesOf(bench)).not.toContain('in the clear all the same');
  });

  it('of sensitive scripts is left out when its key is lost', async () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the module language
    const files = { '/a': '${{ secrets.TOKEN }}' };
    const secrets = oneSecret(SECRET);
    const [before, after] = [cipher(), cipher()];
    const lost = await benchWith(files, {
      secrets,
      outputCipher: { seal: (...of) => before.seal(...of), open: (...of) => after.open(...of) },
    });
    lost.agent.outputs.set('/a', output());
    expect((await applied(lost.bench, lost.agent)).outputs).toEqual({});
  });

  it('is bounded for each script and for an operation', async () => {
    const big = output({ stdout: 'x'.repeat(LINK_LIMITS.outputSize - 100) });
    const count = Math.ceil(MAX_OPERATION_OUTPUT / LINK_LIMITS.outputSize) + 2;
    const names = Array.from({ length: count }, (_, index) => `/f${index}`);
    const { bench, agent } = await benchWith(Object.fromEntries(names.map((name) => [name, 'x'])));
    for (const name of names) agent.outputs.set(name, big);
    const { outputs } = await applied(bench, agent);
    expect(outputs['site//f0']).toEqual(big);
    expect(outputs[`site/${names.at(-1)}`]).toEqual(output({ stdout: '', truncated: true }));

    await bench.upload('more', { '/g': 'x' });
    agent.outputs.set('/g', output({ stdout: '"'.repeat(LINK_LIMITS.outputSize / 2) }));
    await bench.start(agent, ['site', 'more']);
    await bench.settle();
    expect(bench.violations.map(({ message }) => message)).toEqual([
      `the agent reported too long an output of item ${count}`,
    ]);
  });
});
