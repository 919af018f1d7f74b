/** What `orch serve install` says beside what it installed; `test/hosts/install.test.ts` has the rest on a booted host. */
import { expect, it, onTestFinished } from 'vitest';
import { Home, noPrograms, runOrch } from '../support/cli.js';

it('warns of a name without an address on this host, and installs all the same', async () => {
  const home = new Home();
  onTestFinished(() => home.dispose());
  const asked: string[] = [];
  const service = {
    ...noPrograms.service,
    isUnknownName: async (host: string) => asked.push(host) > 0,
    planServe: async () => ({
      hasStore: true,
      addresses: [],
      settings: { api_host: undefined, agent_host: undefined, advertised_host: undefined },
      configFile: '/etc/orch/orchestrator.yaml',
    }),
    installServe: async () => ({
      unit: 'orch-serve.service',
      unit_file: '/etc/systemd/system/orch-serve.service',
      api_url: 'https://orch.example.org:4748',
      local_url: 'https://127.0.0.1:4748',
      agent_address: 'orch.example.org:4747',
      tls_fingerprint: null,
      public_key: 'a'.repeat(64),
    }),
  };
  const options = { env: { ...home.env, NO_COLOR: '1' }, programs: { ...noPrograms, service } };
  const named = await runOrch(['serve', 'install', '--advertised-host', 'orch.example.org'], options);
  expect(named).toMatchObject({ status: 0 });
  expect(named.stderr).toContain('this host finds no address of orch.example.org');
  const unnamed = await runOrch(['serve', 'install', '--api-host', '0.0.0.0'], options);
  expect(unnamed).toMatchObject({ status: 0, stderr: '' });
  expect(asked).toEqual(['orch.example.org']);
});
