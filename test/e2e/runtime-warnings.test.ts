/** No program of ours shows people a warning of Node, and the tests that run them notice one. */
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { driftDetail, inSync, readings, state, web1 } from '../support/cli-world.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';
import { Sandbox } from '../support/orch.js';
import { Pty } from '../support/pty.js';

const sandbox = new Sandbox();
let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi();
});
afterAll(async () => {
  await api.stop();
  await sandbox.dispose();
});

/** More than the ten listeners that Node takes for usual. */
const fleet = Array.from({ length: 40 }, (_, index) => ({
  ...web1,
  node_id: index.toString(16).padStart(32, '0'),
  name: `web-${index}`,
}));

describe('many agents', () => {
  it.each([
    ['impact', ['impact', 'site.orch.yaml'], 0],
    ['impact as JSON', ['impact', 'site.orch.yaml', '-o', 'json'], 0],
    ['drift', ['drift', '-l', '*', '--concurrency', '40'], 0],
  ])('bring no warning in orch %s', async (_name, argv, status) => {
    writeFileSync(
      sandbox.path('site.orch.yaml'),
      'name: site\nsupports: [{platform: linux}]\nresources:\n  - resource: {file-unix: {path: /f, content: x}}\n',
    );
    api.answer({
      ...readings,
      listAgents: { body: fleet },
      listAssignments: { body: [] },
      // All of them are under way at once.
      getState: async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        return { body: { ...state, applied: [] } };
      },
      checkDrift: async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        return { body: driftDetail(inSync) };
      },
    });
    const ran = await sandbox.orch(argv, { env: loggedIn(api) });
    expect(ran).toMatchObject({ status });
  });
});

describe('a warning of the runtime', () => {
  const warning = () => {
    const file = sandbox.path('warning.cjs');
    writeFileSync(file, "process.emitWarning('too many listeners', 'MaxListenersExceededWarning');\n");
    return { NODE_OPTIONS: `--require ${file}` };
  };

  it('fails the test of a command', async () => {
    await expect(sandbox.orch(['help'], { env: warning() })).rejects.toThrow('too many listeners');
  });

  it('fails the tests of a program that keeps running', async () => {
    const other = new Sandbox();
    const running = other.start(['agent', 'status', '--data-dir', '/nonexistent'], warning());
    await new Promise((resolve) => running.process.once('close', resolve));
    await expect(other.dispose()).rejects.toThrow('too many listeners');
  });

  it('fails the test of a program in a terminal', async () => {
    const pty = new Pty([process.execPath, '-e', ''], { env: { ...sandbox.env, ...warning() }, cwd: sandbox.root });
    onTestFinished(() => expect(() => pty.kill()).toThrow('too many listeners'));
    await expect(pty.ended()).rejects.toThrow('too many listeners');
  });
});
