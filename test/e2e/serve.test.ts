/** `orch serve` as an operator of the host meets it: signals, files and their modes. */
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Sandbox, until } from '../support/orch.js';

let sandbox: Sandbox;
afterEach(() => sandbox.dispose());

const ready = async (...args: readonly string[]) => {
  sandbox = new Sandbox();
  await sandbox.orch(['operator', 'init']);
  return sandbox.serve(args);
};

const PRIVATE_PORTS = ['--agent-port', '0', '--api-port', '0', '--agent-host', '127.0.0.1'];

describe('orch serve', () => {
  it('tells its addresses in its first line, and keeps everything it makes to itself', async () => {
    const { server, ready: info } = await ready();
    const first = JSON.parse(server.output().split('\n')[0] as string) as Record<string, unknown>;
    expect(first).toMatchObject({ ...info, msg: 'the orchestrator is ready' });
    const data = sandbox.path('serve');
    expect(statSync(data).mode & 0o777).toBe(0o700);
    const open = readdirSync(data).filter((name) => (statSync(join(data, name)).mode & 0o077) !== 0);
    expect(open).toEqual([]);
    expect(await server.stop('SIGINT')).toBe(0);
  });

  it('reads its configuration again on SIGHUP, and keeps the old one when the new one is broken', async () => {
    sandbox = new Sandbox();
    await sandbox.orch(['operator', 'init']);
    const config = sandbox.path('serve.yaml');
    writeFileSync(config, 'removal_guard: 10\n');
    const { server } = await sandbox.serve(['--config', config]);
    writeFileSync(config, 'removal_guard: 5\nagent_host: 127.0.0.2\n');
    server.process.kill('SIGHUP');
    await until(() => server.output().includes('"changed":["removal_guard"]'), 'the change is taken over');
    writeFileSync(config, 'removal_guard: lots\n');
    server.process.kill('SIGHUP');
    await until(() => server.output().includes('the old one stays'), 'the broken one is refused');
    expect(server.output()).toContain('serve.yaml:1:1');
    expect(await server.stop()).toBe(0);
  });

  it('ends, and leaves its directory free, when the ready file cannot be written', async () => {
    sandbox = new Sandbox();
    await sandbox.orch(['operator', 'init']);
    const file = sandbox.path('missing', 'ready.json');
    const data = ['--data-dir', sandbox.path('other')];
    const { status, stderr } = await sandbox.orch(['serve', ...PRIVATE_PORTS, ...data, '--ready-file', file]);
    expect(status).toBe(1);
    expect(stderr).toContain(`cannot write the ready file ${file}`);
    expect(readdirSync(sandbox.path('other'))).not.toContain('lock');
  });

  it('prints the schema of its configuration', async () => {
    sandbox = new Sandbox();
    const { status, stdout } = await sandbox.orch(['serve', '--config-schema']);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      additionalProperties: false,
      properties: { api_port: { default: 4748 } },
    });
  });
});
