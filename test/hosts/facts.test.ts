/** Facts of a booted machine, from its agent to the command line: attributes, facts of one's own, and an automatic apply that waits. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Agent, AgentFactsAnswer } from '../../src/contract/agents.js';
import { until } from '../support/orch.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { describeHosts } from './requirements.js';

const unit = (name: string) => readFileSync(fileURLToPath(new URL(`units/${name}.service`, import.meta.url)), 'utf8');

const MODULE = `name: site
supports: [{platform: linux}]
resources:
  - file-unix: {path: /etc/site.conf, content: "\${{ attributes.fqdn }} \${{ attributes.interfaces.eth0.ipv4 | first }}\\n"}
  - if: facts.rack.row == 3
    file-unix: {path: /etc/row-3, content: ""}
  - for_each: facts.sites
    file-unix: {path: "/etc/site-\${{ each.key }}", content: ""}
`;

/** The path holds the version of a package, and a file is there while another package is. */
const VERSIONS = `name: versions
supports: [{platform: linux}]
resources:
  - file-unix: {path: "/etc/bash-\${{ attributes.packages.bash | split: '.' | first }}.conf", content: "\${{ attributes.codename }}\\n"}
  - if: attributes.packages.orch-probe != nil
    file-unix: {path: /etc/probe.conf, content: "\${{ attributes.packages.orch-probe }}\\n"}
`;
/** Makes and installs a package of this version, with an epoch. */
const installProbe = (version: string) =>
  `set -e; mkdir -p /root/p/DEBIAN; printf 'Package: orch-probe\\nVersion: 1:${version}\\nArchitecture: all\\nMaintainer: a <a@example.com>\\nDescription: p\\n' > /root/p/DEBIAN/control; dpkg-deb --build /root/p /root/p.deb; dpkg --install /root/p.deb`;

describeHosts('the facts of a booted machine', () => {
  let fleet: Fleet;
  let control: BootedHost;
  let web: BootedHost;

  const orch = (...args: readonly string[]) => control.run(['orch', ...args], { timeoutMs: 120_000 });
  const json = async <T>(...args: readonly string[]): Promise<T> => {
    const { status, stdout, stderr } = await orch(...args, '-o', 'json');
    if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}:\n${stderr}${stdout}`);
    return JSON.parse(stdout) as T;
  };
  const sh = async (line: string) => (await web.run(['sh', '-c', line])).stdout;
  const facts = (...args: readonly string[]) => json<AgentFactsAnswer>('facts', 'web-01', ...args);
  const agent = async () => (await json<Agent[]>('agents', 'list'))[0];
  const isThere = async (path: string) => (await web.run(['test', '-e', path])).status === 0;

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['orch', 'web-01'] });
    control = fleet.host('orch');
    web = fleet.host('web-01');
    expect(await orch('operator', 'init')).toMatchObject({ status: 0 });
    await control.writeFile('/etc/systemd/system/orch-serve.service', unit('orch-serve'));
    expect(await control.run(['systemctl', 'enable', '--now', 'orch-serve'])).toMatchObject({ status: 0 });
    await until(async () => (await orch('status')).stderr.includes('--tls-fingerprint'), 'the API answers');
    const fingerprint = /--tls-fingerprint ([0-9a-f:]{64,})/.exec((await orch('status')).stderr)?.[1] as string;
    const url = ['--url', 'https://127.0.0.1:4748', '--tls-fingerprint', fingerprint];
    expect(await orch('profile', 'create', 'here', ...url)).toMatchObject({ status: 0 });
    const { public_key: key } = await json<{ public_key: string }>('status');
    const environment = `ORCHESTRATOR=${control.address}:4747\nORCHESTRATOR_KEY=${key}\n`;
    await web.writeFile('/etc/orch/agent.env', environment, '0600');
    await sh('mkdir -p -m 755 /etc/orch/facts.d; useradd mallory');
    await web.writeFile('/etc/orch/facts.d/rack.json', '{"row": 3}', '0644');
    await web.writeFile('/etc/orch/facts.d/sites.sh', '#!/bin/sh\necho \'["shop", "blog"]\'\n', '0755');
    await web.writeFile('/etc/systemd/system/orch-agent.service', unit('orch-agent'));
    expect(await web.run(['systemctl', 'enable', '--now', 'orch-agent'])).toMatchObject({ status: 0 });
    await until(async () => (await agent())?.status === 'pending', 'the agent waits');
    expect(await orch('agents', 'approve', (await agent())?.node_id ?? '', '--name', 'web-01', '--yes')).toMatchObject({
      status: 0,
    });
    await until(async () => (await facts()).reported_at !== null, 'the agent has reported its facts');
  }, 120_000);

  afterAll(async () => {
    await fleet?.stop();
  });

  it('are those that the machine has', async () => {
    const { attributes, volatile, facts: own, problem } = await facts();
    expect(attributes).toMatchObject({
      platform: 'linux',
      distro: 'debian',
      codename: (await sh('. /etc/os-release; printf %s "$VERSION_CODENAME"')).trim(),
      hostname: 'web-01',
      init_system: 'systemd',
      timezone: expect.stringMatching(/UTC/),
      memory_mb: expect.any(Number),
      processors: Number(await sh('nproc')),
      kernel: (await sh('uname -r')).trim(),
      interfaces: { eth0: { ipv4: [web.address], mac: /ether (\S+)/.exec(await sh('ip link show eth0'))?.[1] } },
    });
    expect(attributes.virtualization).toBe((await sh('systemd-detect-virt')).trim());
    const btime = Number(/btime (\d+)/.exec(await sh('cat /proc/stat'))?.[1]);
    expect(Math.abs((volatile.boot_time ?? 0) - btime)).toBeLessThan(5);
    expect({ own, problem }).toEqual({
      own: {
        rack: { value: { row: 3 }, error: null, since: null },
        sites: { value: ['shop', 'blog'], error: null, since: null },
      },
      problem: null,
    });
  });

  it('decide what the machine gets, and a removal waits for a person', async () => {
    await control.writeFile('/root/site.orch.yaml', MODULE.replace('attributes.fqdn', 'attributes.hostname'));
    expect(await orch('module', 'publish', '/root/site.orch.yaml')).toMatchObject({ status: 0 });
    const assigned = ['assignments', 'create', 'all', '-m', 'site', '--selector', '*', '--mode', 'enforce'];
    expect(await orch(...assigned)).toMatchObject({ status: 0 });
    await until(() => isThere('/etc/site-blog'), 'the module is applied by itself');
    expect(await sh('cat /etc/site.conf')).toBe(`web-01 ${web.address}\n`);
    expect(await isThere('/etc/row-3')).toBe(true);
    await web.writeFile('/etc/orch/facts.d/rack.json', '{"row": 4}', '0644');
    await facts('--refresh');
    await until(async () => (await agent())?.automation_stopped != null, 'the automatic applies stop');
    expect((await agent())?.automation_stopped).toMatchObject({
      code: 'facts_removal',
      message: expect.stringContaining('file-unix /etc/row-3 (facts.rack.row changed from 3 to 4)'),
    });
    expect(await isThere('/etc/row-3')).toBe(true);
    const applied = await orch('apply', 'web-01', '--yes');
    expect(applied).toMatchObject({ status: 0 });
    expect(applied.stdout).toContain('file-unix /etc/row-3 goes because facts.rack.row changed from 3 to 4');
    expect(await isThere('/etc/row-3')).toBe(false);
    expect((await agent())?.automation_stopped).toBeNull();
  });

  it('keep their value when another user could have changed them, or a program fails', async () => {
    await sh('chown mallory /etc/orch/facts.d/rack.json; ln -s /etc/shadow /etc/orch/facts.d/shadow.json');
    await web.writeFile('/etc/orch/facts.d/sites.sh', '#!/bin/sh\necho no rack >&2; exit 1\n', '0755');
    const { facts: own } = await facts('--refresh');
    expect(own).toMatchObject({
      rack: { value: { row: 4 }, error: expect.stringContaining('belongs to user'), since: expect.any(Number) },
      sites: { value: ['shop', 'blog'], error: '/etc/orch/facts.d/sites.sh ended with status 1: no rack' },
      shadow: { error: '/etc/orch/facts.d/shadow.json is a link; put a file of its own there' },
    });
    expect(own.shadow).not.toHaveProperty('value');
    expect((await orch('facts', 'web-01')).stdout).toContain('facts.rack is stale since');
    expect(await isThere('/etc/site-shop')).toBe(true);
    expect(await sh('chmod 777 /etc/orch; true')).toBe('');
    expect((await facts('--refresh')).problem).toBe(
      '/etc/orch, above /etc/orch/facts.d, can be written by others; take that away with chmod go-w',
    );
    expect((await agent())?.standing).toBe('in_sync');
  });

  it('have the versions of the packages that modules name, as of each apply, and their changes', async () => {
    await control.writeFile('/root/versions.orch.yaml', VERSIONS);
    const apply = () => orch('apply', 'web-01', '-f', '/root/versions.orch.yaml', '--yes');
    expect(await facts()).not.toHaveProperty('attributes.packages');
    expect(await apply()).toMatchObject({ status: 0 });
    const version = await sh(`dpkg-query --show --showformat='\${Version}' bash`);
    expect((await facts()).attributes.packages).toEqual({ bash: version });
    expect(await sh(`cat /etc/bash-${version.split('.')[0]}.conf`)).toBe(`${(await facts()).attributes.codename}\n`);
    expect(await isThere('/etc/probe.conf')).toBe(false);
    await sh(installProbe('2.5-1'));
    expect(await apply()).toMatchObject({ status: 0 });
    expect(await sh('cat /etc/probe.conf')).toBe('2.5-1\n');
    expect((await orch('facts', 'web-01')).stdout).toMatch(/^attributes\.packages\.orch-probe +2\.5-1$/m);
    await sh(installProbe('2.6-1'));
    await sh('systemctl restart orch-agent');
    await until(
      async () => /\.orch-probe +2\.6-1$/m.test((await orch('facts', 'web-01')).stdout),
      'the orchestrator asks again when the agent connects',
    );
    await web.writeFile('/root/versions.orch.yaml', VERSIONS);
    const local = await web.run(['orch', 'apply', '--local', '-f', '/root/versions.orch.yaml', '--yes']);
    expect(local).toMatchObject({ status: 0 });
    expect(await sh('cat /etc/probe.conf')).toBe('2.6-1\n');
  });
});
