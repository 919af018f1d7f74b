/** Services of OpenRC on a booted Debian, which OpenRC starts in place of systemd. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import { answers } from '../support/answers.js';
import { until } from '../support/until.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, type Body, type Entry, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const service = (body: Body, more: Omit<Entry, 'resource'> = {}) =>
  entry('service-openrc', { name: 'demo', ...body }, more);
const config = (content: string) =>
  entry('file-unix', { path: '/etc/conf.d/demo', content: `command_args=${content}\n` }, { id: 'config' });

const SCRIPT = `#!/sbin/openrc-run
command=/bin/sleep
command_background=yes
retry=TERM/5
pidfile=/run/demo.pid
extra_started_commands=reload
start_pre() { echo start >>/run/demo.log; }
reload() { echo reload >>/run/demo.log; }
`;
const UNRELOADABLE = SCRIPT.replace(/extra.*\n/, '').replace(/reload\(\).*\n/, '');

describeHosts('services of OpenRC on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);
  const state = () =>
    run('rc-service --nocolor demo status 2>&1 || true; ls -d /etc/runlevels/*/demo 2>/dev/null || true');
  const log = () => run('cat /run/demo.log 2>/dev/null; rm -f /run/demo.log');
  const running = ' * status: started';
  const stopped = ' * status: stopped';

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['openrc'], init: 'openrc' });
    host = fleet.host('openrc');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('useradd -m eve');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  beforeEach(async () => {
    await run(`rm -rf /root/.local /var/lib/orch-local
      if [ -e /etc/init.d/demo ]; then rc-service demo stop; rc-service demo zap; fi >/dev/null 2>&1 || true
      rm -f /etc/runlevels/*/demo /run/demo.log /etc/conf.d/demo`);
    await host.writeFile('/etc/init.d/demo', SCRIPT, '0755');
    await host.writeFile('/etc/conf.d/demo', 'command_args=1000\n', '0644');
  });

  it('are known to run the machine', async () => {
    expect(await run('cat /run/openrc/softlevel; echo; cat /proc/1/comm; test ! -e /run/systemd/system')).toBe(
      'default\ninit',
    );
    const answer = answers.find(({ question }) => question.includes('OpenRC'))?.modules[0] ?? '';
    await host.writeFile('/root/site.orch.yaml', answer.replaceAll('name: dbus', 'name: demo'));
    expect((await orch.apply()).map(({ kind, status }) => [kind, status])).toEqual([['service-openrc', 'changed']]);
    expect(await state()).toBe(`${running}\n/etc/runlevels/default/demo`);
  });

  it('start now and in their runlevel, are repaired, stop, and stay when they were there before', async () => {
    expect(await orch.appliedAsPlanned(service({ enabled: true, running: true }))).toEqual([
      ['demo', 'update', 'enabled,running'],
    ]);
    expect(await state()).toBe(`${running}\n/etc/runlevels/default/demo`);
    await orch.isSettled();
    await run('rc-service demo stop; rc-update del demo default');
    expect(await orch.differences('drift')).toEqual([['demo', 'update', 'enabled,running']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await state()).toBe(`${running}\n/etc/runlevels/default/demo`);
    // Another runlevel comes beside the one that it has.
    expect(await orch.appliedAsPlanned(service({ enabled: true, runlevel: 'boot', running: false }))).toEqual([
      ['demo', 'update', 'enabled,running'],
    ]);
    expect(await state()).toBe(`${stopped}\n/etc/runlevels/boot/demo\n/etc/runlevels/default/demo`);
    await orch.isSettled();
    expect(await orch.appliedAsPlanned(service({ enabled: false }))).toEqual([['demo', 'update', 'enabled']]);
    expect(await state()).toBe(stopped);
    expect(await orch.applied(service({ enabled: true, running: true }))).toEqual({});
    expect(await orch.applied()).toEqual({});
    expect(await state()).toBe(`${running}\n/etc/runlevels/default/demo`);
    expect(await orch.appliedAsPlanned(absent('service-openrc', { name: 'demo' }))).toEqual([['demo', 'remove', '']]);
    expect(await state()).toBe(stopped);
    await orch.isSettled();
  });

  it('come with their script and go with it', async () => {
    await run('rm /etc/init.d/demo');
    const script = entry('file-unix', { path: '/etc/init.d/demo', content: SCRIPT, mode: '0755' }, { id: 'script' });
    const started = service({ enabled: true, running: true, restart_on: ['script'] }, { depends_on: ['script'] });
    expect((await orch.appliedAsPlanned(script, started)).map(([name]) => name)).toEqual(['/etc/init.d/demo', 'demo']);
    await orch.isSettled();
    expect(await orch.applied()).toEqual({});
    expect(
      await run('ls /etc/init.d/demo /etc/runlevels/*/demo 2>/dev/null; pgrep -fx "/bin/sleep 1000" || true'),
    ).toBe('');
  });

  it('are restarted and reloaded by triggers, once, and only while they run', async () => {
    const all = (content: string, body: Body) => [config(content), service({ running: true, ...body })];
    expect(await orch.applied(...all('1001', { restart_on: ['config'] }))).toEqual({});
    expect(await log()).toBe('start');
    expect(await orch.appliedAsPlanned(...all('1002', { restart_on: ['config'] }))).toEqual([
      ['/etc/conf.d/demo', 'update', 'content'],
      ['demo', 'restart', ''],
    ]);
    expect(await log()).toBe('start');
    expect(await run('pgrep -fx "/bin/sleep 1002" | wc -l')).toBe('1');
    await orch.isSettled();
    expect(await orch.appliedAsPlanned(...all('1003', { reload_on: ['config'] }))).toMatchObject([
      {},
      ['demo', 'reload', ''],
    ]);
    expect(await log()).toBe('reload');
    await host.writeFile('/etc/init.d/demo', UNRELOADABLE, '0755');
    expect(await orch.appliedAsPlanned(...all('1004', { reload_on: ['config'] }))).toMatchObject([
      {},
      ['demo', 'restart', ''],
    ]);
    await run('rc-service demo stop');
    expect(await orch.appliedAsPlanned(config('1005'), service({ restart_on: ['config'] }))).toEqual([
      ['/etc/conf.d/demo', 'update', 'content'],
    ]);
    expect(await state()).toBe(stopped);
  });

  it('say why they do not run', async () => {
    await host.writeFile(
      '/etc/init.d/demo',
      SCRIPT.replace('start_pre() {', 'start_pre() { eerror "the port is taken"; return 1;'),
      '0755',
    );
    expect(await orch.applied(service({ running: true }))).toEqual({
      demo: expect.stringMatching(/^service_failed: demo could not be started: [\s\S]*the port is taken/),
    });
    expect(await orch.applied(service({ enabled: true, runlevel: 'nowhere' }))).toEqual({
      demo: expect.stringMatching(/^value_unknown: this machine has no runlevel nowhere; it has [a-z, ]*default/),
    });
    expect(await orch.applied(entry('service-openrc', { name: 'nothing', running: true }))).toEqual({
      nothing:
        'unit_missing: there is no /etc/init.d/nothing on this machine; declare the package or the file that brings it before',
    });
    await host.writeFile('/etc/init.d/demo', SCRIPT, '0755');
    await run('mv /run/openrc/softlevel /run/openrc/away');
    const refused = {
      demo: 'unsupported_on_platform: OpenRC does not run this machine (there is no /run/openrc/softlevel); use the kind of its own init system, such as service-systemd, in a variant with "when: {init_system: …}"',
    };
    await orch.declare(service({ enabled: true, running: true }));
    expect(failures(await orch.results('plan'))).toEqual(refused);
    expect(failures(await orch.apply())).toEqual(refused);
    await run('mv /run/openrc/away /run/openrc/softlevel');
    expect(await state()).toBe(stopped);
  });

  it('come back as they were from an apply that is not confirmed', async () => {
    const orchAs = async (...args: readonly string[]) => host.run(['orch', ...args], { timeoutMs: 120_000 });
    expect(await orchAs('operator', 'init')).toMatchObject({ status: 0 });
    await run('(setsid orch serve </dev/null >/run/serve.log 2>&1 & echo $! >/run/serve.pid)');
    await until(async () => (await orchAs('status')).stderr.includes('--tls-fingerprint'), 'the API answers');
    const fingerprint = /--tls-fingerprint ([0-9a-f:]{64,})/.exec((await orchAs('status')).stderr)?.[1] ?? '';
    const url = ['--url', 'https://127.0.0.1:4748', '--tls-fingerprint', fingerprint];
    expect(await orchAs('profile', 'create', 'here', ...url)).toMatchObject({ status: 0 });
    const { public_key: key } = JSON.parse((await orchAs('status', '-o', 'json')).stdout) as { public_key: string };
    await run(
      `(setsid orch agent connect 127.0.0.1:4747 --orchestrator-key ${key} </dev/null >/run/agent.log 2>&1 & echo $! >/run/agent.pid)`,
    );
    const agents = async () => JSON.parse((await orchAs('agents', 'list', '-o', 'json')).stdout) as readonly Agent[];
    await until(async () => (await agents()).length === 1, 'the machine waits');
    const node = (await agents())[0]?.node_id ?? '';
    expect(await orchAs('agents', 'approve', node, '--name', 'here', '--yes')).toMatchObject({ status: 0 });
    await until(async () => (await agents()).some(({ connected }) => connected), 'the agent is connected');

    await host.writeFile('/etc/init.d/other', SCRIPT.replaceAll('demo', 'other'), '0755');
    await host.writeFile('/etc/conf.d/other', 'command_args=2000\n');
    await run('rc-update add demo boot; rc-service demo start');
    const before = await state();
    await orch.declare(
      service({ enabled: false, running: false }),
      entry('service-openrc', { name: 'other', enabled: true, running: true }),
      entry('script', { program: 'sh', check: 'exit 1', apply: 'rc-service other status && exit 3' }, { id: 'fails' }),
    );
    const words = ['apply', 'here', '-f', '/root/site.orch.yaml', '--yes', '--confirm-within', '20s', '-o', 'json'];
    const { stdout, stderr } = await orchAs(...words);
    expect(stdout, stderr).not.toBe('');
    expect(JSON.parse(stdout)).toMatchObject({ status: 'rolled_back', restored: { restored: 2, not_restored: 1 } });
    expect(await state()).toBe(before);
    expect(await run('rc-service --nocolor other status || true; ls /etc/runlevels/*/other 2>/dev/null || true')).toBe(
      stopped,
    );
    await run('kill "$(cat /run/agent.pid)" "$(cat /run/serve.pid)"; rm /etc/init.d/other');
  });

  it('are those of root: an ordinary user is refused with the reason', async () => {
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await eve.declare(service({ enabled: true, running: true }));
    expect(failures(await eve.apply())).toEqual({
      demo: expect.stringMatching(
        /^permission_denied: this user may not change the service demo; run the agent as root/,
      ),
    });
    await eve.declare(service({ running: true }));
    expect(failures(await eve.apply())).toEqual({ demo: expect.stringMatching(/^permission_denied: /) });
    expect(await state()).toBe(stopped);
  });
});
