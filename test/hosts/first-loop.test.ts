/** The first loop between booted Debian machines: an orchestrator and two agents as root, under systemd. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { OperationDetail, State } from '../../src/contract/operations.js';
import type { DriftDetail, RunResult } from '../../src/contract/runs.js';
import { PROTOCOL_VERSION } from '../../src/kernel/version.js';
import { until } from '../support/orch.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { describeHosts } from './requirements.js';

const example = (path: string) =>
  readFileSync(fileURLToPath(new URL(`../../examples/${path}`, import.meta.url)), 'utf8');

const unit = (name: string) => readFileSync(fileURLToPath(new URL(`units/${name}.service`, import.meta.url)), 'utf8');

const MANY = 1_500;

const baseline = (banner: string) => `name: baseline
supports:
  - platform: linux
    distro: debian
    init_system: systemd
templates:
  - id: banner
    content: |
      ${banner}
      This is \${{ agent.name }} in \${{ tags.site }}.
resources:
  - resource:
      file-unix: {path: /etc/motd, template: banner, owner: root, group: root, mode: "0644"}
  - id: web
    resource:
      directory-unix: {path: /srv/web, owner: www-data, group: www-data, mode: "2750"}
  - id: index
    depends_on: [web]
    resource:
      file-unix: {path: /srv/web/index.html, content: "<h1>\${{ agent.name }}</h1>\\n", owner: www-data, group: "33", mode: "0640"}
  - variants:
      - when: {platform: linux, tag.site: cellar}
        resource:
          file-unix: {path: /etc/site-cellar, content: "cellar\\n"}
      - when: {platform: linux}
        resource:
          file-unix: {path: /etc/site-any, content: "any\\n"}
`;

describeHosts('the first loop on booted machines', () => {
  let fleet: Fleet;
  let control: BootedHost;
  const webs: BootedHost[] = [];

  const orch = async (...args: readonly string[]) => control.run(['orch', ...args], { timeoutMs: 120_000 });
  const json = async <T>(...args: readonly string[]): Promise<T> => {
    const { status, stdout, stderr } = await orch(...args, '-o', 'json');
    if (status !== 0) throw new Error(`orch ${args.join(' ')} ended with ${status}:\n${stderr}${stdout}`);
    return JSON.parse(stdout) as T;
  };
  const agents = () => json<Agent[]>('agents', 'list');
  const isConnected = async (name: string) => (await agents()).some((one) => one.name === name && one.connected);
  const host = (name: string) => fleet.host(name);
  const shell = async (line: string) => {
    const { status, stdout, stderr } = await control.run(['sh', '-c', line]);
    if (status !== 0) throw new Error(`${line} ended with ${status}:\n${stderr}${stdout}`);
    return stdout;
  };

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['orch', 'web-01', 'web-02'] });
    control = fleet.host('orch');
    webs.push(fleet.host('web-01'), fleet.host('web-02'));
    expect(await orch('operator', 'init')).toMatchObject({ status: 0 });
    // The data of the orchestrator on a file system of its own, which outlives that it is not mounted.
    await shell(
      'mkdir -p /srv/disk /var/lib/orch && mount -t tmpfs tmpfs /srv/disk && mkdir -m 700 /srv/disk/orch && ' +
        'mount --bind /srv/disk/orch /var/lib/orch',
    );
    await control.writeFile('/etc/orch/orchestrator.yaml', example('config/orchestrator.yaml'));
    await control.writeFile('/etc/systemd/system/orch-serve.service', unit('orch-serve'));
    expect(await control.run(['systemctl', 'enable', '--now', 'orch-serve'])).toMatchObject({ status: 0 });
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  it('starts the orchestrator as a service, on the addresses of its configuration', async () => {
    const url = `https://${control.address}:4748`;
    await until(
      async () =>
        (await control.run(['curl', '-sk', `${url}/api/v1/status`])).status === 0 ||
        (await orch('status', '--url', url)).status !== 69,
      'the API answers',
    );
    const unknown = await orch('status', '--url', url);
    expect(unknown.status).toBe(64);
    const fingerprint = /--tls-fingerprint ([0-9a-f:]{64,})/.exec(unknown.stderr)?.[1] as string;
    expect(await orch('profile', 'create', 'here', '--url', url, '--tls-fingerprint', fingerprint)).toMatchObject({
      status: 0,
    });
    expect(await json('status')).toMatchObject({ status: 'ok', protocol_version: PROTOCOL_VERSION });
  });

  it('lets two machines wait for approval, then in', async () => {
    const { public_key: key } = await json<{ public_key: string }>('status');
    for (const web of webs) {
      await web.writeFile('/etc/orch/agent.env', `ORCHESTRATOR=orch:4747\nORCHESTRATOR_KEY=${key}\n`, '0600');
      await web.writeFile('/etc/systemd/system/orch-agent.service', unit('orch-agent'));
      expect(await web.run(['systemctl', 'enable', '--now', 'orch-agent'])).toMatchObject({ status: 0 });
    }
    await until(async () => (await agents()).length === 2, 'both machines wait');
    for (const agent of await agents()) {
      expect(agent).toMatchObject({ status: 'pending', attributes: { distro: 'debian', init_system: 'systemd' } });
      const name = agent.initial_hostname;
      expect(await orch('agents', 'approve', agent.node_id, '--name', name, '--yes')).toMatchObject({ status: 0 });
    }
    await until(async () => (await isConnected('web-01')) && (await isConnected('web-02')), 'both are connected');
    expect(await orch('agents', 'tag', 'web-01', 'site=cellar')).toMatchObject({ status: 0 });
    expect(await orch('agents', 'tag', 'web-02', 'site=attic')).toMatchObject({ status: 0 });
  });

  it('applies one module to both, each as its tags and variants say', async () => {
    await control.writeFile('/root/baseline.orch.yaml', baseline('Welcome.'));
    expect(await orch('module', 'publish', '/root/baseline.orch.yaml')).toMatchObject({ status: 0 });
    const applied = await orch('apply', 'web-01', 'web-02', '-m', 'baseline', '--yes');
    expect(applied).toMatchObject({ status: 0 });
    expect(await host('web-01').readFile('/etc/motd')).toBe('Welcome.\nThis is web-01 in cellar.\n');
    expect(await host('web-02').readFile('/etc/motd')).toBe('Welcome.\nThis is web-02 in attic.\n');
    expect(await host('web-01').readFile('/etc/site-cellar')).toBe('cellar\n');
    expect(await host('web-02').readFile('/etc/site-any')).toBe('any\n');
    const stat = await host('web-02').run(['stat', '-c', '%U:%G %a %n', '/srv/web', '/srv/web/index.html']);
    expect(stat.stdout).toBe('www-data:www-data 2750 /srv/web\nwww-data:www-data 640 /srv/web/index.html\n');
    for (const name of ['web-01', 'web-02']) {
      expect(await json<RunResult>('plan', name, '-m', 'baseline')).toMatchObject({ has_changes: false });
    }
  });

  it('knows what was there before it came', async () => {
    const { applied } = await json<State>('state', 'web-01');
    expect(Object.fromEntries(applied.map(({ identity, origin }) => [identity, origin]))).toEqual({
      '/etc/motd': 'adopted',
      '/srv/web': 'created',
      '/srv/web/index.html': 'created',
      '/etc/site-cellar': 'created',
    });
  });

  it('shows the drift of changes made by hand on one machine, and repairs it', async () => {
    await host('web-02').run([
      'sh',
      '-c',
      'echo hacked >/etc/motd; chmod 777 /srv/web; chown root /srv/web/index.html',
    ]);
    expect(await json<DriftDetail>('drift', 'web-01')).toMatchObject({ status: 'in_sync' });
    const drift = await json<DriftDetail>('drift', 'web-02');
    expect(drift.status).toBe('drifted');
    const differing = drift.resources.filter((one) => one.status !== 'unchanged');
    expect(differing.map(({ identity, changes }) => [identity, changes.map(({ field }) => field)])).toEqual([
      ['/etc/motd', ['content']],
      ['/srv/web', ['mode']],
      ['/srv/web/index.html', ['owner']],
    ]);
    expect(await orch('apply', 'web-02', '-m', 'baseline', '--yes')).toMatchObject({ status: 0 });
    expect(await json<DriftDetail>('drift', 'web-02')).toMatchObject({ status: 'in_sync' });
    expect((await host('web-02').run(['stat', '-c', '%a', '/srv/web'])).stdout).toBe('2750\n');
  });

  it('removes what it made, and leaves what was there before', async () => {
    const without = baseline('Welcome.')
      .replace(/ {2}- resource:\n {6}file-unix: {path: \/etc\/motd.*\n/, '')
      .replace(/templates:[\s\S]*resources:/, 'resources:');
    await control.writeFile(
      '/root/baseline.orch.yaml',
      without.replace(/ {2}- id: index[\s\S]*?( {2}- variants)/, '$1'),
    );
    expect(await orch('apply', 'web-01', '-f', '/root/baseline.orch.yaml', '--yes')).toMatchObject({ status: 0 });
    expect(await host('web-01').readFile('/etc/motd')).toContain('Welcome.');
    expect((await host('web-01').run(['ls', '/srv/web'])).stdout).toBe('');
    await control.writeFile('/root/baseline.orch.yaml', baseline('Welcome.'));
    expect(await orch('apply', 'web-01', '-f', '/root/baseline.orch.yaml', '--yes')).toMatchObject({ status: 0 });
  });

  it('misses a machine whose agent is stopped, and finds it again', async () => {
    await host('web-01').run(['systemctl', 'stop', 'orch-agent']);
    await until(async () => !(await isConnected('web-01')), 'web-01 is gone');
    const offline = await orch('drift', 'web-01');
    expect(offline.status).toBe(5);
    expect(offline.stderr).toContain('web-01');
    await host('web-01').run(['systemctl', 'start', 'orch-agent']);
    await until(async () => isConnected('web-01'), 'web-01 is back');
  });

  it('finishes an apply whose link is cut in the middle, and tells its results when it is back', async () => {
    const files = Array.from(
      { length: MANY },
      (_, n) => `  - resource: {file-unix: {path: /srv/many/f${n}, content: "${n}\\n"}}`,
    );
    const many = `name: many\nsupports: [{platform: linux}]\nresources:\n  - resource: {directory-unix: {path: /srv/many}}\n${files.join('\n')}\n`;
    await control.writeFile('/root/many.orch.yaml', many);
    expect(await orch('module', 'publish', '/root/many.orch.yaml')).toMatchObject({ status: 0 });
    const node = (await agents()).find(({ name }) => name === 'web-02')?.node_id;
    const body = JSON.stringify({ modules: ['baseline', 'many'], wait: false });
    const started = await json<RunResult>('api', 'POST', `/agents/${node}/apply`, '--data', body);
    await until(async () => {
      const { status } = await json<OperationDetail>('ops', 'show', started.operation_id as string);
      return status !== 'queued';
    }, 'the agent has the apply');
    await host('web-02').cutCable();
    await control.run(['systemctl', 'kill', '--signal=KILL', 'orch-serve']);
    await until(
      async () => (await host('web-02').run(['test', '-e', `/srv/many/f${MANY - 1}`])).status === 0,
      'the agent has done its work alone',
    );
    await host('web-02').plugCable();
    let operation: OperationDetail | undefined;
    await until(async () => {
      operation = await json<OperationDetail>('ops', 'show', started.operation_id as string).catch(() => undefined);
      return operation?.finished_at != null;
    }, 'the operation has its end');
    expect(operation).toMatchObject({ status: 'succeeded', summary: { total: MANY + 5, failed: 0, skipped: 0 } });
  });

  it('comes back after a reboot with nothing lost', async () => {
    await host('web-02').reboot();
    await until(async () => isConnected('web-02'), 'web-02 is back');
    expect(await json<DriftDetail>('drift', 'web-02')).toMatchObject({ status: 'in_sync' });
  });

  it('cuts a rejected machine off, whatever it tries', async () => {
    expect(await orch('agents', 'reject', 'web-02', '--yes')).toMatchObject({ status: 0 });
    await until(async () => !(await isConnected('web-02')), 'web-02 is cut off');
    await host('web-02').run(['systemctl', 'restart', 'orch-agent']);
    await until(
      async () => /rejected/.test((await host('web-02').run(['orch', 'agent', 'status'])).stdout),
      'it knows',
    );
    expect(await isConnected('web-02')).toBe(false);
  });

  it('does not start without its file system, and agents outlive whatever else answers there meanwhile', async () => {
    const web = host('web-01');
    const journal = async (of: BootedHost, unit: string) =>
      (await of.run(['journalctl', '-u', unit, '--no-pager'])).stdout;
    const pid = async () => (await web.run(['systemctl', 'show', '-P', 'MainPID', 'orch-agent'])).stdout;
    const before = await pid();
    await shell('systemctl stop orch-serve && umount /var/lib/orch && systemctl start orch-serve');
    await until(
      async () => (await journal(control, 'orch-serve')).includes('/var/lib/orch is not mounted'),
      'the start is refused',
    );
    expect(await shell('ls -A /var/lib/orch')).toBe('');
    await shell('systemctl stop orch-serve');

    const impostor = await control.spawn(['orch', 'serve', '--new-identity']);
    await until(
      async () => (await web.run(['orch', 'agent', 'status'])).stdout.includes('untrusted'),
      'the agent has met another key',
    );
    expect(await journal(web, 'orch-agent')).toContain('nothing is done for it and it is dialled again');
    expect((await web.run(['systemctl', 'is-active', 'orch-agent'])).stdout).toBe('active\n');
    impostor.kill();
    await impostor.ended;

    await shell('mount --bind /srv/disk/orch /var/lib/orch && systemctl start orch-serve');
    await until(async () => (await orch('status')).status === 0, 'the right one is back');
    await until(() => isConnected('web-01'), 'the agent is back by itself');
    expect(await pid()).toBe(before);
    expect(await json<RunResult>('apply', 'web-01', '-m', 'baseline', '--yes')).toMatchObject({ status: 'succeeded' });
  });
});
