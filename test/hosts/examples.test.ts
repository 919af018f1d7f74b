/** The examples on a booted Debian with the real programs: applied, nothing left to do, what they promise kept, mistakes kept out. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunResult } from '../../src/contract/runs.js';
import type { ResourceResult } from '../../src/resources/result.js';
import { until } from '../support/orch.js';
import { EXAMPLE_PACKAGES } from './example-packages.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const SITE = 'www.example.net';

const textOf = (name: string) => readFileSync(new URL(`../../examples/${name}.orch.yaml`, import.meta.url), 'utf8');

describeHosts('the examples on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;

  /** One example, managed apart from the others. */
  async function orch(
    verb: 'plan' | 'apply',
    name: string,
    text = textOf(name),
    values: readonly string[] = [],
  ): Promise<readonly ResourceResult[]> {
    const file = `/root/${name}.orch.yaml`;
    await host.writeFile(file, text);
    const where = ['--local', '-f', file, '--data-dir', `/var/lib/orch-examples/${name}`, '--tag', `site=${SITE}`];
    const yes = [...values, ...(verb === 'apply' ? ['--yes', '--allow-removals', '1'] : [])];
    const { stdout, stderr } = await host.run(['orch', verb, ...where, ...yes, '-o', 'json'], { timeoutMs: 120_000 });
    if (!stdout.startsWith('{')) throw new Error(`orch ${verb} says:\n${stderr}${stdout}`);
    return (JSON.parse(stdout) as RunResult).resources;
  }

  const failed = (results: readonly ResourceResult[]) =>
    results.flatMap(({ identity, status, error }) =>
      status === 'failed' || status === 'skipped' ? [`${identity} ${status}: ${error?.message}`] : [],
    );
  const changed = (results: readonly ResourceResult[]) =>
    results.filter(({ status }) => status !== 'unchanged').map(({ identity, action }) => `${identity} ${action}`);
  const service = async (unit: string) =>
    (await host.run(['systemctl', 'show', '-P', 'ActiveState', '-P', 'UnitFileState', unit])).stdout.trim().split('\n');

  /** Applies an example, after which nothing is left to do. */
  async function converge(name: string): Promise<void> {
    expect(failed(await orch('plan', name))).toEqual([]);
    const applied = await orch('apply', name);
    expect(failed(applied)).toEqual([]);
    expect(changed(applied)).not.toEqual([]);
    expect(changed(await orch('plan', name))).toEqual([]);
  }

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['example'], packages: EXAMPLE_PACKAGES });
    host = fleet.host('example');
    const stopped = 'ssh nginx prometheus-node-exporter logrotate.timer';
    await sh(host, `systemctl disable --now ${stopped}`);
    // The image keeps timers from taking apt's lock, and the clock of a container is not its own to set.
    await sh(host, 'rm -f /etc/systemd/system/apt-daily.timer /etc/systemd/system/apt-daily-upgrade.timer');
    await host.writeFile(
      '/etc/systemd/system/systemd-timesyncd.service.d/container.conf',
      '[Unit]\nConditionVirtualization=\n',
    );
    await sh(host, 'systemctl daemon-reload');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  it('hello', async () => {
    await converge('hello');
    expect(await host.readFile('/opt/orch-hello/motd')).toContain('This machine is example.');
  });

  it('baseline', async () => {
    await converge('baseline');
    expect(await host.readFile('/etc/motd')).toContain('This is example, managed by orch.');
    expect(await sh(host, 'readlink -f /etc/localtime')).toMatch(/\/UTC$/);
    expect(await sh(host, 'getent group operators')).toMatch(/^operators:/);
    expect(await service('systemd-timesyncd')).toEqual(['active', 'enabled']);
  });

  it('sshd leaves everything as it is where no user has a key', async () => {
    const results = await orch('apply', 'sshd');
    expect(failed(results)).toEqual([
      expect.stringMatching(/^has-key failed: .*no user has a key/s),
      expect.stringMatching(/10-orch\.conf\.new skipped/),
      expect.stringMatching(/^settings skipped/),
      expect.stringMatching(/^ssh skipped/),
    ]);
    expect(await sh(host, 'ls /etc/ssh/sshd_config.d')).toBe('');
    expect(await service('ssh')).toEqual(['inactive', 'disabled']);
  });

  it('users-sudo', async () => {
    await converge('users-sudo');
    expect(await sh(host, 'stat -c "%U:%G %a" /home/ada/.ssh/authorized_keys /etc/sudoers.d/ops')).toBe(
      'ada:ada 600\nroot:root 440',
    );
    expect(await sh(host, 'runuser -u ada -- sudo -n id -u')).toBe('0');
    expect((await host.run(['runuser', '-u', 'nobody', '--', 'sudo', '-n', 'id', '-u'])).status).not.toBe(0);
  });

  it('users-sudo keeps rules away that sudo does not take', async () => {
    const broken = textOf('users-sudo').replace('NOPASSWD: ALL', 'NOPASWD: ALL');
    expect(failed(await orch('apply', 'users-sudo', broken))).toEqual([expect.stringMatching(/^rules failed/)]);
    expect(await sh(host, 'runuser -u lin -- sudo -n id -u')).toBe('0');
    expect(failed(await orch('apply', 'users-sudo'))).toEqual([]);
    expect(changed(await orch('plan', 'users-sudo'))).toEqual([]);
  });

  it('sshd', async () => {
    await converge('sshd');
    expect(await service('ssh')).toEqual(['active', 'enabled']);
    const settings = await sh(host, 'sshd -T');
    expect(settings).toContain('passwordauthentication no\n');
    expect(settings).toMatch(/permitrootlogin (without|prohibit)-password\n/);
  });

  it('sshd keeps settings away that sshd does not take, and repairs what was changed by hand', async () => {
    const pid = await sh(host, 'systemctl show -P MainPID ssh');
    const broken = textOf('sshd').replace('MaxAuthTries 3', 'MaxAuthTries few');
    expect(failed(await orch('apply', 'sshd', broken))).toEqual([
      expect.stringMatching(/^settings failed: .*MaxAuthTries/s),
      expect.stringMatching(/^ssh skipped/),
    ]);
    expect(await sh(host, 'sshd -T | grep maxauthtries')).toBe('maxauthtries 3');
    await sh(host, 'echo "PasswordAuthentication yes" >/etc/ssh/sshd_config.d/10-orch.conf');
    const repaired = await orch('apply', 'sshd');
    expect(failed(repaired)).toEqual([]);
    expect(changed(repaired)).toEqual(expect.arrayContaining(['settings run', 'ssh reload']));
    expect(await sh(host, 'sshd -T | grep passwordauthentication')).toBe('passwordauthentication no');
    expect(await sh(host, 'systemctl show -P MainPID ssh')).toBe(pid);
  });

  const page = (of: string) => sh(host, `curl -sS --max-time 10 -H 'Host: ${SITE}' http://127.0.0.1/${of}`);

  it('nginx-site', async () => {
    await converge('nginx-site');
    expect(await service('nginx')).toEqual(['active', 'enabled']);
    expect(await page('')).toContain(`<h1>${SITE}</h1>`);
  });

  it('nginx-site serves on under a bad configuration, and owes the reload until it is mended', async () => {
    const lacking = textOf('nginx-site').replace('listen 80;', 'listen 80; include /etc/nginx/extra.conf;');
    expect(failed(await orch('apply', 'nginx-site', lacking))).toEqual([
      expect.stringMatching(/^valid failed: .*extra\.conf/s),
      expect.stringMatching(/^nginx skipped/),
    ]);
    expect(await page('')).toContain(`<h1>${SITE}</h1>`);
    await host.writeFile('/etc/nginx/extra.conf', 'add_header X-Mended yes;\n');
    const planned = (await orch('plan', 'nginx-site', lacking)).filter(({ status }) => status !== 'unchanged');
    expect(planned).toMatchObject([
      { identity: 'nginx', action: 'reload', reason: expect.stringContaining('owed since operation') },
    ]);
    expect(changed(await orch('apply', 'nginx-site', lacking))).toEqual(['nginx reload']);
    // nginx takes a reload up in its own time.
    const header = `curl -sSI --max-time 10 -H 'Host: ${SITE}' http://127.0.0.1/`;
    await until(async () => (await sh(host, header)).includes('X-Mended: yes'), 'nginx has the new configuration');
    expect(changed(await orch('plan', 'nginx-site', lacking))).toEqual([]);
  });

  it('reverse-proxy, with a site more and a site less', async () => {
    const sites = (text: string) => ['--set', `reverse-proxy:sites=${text}`];
    const shop = 'shop: {server_name: shop.example.net, ports: [8081, 8082], headers: {X-Site: the shop}}';
    const both = sites(`{${shop}, docs: {server_name: docs.example.net, ports: [8083]}}`);
    const head = (site: string) => sh(host, `curl -sSI --max-time 10 -H 'Host: ${site}.example.net' http://127.0.0.1/`);
    const apply = async (values: readonly string[]) => {
      const applied = await orch('apply', 'reverse-proxy', undefined, values);
      expect(failed(applied)).toEqual([]);
      expect(changed(await orch('plan', 'reverse-proxy', undefined, values))).toEqual([]);
      return changed(applied);
    };
    expect(await apply(both)).toContain('/etc/nginx/sites-enabled/default remove');
    await until(async () => (await head('shop')).includes('X-Site: the shop'), 'nginx has the new configuration');
    // No program listens there.
    expect(await head('docs')).toContain('502 Bad Gateway');
    expect(await apply(sites(`{${shop}}`))).toEqual(['/etc/nginx/conf.d/proxy-docs.conf remove', 'nginx reload']);
    expect(await sh(host, 'nginx -T 2>/dev/null | grep -c docs || true')).toBe('0');
  });

  it('node-exporter', async () => {
    await converge('node-exporter');
    expect(await service('prometheus-node-exporter')).toEqual(['active', 'enabled']);
    expect(
      await sh(
        host,
        'curl -sS --retry 5 --retry-connrefused --max-time 10 http://127.0.0.1:9100/metrics | head -c 100',
      ),
    ).toContain('# HELP');
    expect((await host.run(['curl', '-sS', '--max-time', '5', `http://${host.address}:9100/metrics`])).status).toBe(7);
  });

  it('unattended-upgrades', async () => {
    await converge('unattended-upgrades');
    expect(await service('apt-daily-upgrade.timer')).toEqual(['active', 'enabled']);
    expect(await sh(host, 'apt-config dump Unattended-Upgrade::Automatic-Reboot')).toContain('"false"');
  });

  it('log-rotation', async () => {
    await converge('log-rotation');
    expect(await service('logrotate.timer')).toEqual(['active', 'enabled']);
    await sh(host, 'echo line >/var/log/app/a.log && logrotate --force /etc/logrotate.d/app');
    expect(await sh(host, 'ls /var/log/app')).toBe('a.log\na.log.1');
  });

  it('nightly-backup, and without it nothing of it is left', async () => {
    await converge('nightly-backup');
    expect(await service('nightly-backup.timer')).toEqual(['active', 'enabled']);
    await sh(host, 'systemctl start nightly-backup');
    expect(await sh(host, 'tar -tf /var/backups/orch/etc-*.tar etc/hostname')).toBe('etc/hostname');
    const [nothing, where] = ['/root/nothing.orch.yaml', '/var/lib/orch-examples/nightly-backup'];
    await host.writeFile(nothing, 'name: nothing\nsupports: [{}]\n');
    const flags = ['--local', '-f', nothing, '--data-dir', where, '--yes', '--allow-removals', '10'];
    expect(await host.run(['orch', 'apply', ...flags])).toMatchObject({ status: 0 });
    expect(
      await sh(host, 'ls /etc/systemd/system/nightly-backup* /usr/local/sbin/nightly-backup 2>/dev/null; true'),
    ).toBe('');
    expect(await sh(host, 'ls /var/backups/orch | wc -l')).toBe('1');
  });
});
